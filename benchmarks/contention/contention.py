#!/usr/bin/env python3
"""How training behaves on a machine that is not its own.

Trains the PPI shape (3 x 512), the Reddit shape (4 x 128) and Cora in turn
  idle       on the idle machine, all cores
  one        the same with --threads 1
  many       with --threads 64
  busy       with one other busy process
  two        two trainings at once, each with all cores
  quota      in a control group with a quota of one core, against `one`
and prints the median seconds per epoch and the ratio to `idle` (for `quota`: to `one`). With --before PROGRAM, an older build
takes its turns between, and its figures stand in columns of their own.

  benchmarks/contention/contention.py PROGRAM --work FOLDER [--before PROGRAM] [--cora FOLDER] [--rounds 3]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

SHAPES = {
    "ppi-3x512": ["--layers", "3", "--hidden", "512", "--parts", "50", "--per-batch", "1", "--epochs", "4"],
    "reddit-4x128": ["--layers", "4", "--hidden", "128", "--parts", "1500", "--per-batch", "20", "--epochs", "3"],
    "cora": ["--recipe", "cora"],
}
GROUP = pathlib.Path("/sys/fs/cgroup")


def run(*words, **keywords):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, **keywords)


def make_stores(program, work, cora):
    stores = {}
    for shape in SHAPES:
        store = work / shape
        if shape == "cora":
            if cora is None:
                continue
            if not store.exists():
                run(program, "import", cora, store)
        elif not store.exists():
            run(program, "generate", store, "--like", shape.split("-")[0])
        stores[shape] = store
    return stores


def start(program, store, shape, folder, *more, **keywords):
    shutil.rmtree(folder, ignore_errors=True)
    words = [program, "train", store, "--run", folder, "--quiet", *SHAPES[shape], *more]
    if "--recipe" not in words:
        words += ["--recipe", "none"]
    if shape != "cora":
        words += ["--eval-every", "1000000"]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **keywords)


def epoch_seconds(process, folder):
    problem = process.communicate()[1].decode()
    if process.returncode != 0:
        sys.exit(f"training failed: {problem}")
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record["seconds"] + record.get("validation_seconds", 0) for record in records]


class Busy:
    def __enter__(self):
        self.process = subprocess.Popen(["sh", "-c", "while :; do :; done"])

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def quota_group():
    """A control group with a quota of one core; None if this user may make none."""
    group = GROUP / "clustergcn-contention"
    try:
        if not (GROUP / "cgroup.controllers").exists():
            group = GROUP / "cpu" / "clustergcn-contention"
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_quota_us").write_text("100000")
            return group
        (GROUP / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir(exist_ok=True)
        (group / "cpu.max").write_text("100000 100000")
        return group
    except OSError as problem:
        print(f"no control group with a quota can be made here: {problem}", file=sys.stderr)
        return None


def measure(program, store, shape, scenario, work, group):
    folders = [work / "run-1", work / "run-2"]
    if scenario == "busy":
        with Busy():
            return epoch_seconds(start(program, store, shape, folders[0]), folders[0])
    if scenario == "two":
        both = [start(program, store, shape, folder) for folder in folders]
        return [second for process, folder in zip(both, folders) for second in epoch_seconds(process, folder)]
    if scenario == "quota":
        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))
        return epoch_seconds(start(program, store, shape, folders[0], preexec_fn=enter), folders[0])
    more = {"idle": [], "one": ["--threads", "1"], "many": ["--threads", "64"]}[scenario]
    return epoch_seconds(start(program, store, shape, folders[0], *more), folders[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--before")
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--cora", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--scenarios", nargs="*", default=["idle", "one", "many", "busy", "two", "quota"])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    stores = make_stores(options.program, options.work, options.cora)
    programs = {"now": options.program} | ({"before": options.before} if options.before else {})
    group = quota_group() if "quota" in options.scenarios else None
    print(f"{'shape':<14}{'scenario':<10}" + "".join(f"{name + ' ms':>12}{'ratio':>8}" for name in programs))
    for shape in options.shapes:
        if shape not in stores:
            continue
        # The partition and A.X are made once, outside of what is measured.
        for program in programs.values():
            measure(program, stores[shape], shape, "idle", options.work, group)
        found = {name: {scenario: [] for scenario in options.scenarios} for name in programs}
        for _ in range(options.rounds):
            for scenario in options.scenarios:
                if scenario == "quota" and group is None:
                    continue
                for name, program in programs.items():
                    found[name][scenario] += measure(program, stores[shape], shape, scenario, options.work, group)
        for scenario in options.scenarios:
            line = f"{shape:<14}{scenario:<10}"
            for name in programs:
                if not found[name][scenario]:
                    continue
                reference = "one" if scenario == "quota" else "idle"
                median = statistics.median(found[name][scenario])
                line += f"{1e3 * median:>12.1f}{median / statistics.median(found[name][reference] or [median]):>8.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
