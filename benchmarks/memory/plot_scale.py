#!/usr/bin/env python3
"""Draws the table that scale.py prints: seconds and memory against the number of nodes, on logarithmic axes.

    benchmarks/memory/plot_scale.py docs/results.md docs/pictures/scale.svg

The first file is any Markdown that holds the table. A thin grey line has the slope of what grows in proportion.
"""
import html
import math
import re
import sys

WIDTH, HEIGHT, LEFT, TOP = 430, 300, 62, 46
COLOURS = ["#2f6fed", "#e07b39", "#2a9d62", "#8e5bd0"]


def read_table(path):
    """Column titles, and rows of numbers: nodes first."""
    titles, rows = [], []
    for line in open(path, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "nodes":
            titles = cells
        elif titles and re.match(r"^[\d,]{6,}", cells[0]):
            numbers = [re.match(r"[\d,.]+", cell) for cell in cells]
            rows.append([float(found.group().replace(",", "")) if found else math.nan for found in numbers])
        elif rows:
            break
    if not rows:
        sys.exit(f"{path}: has no table of scale.py")
    return titles, rows


def panel(titles, rows, columns, title, unit, x0):
    nodes = [row[0] for row in rows]
    values = [row[c] for row in rows for c in columns if row[c] > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    left, right = math.log10(nodes[0]) - 0.05, math.log10(nodes[-1]) + 0.05

    def place(n, value):
        return (x0 + LEFT + (math.log10(n) - left) / (right - left) * (WIDTH - LEFT - 12),
                TOP + HEIGHT - (math.log10(value) - low) / (high - low) * HEIGHT)

    parts = [f'<text x="{x0 + LEFT}" y="20" class="title">{html.escape(title)}</text>']
    for power in range(low, high + 1):
        _, y = place(nodes[0], 10**power)
        parts.append(f'<line x1="{x0 + LEFT}" x2="{x0 + WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                     f'<text x="{x0 + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:,} {unit}</text>')
    for n in nodes:
        x, _ = place(n, 10**low)
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{n / 1e6:g} M</text>')
    start = 10**low * 1.5
    (xa, ya), (xb, yb) = place(nodes[0], start), place(nodes[-1], start * nodes[-1] / nodes[0])
    parts.append(f'<line x1="{xa:.1f}" y1="{ya:.1f}" x2="{xb:.1f}" y2="{yb:.1f}" class="slope"/>')
    for colour, column in zip(COLOURS, columns):
        points = [place(row[0], row[column]) for row in rows if row[column] > 0]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" stroke="{colour}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
    for i, (colour, column) in enumerate(zip(COLOURS, columns)):
        y = TOP + HEIGHT + 42 + 18 * i
        parts.append(f'<circle cx="{x0 + LEFT + 4}" cy="{y - 4}" r="4" fill="{colour}"/>'
                     f'<text x="{x0 + LEFT + 14}" y="{y}">{html.escape(titles[column])}</text>')
    return parts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    titles, rows = read_table(sys.argv[1])
    parts = panel(titles, rows, [1, 2, 3, 4], "Seconds against nodes", "s", 0)
    parts += panel(titles, rows, [5, 6], "Peak memory against nodes", "MiB", WIDTH)
    style = ("text{font:12px system-ui,sans-serif;fill:#444}.title{font-size:15px;font-weight:600}polyline{fill:none;stroke-width:2}"
             ".grid{stroke:#ddd}.slope{stroke:#aaa;stroke-dasharray:4 4}")
    height = TOP + HEIGHT + 42 + 18 * 4
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" width="{2 * WIDTH}" height="{height}">'
                   f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n')


if __name__ == "__main__":
    main()
