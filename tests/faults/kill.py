#!/usr/bin/env python3
"""Kills every command at random moments. Nothing is half-written, and a second run ends as if nothing had happened.

    tests/faults/kill.py build/release/clustergcn --kills 500
"""
import signal
import time

from support import COMMANDS, Workspace, parse_arguments


def main():
    arguments = parse_arguments(__doc__, kills=24)
    work = Workspace(arguments.program, arguments.seed)
    killed = 0
    for number in range(arguments.kills):
        command = COMMANDS[number % len(COMMANDS)]
        folder = work.fresh()
        moment = work.random.uniform(0, command.seconds)
        process = work.start(command.words, folder)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        what = f"{command.name} killed after {moment:.3f} s (seed {arguments.seed}, number {number})"
        # What a command was about to replace is the old one or the new one, whole.
        for store in ("g", "old"):
            outcome = work.run(["info", store, "--quiet"], folder)
            if outcome.returncode != 0:
                work.fail(f"{what}: {store} is not whole", outcome.stderr)
        work.check_again(what, command, folder)
    work.finish(f"{arguments.kills} kills of {len(COMMANDS)} commands, {killed} of them before the end")


main()
