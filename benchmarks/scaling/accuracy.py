#!/usr/bin/env python3
"""How --batches-per-step changes what is learnt: test F1 for S = 1 … 32 with the same number of epochs, with the same learning rate and with one that
grows with S.

  benchmarks/scaling/accuracy.py build/release/clustergcn STORE [--parts 64] [--per-batch 1] [--epochs 40] [--lr 0.01] [--seeds 3] [--slots 1,2,4,8,16,32] [-- OPTIONS of train]
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile

SCALES = {"lr": lambda slots: 1, "lr * sqrt(S)": math.sqrt, "lr * S": float}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store")
    parser.add_argument("--parts", default="64")
    parser.add_argument("--per-batch", default="1")
    parser.add_argument("--epochs", default="40")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--slots", default="1,2,4,8,16,32")
    own, others = (sys.argv[1:], []) if "--" not in sys.argv else (sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:])
    arguments = parser.parse_args(own)
    print(f"{arguments.store}: test F1, mean and standard deviation of {arguments.seeds} seeds")
    print(f"{'S':>3}{'steps per epoch':>17}" + "".join(f"{name:>18}" for name in SCALES), flush=True)
    for slots in map(int, arguments.slots.split(",")):
        line = f"{slots:>3}{-(-int(arguments.parts) // int(arguments.per_batch) // slots) or 1:>17}"
        for scale in SCALES.values():
            if slots == 1 and scale is not SCALES["lr"]:
                line += f"{'':>18}"
                continue
            scores = []
            for seed in range(1, arguments.seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    command = [arguments.program, "train", arguments.store, "--run", f"{folder}/run", "--parts", arguments.parts, "--per-batch", arguments.per_batch,
                               "--epochs", arguments.epochs, "--lr", str(arguments.lr * scale(slots)), "--batches-per-step", str(slots), "--seed", str(seed),
                               "--json", "--quiet", "--threads", "1"] + others
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode != 0 and "became" not in done.stderr:
                        sys.exit(done.stderr)
                    scores.append(100 * json.loads(done.stdout)["test"]["micro_f1"] if done.returncode == 0 else float("nan"))
            spread = statistics.stdev(scores) if len(scores) > 1 else 0
            line += f"{statistics.mean(scores):>12.2f} ± {spread:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
