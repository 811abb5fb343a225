#!/usr/bin/env python3
"""Runs the commands of README.md's ```console blocks and compares what they print with what stands there, numbers apart.

  tools/check-readme.py PROGRAM            compare; exit 1 if a line differs
  tools/check-readme.py PROGRAM --update   write what they print into README.md
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def shape(text):
    """Without numbers, units and runs of blanks, which differ from machine to machine."""
    text = re.sub(r"\d[\d,.]*(e-\d+)?", "#", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"# (ms|s|min|KiB|MiB|GiB)\b", "# unit", text)).strip()


def run_block(block, folder, environment):
    """The block with the output of its commands, and whether all of them worked."""
    made, where, fine = [], folder, True
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        made.append(line)
        if line.startswith("$ cd "):
            where = folder / line[5:]
            continue
        done = subprocess.run(["bash", "-c", line[2:]], cwd=where, env=environment, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            print(f"{line}\n{done.stderr}", file=sys.stderr)
            fine = False
        made += (done.stdout or done.stderr).rstrip("\n").splitlines()
    return "\n".join(made) + "\n", fine


def main():
    program, update = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["--update"]
    readme = ROOT / "README.md"
    text, problems = readme.read_text(), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / "examples", folder / "examples")
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}

        def replace(match):
            nonlocal problems
            made, fine = run_block(match[1], folder, environment)
            problems += not fine
            if not update and shape(made) != shape(match[1]):
                problems += 1
                print(f"README.md has\n{match[1]}\nbut the commands print\n{made}", file=sys.stderr)
            return f"```console\n{made}```"

        made = re.sub(r"```console\n(.*?)```", replace, text, flags=re.S)
    if update:
        readme.write_text(made)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
