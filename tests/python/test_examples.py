"""The docstrings' examples, docs/python.md, and the programs in examples/ run as they stand."""
import doctest
import pathlib
import re
import runpy

import pytest

import clustergcn
from clustergcn import _classifier, _errors, _graph

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("module", [clustergcn, _classifier, _errors, _graph])
def test_docstrings(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0 and failed == 0


def test_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.S).groups()
    exec(compile(code, "README.md", "exec"), {})
    shape = lambda text: re.sub(r"[\d.]+", "#", re.sub(r"\s+", " ", text)).replace("# ]", "#]").strip()
    assert shape(capsys.readouterr().out) == shape(printed)


def test_document(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) >= 4
    scope = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), scope)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("*.py")), ids=lambda path: path.stem)
def test_examples(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_notebook(tmp_path, monkeypatch):
    import json
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "examples" / "first_model.ipynb").read_text())["cells"]
    scope = {}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for text in code:
        exec(compile(text, "first_model.ipynb", "exec"), scope)
    assert (tmp_path / "first-run" / "report.html").exists()


def test_types_of_the_examples():
    import os
    import shutil
    import subprocess
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not there")
    examples = [str(path) for path in sorted((ROOT / "examples").glob("*.py"))]
    done = subprocess.run([mypy, "--strict", "--no-warn-unused-ignores", "--follow-imports=silent", "--cache-dir=/dev/null", *examples],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stdout + done.stderr
