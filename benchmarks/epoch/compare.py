#!/usr/bin/env python3
"""Two builds of bench_epoch in turn, or one in two precisions: milliseconds per step of each, and the ratio, by the best
and by the median round.

  benchmarks/epoch/compare.py NEW OLD [--rounds 5] [--threads N] [--precision NEW_PRECISION,OLD_PRECISION] [SHAPE …]
"""
import argparse
import statistics
import subprocess

SHAPES = ["ppi-3x512", "ppi-5x512", "ppi-5x2048", "reddit-4x128", "amazon2m-3x400"]


def step_ms(program, shape, threads, precision):
    words = [program, "--rounds", "1", "--threads", str(threads), "--precision", precision, shape]
    line = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return float(line.split()[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("new")
    parser.add_argument("old")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--precision", default="float32", help="of both, or two with a comma")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=SHAPES)
    options = parser.parse_intermixed_args()
    precisions = options.precision.split(",") * 2
    print(f"{'shape':<16}{'new best':>10}{'old best':>10}{'ratio':>8}{'new median':>12}{'old median':>12}{'ratio':>8}")
    for shape in options.shapes:
        new, old = [], []
        for _ in range(options.rounds):
            new.append(step_ms(options.new, shape, options.threads, precisions[0]))
            old.append(step_ms(options.old, shape, options.threads, precisions[1]))
        medians = statistics.median(new), statistics.median(old)
        print(f"{shape:<16}{min(new):>10.2f}{min(old):>10.2f}{min(new) / min(old):>8.3f}"
              f"{medians[0]:>12.2f}{medians[1]:>12.2f}{medians[0] / medians[1]:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
