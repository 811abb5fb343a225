#!/usr/bin/env python3
"""The paper's complexity table, measured: what an epoch of each method costs as the network grows deeper.

    benchmarks/methods/depth.py PROGRAM STORE [--layers 2 3 4 5 6] [--hidden 64] [--epochs 2] [-- options of train]

For every method and depth it trains a few epochs and prints a Markdown table of the seconds of an epoch, the embeddings computed in it,
and the memory that grows with the method: the step's workspace and the history of embeddings. Embeddings are exact counts; seconds
are the machine's.
"""
import argparse

from training import METHODS, options_after_dashes, train


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store")
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    own, options = options_after_dashes()
    arguments = parser.parse_args(own)
    fixed = ["--hidden", arguments.hidden, "--epochs", arguments.epochs, "--eval-every", 10**6, *options]
    columns = [
        ("seconds per epoch", lambda r: f"{r['seconds_per_epoch']:.3f}"),
        ("embeddings per epoch", lambda r: f"{r['embeddings_per_epoch']:,}"),
        ("workspace and history, MiB", lambda r: f"{(r['workspace_bytes'] + r['history_bytes']) / 2**20:.1f}"),
    ]
    results = {(method, layers): train(arguments.program, arguments.store, method, ["--layers", layers, *fixed])
               for method in arguments.methods for layers in arguments.layers}
    for title, show in columns:
        print(f"\n| {title} | " + " | ".join(f"L = {layers}" for layers in arguments.layers) + " |")
        print("| --- |" + " ---: |" * len(arguments.layers))
        for method in arguments.methods:
            print(f"| {method} | " + " | ".join(show(results[method, layers]) for layers in arguments.layers) + " |")


if __name__ == "__main__":
    main()
