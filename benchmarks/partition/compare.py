#!/usr/bin/env python3
"""METIS, the multilevel partitioner and random clusters on one or more stores: links kept against seconds.

    benchmarks/partition/compare.py bench_partition OUT.json STORE:PARTS [STORE:PARTS …] [--seeds 1 2 3]
    benchmarks/partition/compare.py --draw OUT.json PICTURE.svg

The first form measures, one after the other, and prints a table of medians; the second draws what was measured.
"""
import json
import re
import statistics
import subprocess
import sys

METHODS = ["metis", "multilevel", "random"]
COLOURS = {"metis": "#e07b39", "multilevel": "#2f6fed", "random": "#8a8f98"}


def measure(program, target, arguments):
    seeds = ["1", "2", "3"]
    if "--seeds" in arguments:
        at = arguments.index("--seeds")
        seeds, arguments = arguments[at + 1:], arguments[:at]
    rows = []
    for store, parts in (argument.rsplit(":", 1) for argument in arguments):
        for seed in seeds:
            for method in METHODS:
                run = subprocess.run([program, store, parts, method, seed], capture_output=True, text=True, check=True)
                seconds, kept, balance, peak = re.search(
                    r": ([\d.]+) s .*kept ([\d.]+) %, balance ([\d.]+), .*peak (\d+) bytes", run.stdout).groups()
                rows.append({"store": store.rstrip("/").split("/")[-1], "parts": int(parts), "method": method, "seed": int(seed),
                             "seconds": float(seconds), "kept": float(kept), "balance": float(balance), "peak": int(peak)})
    with open(target, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    table(rows)


def groups(rows):
    found = {}
    for row in rows:
        found.setdefault((row["store"], row["parts"]), {}).setdefault(row["method"], []).append(row)
    return found


def middle(rows, field):
    return statistics.median(row[field] for row in rows)


def table(rows):
    print("| graph | parts | METIS | multilevel | faster | kept, METIS | kept, multilevel | ratio | peak ratio | balance |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (store, parts), by in groups(rows).items():
        old, new = by["metis"], by["multilevel"]
        ratio = {field: middle(new, field) / middle(old, field) for field in ("seconds", "kept", "peak")}
        print(f"| {store} | {parts} | {middle(old, 'seconds'):.2f} s | {middle(new, 'seconds'):.2f} s | {1 / ratio['seconds']:.1f} × | "
              f"{middle(old, 'kept'):.2f} % | {middle(new, 'kept'):.2f} % | {100 * ratio['kept']:.1f} % | {ratio['peak']:.2f} | "
              f"{max(row['balance'] for row in new):.3f} |")


def draw(rows, target):
    panels = list(groups(rows).items())
    width, height, pad = 250, 220, 46
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(panels)} {height + 40}" width="{width * len(panels)}" '
           f'height="{height + 40}"><style>text{{font:11px system-ui,sans-serif;fill:#444}}.title{{font-weight:600}}'
           '.grid{stroke:#ddd}</style><rect width="100%" height="100%" fill="#fff"/>']
    for number, ((store, parts), by) in enumerate(panels):
        left, right, top, bottom = number * width + pad, (number + 1) * width - 10, 26, height - 26
        longest = max(row["seconds"] for each in by.values() for row in each) * 1.1
        out.append(f'<text x="{left}" y="16" class="title">{store}, {parts:,} clusters</text>')
        for share in range(0, 101, 25):
            y = bottom - (bottom - top) * share / 100
            out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                       f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>')
        for share in (0, 0.5, 1):
            out.append(f'<text x="{left + (right - left) * share:.0f}" y="{bottom + 16}" text-anchor="middle">{longest * share:.2g} s</text>')
        for method, each in by.items():
            for row in each:
                x, y = left + (right - left) * row["seconds"] / longest, bottom - (bottom - top) * row["kept"] / 100
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[method]}" fill-opacity="0.75"/>')
    for number, method in enumerate(METHODS):
        out.append(f'<circle cx="{pad + 110 * number}" cy="{height + 18}" r="4" fill="{COLOURS[method]}"/>'
                   f'<text x="{pad + 110 * number + 9}" y="{height + 22}">{method}</text>')
    out.append("</svg>\n")
    with open(target, "w", encoding="utf-8") as file:
        file.write("".join(out))


if len(sys.argv) == 4 and sys.argv[1] == "--draw":
    with open(sys.argv[2], encoding="utf-8") as source:
        draw(json.load(source), sys.argv[3])
elif len(sys.argv) > 3:
    measure(sys.argv[1], sys.argv[2], sys.argv[3:])
else:
    sys.exit(__doc__)
