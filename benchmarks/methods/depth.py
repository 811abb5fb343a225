#!/usr/bin/env python3
"""The paper's complexity table, measured: what an epoch of each method costs as the network grows deeper.

    benchmarks/methods/depth.py PROGRAM STORE [--layers 2 3 4 5 6] [--hidden 64] [--epochs 2] [-- options of train]

For every method and depth it trains a few epochs and prints a Markdown table of the seconds of an epoch, the embeddings computed in it,
and the memory that grows with the method: the step's workspace and the history of embeddings. Embeddings are exact counts; seconds
are the machine's.
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ["cluster", "full-batch", "sgd", "graphsage", "fastgcn", "vrgcn"]


def train(program, store, method, layers, arguments):
    run = Path(tempfile.mkdtemp()) / "run"
    command = [program, "train", store, "--method", method, "--layers", layers, "--hidden", arguments.hidden, "--epochs", arguments.epochs,
               "--eval-every", 10**6, "--run", run, "--json", *arguments.options]
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(run.parent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store")
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:cut])
    arguments.options = sys.argv[cut + 1:]
    columns = [
        ("seconds an epoch", lambda r: f"{r['seconds_per_epoch']:.3f}"),
        ("embeddings an epoch", lambda r: f"{r['embeddings_per_epoch']:,}"),
        ("workspace and history, MB", lambda r: f"{(r['workspace_bytes'] + r['history_bytes']) / 2**20:.1f}"),
    ]
    results = {(method, layers): train(arguments.program, arguments.store, method, layers, arguments)
               for method in arguments.methods for layers in arguments.layers}
    for title, show in columns:
        print(f"\n| {title} | " + " | ".join(f"L = {layers}" for layers in arguments.layers) + " |")
        print("| --- |" + " ---: |" * len(arguments.layers))
        for method in arguments.methods:
            print(f"| {method} | " + " | ".join(show(results[method, layers]) for layers in arguments.layers) + " |")


if __name__ == "__main__":
    main()
