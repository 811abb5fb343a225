#!/usr/bin/env python3
"""What Python costs: an epoch of fit over one of `clustergcn train` on the PPI shape, in turn; the peak memory of
from_scipy and fit on the Reddit shape, compared with the caller's arrays; and the time of `import clustergcn`.

  PYTHONPATH=build/release/python benchmarks/python/overhead.py PROGRAM --work FOLDER [--rounds 3] [--reddit]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

OPTIONS = {"layers": 3, "hidden": 512, "parts": 50, "per_batch": 1, "epochs": 4, "eval_every": 1000000, "seed": 1}


def epochs_of_program(program, store, run):
    shutil.rmtree(run, ignore_errors=True)
    words = [word for name, value in OPTIONS.items() for word in ("--" + name.replace("_", "-"), str(value))]
    subprocess.run([program, "train", store, "--recipe", "none", "--run", run, "--quiet", *words], check=True, capture_output=True)
    return [json.loads(line)["seconds"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def epochs_of_fit(graph):
    import clustergcn
    return list(clustergcn.ClusterGCNClassifier(recipe="none", **OPTIONS, verbose=0).fit(graph).history_["seconds"])


def import_seconds(module):
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - begun


def resident():
    """Bytes of the process that are in memory: its own, and shared memory that it has mapped."""
    fields = dict(line.split(":") for line in open("/proc/self/status"))
    return [int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem")]


def fit_in_memory(store):
    """Memory of a process that has the arrays, makes a graph of them and trains."""
    import numpy as np
    import scipy.sparse
    import clustergcn
    opened = clustergcn.Graph.open(store)
    X = np.array(opened.features)
    adjacency = scipy.sparse.csr_matrix((np.ones(len(opened.indices), np.float32), np.array(opened.indices).view(np.int32),
                                         np.array(opened.indptr).view(np.int64)), shape=(opened.num_nodes, opened.num_nodes))
    y, split = np.array(opened.labels), np.array(opened.split)
    del opened
    arrays = X.nbytes + adjacency.indices.nbytes + adjacency.indptr.nbytes + y.nbytes + split.nbytes
    begun = resident()
    graph = clustergcn.Graph.from_scipy(adjacency, X, y, split=split)
    made = resident()
    most = [0, 0]

    def on_epoch(_):
        most[:] = map(max, most, resident())
    clustergcn.ClusterGCNClassifier(recipe="none", layers=4, hidden=128, parts=1500, per_batch=20, epochs=1, verbose=0).fit(graph, on_epoch=on_epoch)
    print(f"Reddit shape: the caller's arrays {arrays / 2**20:.0f} MiB; from_scipy adds {(made[0] - begun[0]) / 2**20:.0f} MiB, "
          f"training {(most[0] - made[0]) / 2**20:.0f} MiB and {most[1] / 2**20:.0f} MiB of shared memory (clusters, A.X)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reddit", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for shape in ["ppi"] + ["reddit"] * options.reddit:
        if not (options.work / shape).exists():
            subprocess.run([options.program, "generate", options.work / shape, "--like", shape], check=True)
    own = [import_seconds("clustergcn") - import_seconds("numpy") for _ in range(5)]
    whole = [import_seconds("clustergcn") - import_seconds("sys") for _ in range(5)]
    print(f"import clustergcn: {1e3 * statistics.median(whole):.0f} ms, {1e3 * statistics.median(own):.0f} of them without NumPy's")
    import clustergcn
    graph = clustergcn.Graph.open(options.work / "ppi")
    epochs_of_program(options.program, options.work / "ppi", options.work / "run")  # makes the partition
    line, fit = [], []
    for _ in range(options.rounds):
        line += epochs_of_program(options.program, options.work / "ppi", options.work / "run")
        fit += epochs_of_fit(graph)
    print(f"PPI 3 x 512, an epoch: train {min(line):.3f} s best, {statistics.median(line):.3f} median; "
          f"fit {min(fit):.3f} best, {statistics.median(fit):.3f} median: "
          f"{100 * (min(fit) / min(line) - 1):+.1f} % and {100 * (statistics.median(fit) / statistics.median(line) - 1):+.1f} %")
    if options.reddit:
        fit_in_memory(options.work / "reddit")


if __name__ == "__main__":
    main()
