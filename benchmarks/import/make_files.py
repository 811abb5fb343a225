#!/usr/bin/env python3
"""Writes source files of the size of the paper's data sets, for measuring `clustergcn import`.

  make_files.py reddit FOLDER     GraphSAGE JSON: 232,965 nodes, 11,606,919 edges, 602 features
  make_files.py amazon2m FOLDER   OGB CSV (gzip): 2,449,029 nodes, 61,859,140 edges, 100 features
  --scale 0.01                    the same, smaller

Edges are random and features are drawn from a pool of rows: what is measured is reading, not learning.
"""
import argparse
import gzip
import json
import os

import numpy as np

CHUNK = 500_000


def edges(random, nodes, count):
    """Chunks of (from, to), from ascending as networkx and OGB write them."""
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        low, high = nodes * start // count, max(nodes * (start + size) // count, nodes * start // count + 1)
        yield np.sort(random.integers(low, high, size)), random.integers(0, nodes, size)


def write_reddit(folder, scale):
    nodes, links, columns = int(232_965 * scale), int(11_606_919 * scale), 602
    random = np.random.default_rng(1)
    ids = ["t3_%05x" % (v * 7919 % 1048573) for v in range(nodes)]
    prefix = os.path.join(folder, "reddit")
    roles = random.choice(3, nodes, p=[0.66, 0.1, 0.24])
    with open(prefix + "-G.json", "w") as out:
        out.write('{"directed": false, "graph": {"name": "disjoint_union( ,  )"}, "nodes": [')
        out.write(", ".join('{"test": %s, "id": "%s", "val": %s}' % (str(r == 2).lower(), i, str(r == 1).lower())
                            for i, r in zip(ids, roles)))
        out.write('], "links": [')
        separator = ""
        for source, target in edges(random, nodes, links):
            text = ", ".join(['{"source": %d, "target": %d}' % pair for pair in zip(source.tolist(), target.tolist())])
            out.write(separator + text)
            separator = ", "
        out.write('], "multigraph": false}')
    with open(prefix + "-id_map.json", "w") as out:
        json.dump({i: v for v, i in enumerate(ids)}, out)
    with open(prefix + "-class_map.json", "w") as out:
        json.dump({i: int(c) for i, c in zip(ids, random.integers(0, 41, nodes))}, out)
    features = np.lib.format.open_memmap(prefix + "-feats.npy", "w+", np.float64, (nodes, columns))
    for start in range(0, nodes, 10_000):
        block = features[start:start + 10_000]
        block[:] = random.standard_normal(block.shape)


def write_amazon2m(folder, scale):
    nodes, count, columns = int(2_449_029 * scale), int(61_859_140 * scale), 100
    random = np.random.default_rng(1)
    raw, split = os.path.join(folder, "raw"), os.path.join(folder, "split", "sales_ranking")
    os.makedirs(raw, exist_ok=True)
    os.makedirs(split, exist_ok=True)

    def create(path):
        return gzip.open(path, "wb", compresslevel=1)

    with create(os.path.join(raw, "edge.csv.gz")) as out:
        for source, target in edges(random, nodes, count):
            out.write("".join(["%d,%d\n" % pair for pair in zip(source.tolist(), target.tolist())]).encode())
    pool = [",".join("%.6f" % x for x in row) + "\n" for row in random.standard_normal((20_000, columns))]
    with create(os.path.join(raw, "node-feat.csv.gz")) as out:
        for start in range(0, nodes, 20_000):
            picks = random.integers(0, len(pool), min(20_000, nodes - start)).tolist()
            out.write("".join([pool[i] for i in picks]).encode())
    lists = {"node-label": random.integers(0, 47, nodes), "num-node-list": [nodes], "num-edge-list": [count]}
    for name, values in lists.items():
        with create(os.path.join(raw, name + ".csv.gz")) as out:
            out.write("".join("%d\n" % v for v in values).encode())
    order = random.permutation(nodes)
    for name, begin, end in (("train", 0, 0.08), ("valid", 0.08, 0.1), ("test", 0.1, 1)):
        with create(os.path.join(split, name + ".csv.gz")) as out:
            out.write("".join("%d\n" % v for v in order[int(begin * nodes):int(end * nodes)]).encode())


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("shape", choices=["reddit", "amazon2m"])
parser.add_argument("folder")
parser.add_argument("--scale", type=float, default=1)
arguments = parser.parse_args()
os.makedirs(arguments.folder, exist_ok=True)
{"reddit": write_reddit, "amazon2m": write_amazon2m}[arguments.shape](arguments.folder, arguments.scale)
