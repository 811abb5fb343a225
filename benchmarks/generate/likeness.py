#!/usr/bin/env python3
"""Shows that the generated shapes behave like the data sets they stand for, at full size.

  benchmarks/generate/likeness.py build/release/clustergcn FOLDER [links] [depth] [deep]

links: what METIS and a random partition keep of the edges at the paper's p (PPI 50, Reddit 1500, Amazon2M 15000).
depth: test F1 on the PPI shape with 2, 3 and 5 layers, and with 3 layers on a random partition, at equal epochs.
deep: 7 and 8 layers of the paper's plain form on the PPI shape, with Ã and with Ã + λ·diag(Ã), three seeds.
FOLDER receives the stores (about 2.5 GB with Amazon2M) and keeps them.
"""
import json
import pathlib
import shutil
import subprocess
import sys

PARTS = {"ppi": 50, "reddit": 1500, "amazon2m": 15000}


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout


def ensure_store(program, folder, shape):
    store = folder / shape
    if not store.exists():
        run(program, "generate", store, "--like", shape, "--quiet")
    return store


def show_links(program, folder):
    print("| shape | p | METIS keeps | random keeps |\n| --- | --- | --- | --- |")
    for shape, parts in PARTS.items():
        store = ensure_store(program, folder, shape)
        kept = {}
        for method in ("metis", "random"):
            text = run(program, "partition", store, "--parts", parts, "--partitioner", method, "--json")
            kept[method] = 100 * find(json.loads(text), "links_kept_share")
        print(f"| {shape} | {parts} | {kept['metis']:.2f} % | {kept['random']:.2f} % |", flush=True)


def find(value, key):
    """The value of a key anywhere in nested objects."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        for inner in value.values():
            found = find(inner, key)
            if found is not None:
                return found
    return None


def test_score(program, folder, name, *options):
    store, place = ensure_store(program, folder, "ppi"), folder / f"run-{name}"
    shutil.rmtree(place, ignore_errors=True)
    text = run(program, "train", store, "--recipe", "none", "--parts", 50, "--per-batch", 1, "--hidden", 128, "--eval-every", 10, "--json",
               "--run", place, *options)
    return 100 * json.loads(text)["test"]["micro_f1"]


def show_depth(program, folder, epochs=40):
    print(f"| layers | partition | test F1 after {epochs} epochs |\n| --- | --- | --- |")
    for layers, method in ((2, "metis"), (3, "metis"), (5, "metis"), (3, "random")):
        score = test_score(program, folder, f"{layers}-{method}", "--layers", layers, "--partitioner", method, "--epochs",
                           epochs)
        print(f"| {layers} | {method} | {score:.1f} |", flush=True)


def show_deep(program, folder, epochs=60, seeds=(1, 2, 3)):
    print(f"| layers | Ã, test F1 after {epochs} epochs, seeds {seeds} | Ã + diag(Ã) | Ã + 30·diag(Ã) |\n| --- | --- | --- | --- |")
    for layers in (7, 8):
        row = []
        for name, options in (("self", []), ("diagonal-1", ["--lambda", 1]), ("diagonal-30", ["--lambda", 30])):
            kind = "self+diagonal" if options else "self"
            row.append(", ".join("%.1f" % test_score(
                program, folder, f"{layers}-{name}", "--layers", layers, "--normalisation", kind, *options, "--conv", "plain",
                "--dropout", 0.1, "--epochs", epochs, "--seed", seed) for seed in seeds))
        print(f"| {layers} | " + " | ".join(row) + " |", flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[3:] or ["links", "depth", "deep"]
    if "links" in wanted:
        show_links(program, folder)
    if "depth" in wanted:
        show_depth(program, folder)
    if "deep" in wanted:
        show_deep(program, folder)


if __name__ == "__main__":
    main()
