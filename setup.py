"""pip install .: builds the engine with CMake and takes its Python module into the package."""
import pathlib
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent


class BuildWithCMake(build_ext):
    def build_extension(self, extension):
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        build = pathlib.Path(self.build_temp).resolve()
        if shutil.which("cmake") is None or shutil.which("ninja") is None:
            sys.exit("error: cmake and ninja are needed to build clustergcn\n  try: tools/install-packages.sh build python")
        options = ["-DCGCN_TESTS=OFF", "-DCGCN_BENCHMARKS=OFF", f"-DPython3_EXECUTABLE={sys.executable}"]
        try:
            import pybind11  # of build isolation; Debian's pybind11-dev is found without
            options.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
        except ImportError:
            pass
        subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *options], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "python_core", "metis_process"], check=True)
        made = next((build / "python" / "clustergcn").glob("_core*.so"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(made, target)
        shutil.copy2(build / "clustergcn-metis", target.parent)


setup(ext_modules=[Extension("clustergcn._core", sources=[])], cmdclass={"build_ext": BuildWithCMake})
