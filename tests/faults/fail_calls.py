#!/usr/bin/env python3
"""Lets calls on files fail, at one place after another: EIO, ENOSPC, EACCES, EROFS, short writes.

A command ends well or with one message that names the cause, and a second run ends as if nothing had happened.

    tests/faults/fail_calls.py build/release/clustergcn --places 100 --library build/release/tests/libinject_faults.so
"""
import sys
from pathlib import Path

from support import COMMANDS, Workspace, parse_arguments

CALLS = "open,write,mkdir,rename,fsync,ftruncate"
FAULTS = [(CALLS, "EIO"), (CALLS, "ENOSPC"), ("open,mkdir,rename", "EACCES"), ("open,mkdir,rename", "EROFS"),
          ("write", "short"), ("write", "full"), ("pread", "EIO")]


def main():
    if "--library" not in sys.argv:
        sys.exit(__doc__)
    library = Path(sys.argv.pop(sys.argv.index("--library") + 1)).resolve()
    sys.argv.remove("--library")
    arguments = parse_arguments(__doc__, places=2)
    work = Workspace(arguments.program, arguments.seed)

    def run(words, folder, calls, error, working):
        return work.run(words, folder, LD_PRELOAD=str(library), CGCN_FAULT=f"{calls}:{error}:{working}:{folder}",
                        CGCN_FAULT_COUNT=str(work.root / "count"))

    runs = 0
    for command in COMMANDS:
        for calls, error in FAULTS:
            count_file = work.root / "count"
            count_file.unlink(missing_ok=True)
            run(command.words, work.fresh(), calls, "none", 0)
            count = max(map(int, count_file.read_text().split()), default=0)
            places = range(count) if count <= arguments.places else work.random.sample(range(count), arguments.places)
            for place in places:
                folder = work.fresh()
                what = f"{command.name}, {error} from call {place} of {count} on ({calls})"
                outcome = run(command.words, folder, calls, error, place)
                runs += 1
                allowed = (0,) if error == "short" else (0, 1)
                if work.check_outcome(what, outcome, allowed):
                    work.check_again(what, command, folder)
    work.finish(f"{runs} commands with faults")


main()
