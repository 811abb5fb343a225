#!/usr/bin/env python3
"""METIS, the multilevel partitioner and random clusters on one or more stores: edges kept against seconds.

    benchmarks/partition/compare.py bench_partition OUT.json STORE:PARTS [STORE:PARTS …] [--seeds 1 2 3] [--methods metis multilevel]
    benchmarks/partition/compare.py --table OUT.json
    benchmarks/partition/compare.py --draw OUT.json PICTURE.svg

The first form measures, one after the other, adds to OUT.json and prints a table of medians; the others show what was measured.
"""
import json
import os
import re
import statistics
import subprocess
import sys

METHODS = {"metis": "#e07b39", "multilevel-quick": "#7fb0ff", "multilevel": "#2f6fed", "multilevel-thorough": "#173a8a", "random": "#8a8f98"}


def taken_out(arguments, name, otherwise):
    """The words after --name up to the next option; they are removed from the arguments."""
    if name not in arguments:
        return otherwise
    at = arguments.index(name)
    end = next((i for i in range(at + 1, len(arguments)) if arguments[i].startswith("--")), len(arguments))
    words = arguments[at + 1:end]
    del arguments[at:end]
    return words


def measure(program, target, arguments):
    seeds = taken_out(arguments, "--seeds", ["1", "2", "3"])
    methods = taken_out(arguments, "--methods", list(METHODS))
    rows = load(target) if os.path.exists(target) else []
    for store, parts in (argument.rsplit(":", 1) for argument in arguments):
        for seed in seeds:
            for method in methods:
                run = subprocess.run([program, store, parts, method, seed], capture_output=True, text=True, check=True)
                seconds, processors, kept, balance, peak = re.search(
                    r": ([\d.]+) s \(([\d.]+) s .*kept ([\d.]+) %, balance ([\d.]+), .*peak (\d+) bytes", run.stdout).groups()
                rows.append({"store": store.rstrip("/").split("/")[-1], "parts": int(parts), "method": method, "seed": int(seed),
                             "seconds": float(seconds), "processor_seconds": float(processors), "kept": float(kept),
                             "balance": float(balance), "peak": int(peak)})
                with open(target, "w", encoding="utf-8") as file:
                    json.dump(rows, file, indent=1)
    table(rows)


def load(source):
    with open(source, encoding="utf-8") as file:
        return json.load(file)


def groups(rows):
    found = {}
    for row in rows:
        found.setdefault((row["store"], row["parts"]), {}).setdefault(row["method"], []).append(row)
    return found


def middle(rows, field):
    return statistics.median(row[field] for row in rows)


def table(rows):
    print("| graph | parts | METIS | multilevel | faster | processor seconds, METIS | multilevel | kept, METIS | multilevel | ratio | peak | balance |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (store, parts), by in groups(rows).items():
        old, new = by.get("metis"), by.get("multilevel")
        if not old or not new:
            continue
        print(f"| {store} | {parts:,} | {middle(old, 'seconds'):.3g} s | {middle(new, 'seconds'):.3g} s | "
              f"{middle(old, 'seconds') / middle(new, 'seconds'):.1f} × | {middle(old, 'processor_seconds'):.3g} s | "
              f"{middle(new, 'processor_seconds'):.3g} s | {middle(old, 'kept'):.2f} % | {middle(new, 'kept'):.2f} % | "
              f"{100 * middle(new, 'kept') / middle(old, 'kept'):.1f} % | {middle(new, 'peak') / middle(old, 'peak'):.2f} | "
              f"{max(row['balance'] for row in new):.3f} |")
    print("\n| graph | " + " | ".join(METHODS) + " |\n| --- |" + " --- |" * len(METHODS))
    for (store, _), by in groups(rows).items():
        cells = [f"{middle(by[method], 'seconds'):.3g} s, {middle(by[method], 'kept'):.2f} %" if method in by else "" for method in METHODS]
        print(f"| {store} | " + " | ".join(cells) + " |")


def draw(rows, target):
    """Edges kept against seconds: measure on an idle machine."""
    panels = list(groups(rows).items())
    width, height, pad = 250, 220, 46
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(panels)} {height + 40}" width="{width * len(panels)}" '
           f'height="{height + 40}"><style>text{{font:11px system-ui,sans-serif;fill:#444}}.title{{font-weight:600}}'
           '.grid{stroke:#ddd}</style><rect width="100%" height="100%" fill="#fff"/>']
    for number, ((store, parts), by) in enumerate(panels):
        left, right, top, bottom = number * width + pad, (number + 1) * width - 14, 26, height - 26
        longest = max(row["seconds"] for each in by.values() for row in each) * 1.1
        most = max(row["kept"] for each in by.values() for row in each) * 1.1
        out.append(f'<text x="{left}" y="16" class="title">{store}, {parts:,} clusters</text>')
        for share in (0, 0.25, 0.5, 0.75, 1):
            y = bottom - (bottom - top) * share
            out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                       f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{most * share:.0f} %</text>')
        for share in (0, 0.5, 1):
            out.append(f'<text x="{left + (right - left) * share:.0f}" y="{bottom + 16}" text-anchor="middle">{longest * share:.2g} s</text>')
        for method, each in by.items():
            for row in each:
                x = left + (right - left) * row["seconds"] / longest
                y = bottom - (bottom - top) * row["kept"] / most
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{METHODS[method]}" fill-opacity="0.75"/>')
    for number, (method, colour) in enumerate(METHODS.items()):
        x = pad + 140 * number
        out.append(f'<circle cx="{x}" cy="{height + 18}" r="4" fill="{colour}"/><text x="{x + 9}" y="{height + 22}">{method}</text>')
    out.append("</svg>\n")
    with open(target, "w", encoding="utf-8") as file:
        file.write("".join(out))


if len(sys.argv) == 4 and sys.argv[1] == "--draw":
    draw(load(sys.argv[2]), sys.argv[3])
elif len(sys.argv) == 3 and sys.argv[1] == "--table":
    table(load(sys.argv[2]))
elif len(sys.argv) > 3:
    measure(sys.argv[1], sys.argv[2], sys.argv[3:])
else:
    sys.exit(__doc__)
