#!/usr/bin/env python3
"""Time and memory of every stage against the size of the graph.

    benchmarks/memory/scale.py build/release/clustergcn FOLDER --millions 0.6 1.2 2.4 --memory 2200M

Generates graphs of the shape of Amazon2M with that many nodes (25 edges per node), partitions them into clusters of about
113 training nodes, trains one epoch and evaluates exactly, all under the budget. Prints a table, which plot_scale.py draws; memory is
what the kernel counted. A store that is in FOLDER already is used again.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

AMAZON2M_NODES, AMAZON2M_PARTS = 2_449_029, 15_000


def run(command):
    """Seconds, peak resident set of the process (and of those it waited for), and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return time.monotonic() - start, usage.ru_maxrss * 1024, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--millions", type=float, nargs="+", default=[0.6, 1.2, 2.4, 5, 10])
    parser.add_argument("--memory", default="8G")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=400)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print("| nodes | generate | partition | epoch | evaluation | peak of partition | peak of training |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for millions in arguments.millions:
        nodes = int(millions * 1e6)
        store = arguments.folder / f"{nodes}"
        generated = 0.0
        if not store.exists():
            generated = run([arguments.program, "generate", store, "--like", "amazon2m", "--quiet",
                             "--scale", nodes / AMAZON2M_NODES])[0]
        parts = max(1, AMAZON2M_PARTS * nodes // AMAZON2M_NODES)
        partitioned, partition_peak, _ = run([arguments.program, "partition", store, "--parts", parts, "--quiet", "--json",
                                              "--memory", arguments.memory])
        folder = arguments.folder / f"run-{nodes}"
        shutil.rmtree(folder, ignore_errors=True)
        _, training_peak, output = run([arguments.program, "train", store, "--run", folder, "--recipe", "none", "--parts", parts, "--per-batch", 10,
                            "--layers", arguments.layers, "--hidden", arguments.hidden, "--epochs", 1, "--json",
                            "--memory", arguments.memory])
        result = json.loads(output)
        print(f"| {nodes:,} | {generated:.0f} s | {partitioned:.0f} s | {result['seconds_per_epoch']:.1f} s "
              f"| {result['evaluation_seconds']:.1f} s | {partition_peak / 2**20:.0f} MiB "
              f"| {training_peak / 2**20:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
