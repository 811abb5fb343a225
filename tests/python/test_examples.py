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


def test_document(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) >= 4
    scope = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), scope)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
