#!/usr/bin/env python3
"""Makes docs/pictures/report.png from the program itself: three short runs, their report, a photograph of it in Chromium.

  tools/make-pictures.py build/release/clustergcn
"""
import base64
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/report"))
from browser import Browser, find_browser  # noqa: E402

RUNS = {"clusters": ["--hidden", "64"], "wider": ["--hidden", "256", "--lr", "0.003"],
        "random-clusters": ["--hidden", "64", "--partitioner", "random", "--dropout", "0.5"]}
WIDTH, HEIGHT = 1360, 1900


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        def run(*words):
            subprocess.run([program, *words, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        run("generate", "small", "--classes", "8", "--nodes", "20000")
        for name, options in RUNS.items():
            run("train", "small", "--run", name, "--recipe", "none", "--epochs", "25", *options)
        run("report", *RUNS, "-o", "report.html")
        with Browser(find_browser()) as browser:
            browser.resize(WIDTH, HEIGHT)
            browser.open((Path(folder) / "report.html").as_uri())
            browser.run("new Promise(done => setTimeout(done, 500))")
            shot = browser.call("Page.captureScreenshot", 120, format="png",
                                clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 0.75})
    (ROOT / "docs/pictures/report.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
