#!/usr/bin/env python3
"""The cost model of docs/scaling.md: efficiency on 2 … 64 machines from what one machine measures.

  benchmarks/scaling/model.py --batch MS --update MS --gradient MB --layers L [--rates 1,10,25] [--round-trip US] [--message US]

A step of S batches on R machines takes

  ceil(S/R) · batch + update + (R-1)/R · gradient · (1 + 1/L) / rate + 3 · round trip + 2 · (R-1) · (L+1) · message

Each machine computes its batches, and all update all weights (norm, Adam). The sum moves (R-1)/R of the gradient twice; the first time is hidden by the
backward pass but for the first layer's part, which is ready last. A message costs `message` of processor time, and there is one per layer, machine and
direction. Efficiency is the time of one machine for the same step, divided by R times that of R machines.
"""
import argparse
import math


def step_time(ranks, slots, a, rate):
    moved = (ranks - 1) / ranks * a.gradient * 1e6 * (1 + 1 / a.layers) / (rate * 1e9 / 8)
    return (math.ceil(slots / ranks) * a.batch * 1e-3 + a.update * 1e-3 +
            (0 if ranks == 1 else moved + 3e-6 * a.round_trip + 2e-6 * (ranks - 1) * (a.layers + 1) * a.message))


def efficiency(ranks, slots, a, rate):
    return step_time(1, slots, a, rate) / (ranks * step_time(ranks, slots, a, rate))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=float, required=True, help="ms of one batch on one machine")
    parser.add_argument("--update", type=float, required=True, help="ms of one update of the weights")
    parser.add_argument("--gradient", type=float, required=True, help="MB")
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--rates", default="1,10,25", help="Gbit/s")
    parser.add_argument("--round-trip", type=float, default=100, help="microseconds")
    parser.add_argument("--message", type=float, default=5, help="microseconds of processor time")
    a = parser.parse_args()
    print(f"{'Gbit/s':>6}{'machines':>10}" + "".join(f"{f'S = {k} R':>10}" for k in (1, 2, 4, 8)) + f"{'S for 85 %':>12}")
    for rate in map(float, a.rates.split(",")):
        for ranks in 2, 4, 8, 16, 32, 64:
            enough = next((k for k in range(1, 1000) if efficiency(ranks, k * ranks, a, rate) >= 0.85), None)
            print(f"{rate:>6g}{ranks:>10}" + "".join(f"{100 * efficiency(ranks, k * ranks, a, rate):>8.0f} %" for k in (1, 2, 4, 8)) +
                  f"{(str(enough) + ' R' if enough else '-'):>12}")


if __name__ == "__main__":
    main()
