#!/usr/bin/env python3
"""Checks the words of the documents: the usual terms, "per" for rates, one kind of unit on a page.

  tools/check-words.py [FILE.md …]      default: every Markdown document; exit 1 if something is found

docs/options.md is made from --help, so the help texts are checked with it.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNITS = "ms|s|min|seconds|bytes|[KMG]i?B|nodes|edges|entries|rows|labels|classes|batches|steps|times|once"
RATES = "epoch|batch|node|edge|step|row|line|class|second|layer|process|thread"
HABITS = {
    r"\b(beside|besides|anew|shall|wholly|mend(s|ed)?)\b": "next to, in addition, again, must, entirely, fixed",
    rf"\b({UNITS}) an? ({RATES})\b": "per",
    r"\b(goes|go|went) on\b": "continues",
    r"\b(edge|adjacency) links?\b|\blinks? (kept|cut|per|within|between|among)\b": "edges",
    r"\brun director(y|ies)\b": "run folder",
}


def prose(text):
    """Without code, links' targets and quoted commands, line for line."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    return re.sub(r"\]\([^)]*\)|`[^`\n]*`", "]", text)


def problems(path):
    text = prose(path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        for habit, instead in HABITS.items():
            for found in re.finditer(habit, line, re.I):
                yield f"{path}:{number}: '{found[0]}' (write: {instead})"
    sizes = re.sub(r"\([^)]*paper[^)]*\)?", "", text)  # the paper's own figures keep their unit
    if re.search(r"\d [KMG]B\b(?!/s)", sizes) and re.search(r"\d [KMG]iB\b", sizes):
        yield f"{path}: mixes MB and MiB"


def main():
    names = sys.argv[1:] or [path for places in ("*.md", "docs/*.md", "examples/**/*.md", ".github/**/*.md") for path in ROOT.glob(places)]
    found = [problem for name in names for problem in problems(Path(name))]
    print("\n".join(found) or f"{len(names)} documents, nothing found")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
