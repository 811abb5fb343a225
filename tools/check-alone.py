#!/usr/bin/env python3
"""Compiles every source of src/ by itself, up to the errors only, so that a missing include and a `using` that leaks are seen.

    tools/check-alone.py BUILD_FOLDER

The usual builds join several sources, where the first one's includes serve the others. BUILD_FOLDER is one configured with -DCGCN_UNITY=OFF (the
debug preset); nothing has to be built in it. No code is generated, which takes most of a compiler's time. Exit code 1 if a source does not compile.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    del words[at:at + 2]
    names = [os.path.basename(word) for word in words]
    if "ccache" in names:  # which keeps nothing of this
        del words[:names.index("ccache") + 1]
    words = [word for word in words if word not in ("-c", "-g")] + ["-fsyntax-only"]
    ran = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
    return ran.returncode, ran.stderr


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    with open(folder / "compile_commands.json") as file:
        entries = json.load(file)
    entries = [entry for entry in entries if folder not in pathlib.Path(entry["file"]).parents]  # not those that the build makes
    # The largest first: none is left over at the end for one core.
    entries.sort(key=lambda entry: -os.path.getsize(entry["file"]))
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for status, errors in pool.map(check, entries):
            if status != 0:
                bad += 1
                print(errors, end="")
    print(f"{len(entries)} sources compiled by themselves, {bad} failed")
    return 1 if bad or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
