#!/usr/bin/env python3
"""What every method of the paper reaches on one graph, with the same model, optimiser and evaluation.

    benchmarks/methods/scores.py PROGRAM STORE [--epochs 30] [--full-batch-epochs 300] [--seeds 1] [-- options of train]

Prints a Markdown table: test micro F1 of the model that was best on validation, epochs, embeddings computed an epoch, and the memory
of a step with its history. The whole-graph method takes one step an epoch and gets epochs of its own number.
"""
import argparse
import statistics

from training import METHODS, options_after_dashes, train


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--full-batch-epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    own, options = options_after_dashes()
    arguments = parser.parse_args(own)
    print("| method | test micro F1, % | epochs | embeddings per epoch | workspace and history, MiB |\n| --- | ---: | ---: | ---: | ---: |")
    for method in arguments.methods:
        epochs = arguments.full_batch_epochs if method == "full-batch" else arguments.epochs
        results = [train(arguments.program, arguments.store, method,
                         ["--epochs", epochs, "--eval-every", max(1, epochs // 10), "--seed", seed, *options])
                   for seed in range(1, arguments.seeds + 1)]
        scores = [100 * result["test"]["micro_f1"] for result in results]
        spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
        last = results[-1]
        print(f"| {method} | {statistics.mean(scores):.1f}{spread} | {epochs} | {last['embeddings_per_epoch']:,} | "
              f"{(last['workspace_bytes'] + last['history_bytes']) / 2**20:.1f} |", flush=True)


if __name__ == "__main__":
    main()
