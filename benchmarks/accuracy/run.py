#!/usr/bin/env python3
"""Accuracy on real graphs and generated shapes: imports or generates each, trains with several seeds, and prints mean and deviation of the test score.

    benchmarks/accuracy/run.py --data FOLDER [--only cora …] [--settings default fixed recipe] [--seeds 5]

default: `train` without options. fixed: the fixed defaults (`--recipe none`). recipe: the best recipe by name. For the strongest of GCN, GraphSAGE and GAT on the same
stores: torch_baselines.py.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

# name: (source folder, or options of `generate`; the best recipe by name)
GRAPHS = {
    "cora": ("cora", ["--recipe", "cora"]),
    "citeseer": ("citeseer", ["--recipe", "citeseer"]),
    "amazon photo": ("amazon_photo", ["--recipe", "small"]),
    "coauthor cs": ("coauthor_cs", ["--recipe", "small"]),
    "wordnet": ("wordnet", ["--recipe", "none", "--transductive"]),
    "debtags": ("debtags", ["--recipe", "none", "--transductive"]),
    "twitch": ("twitch", ["--recipe", "none"]),
    "generated": (["--nodes", "10000", "--edges", "60000", "--classes", "10", "--features", "50"], ["--recipe", "small"]),
    "reddit shape": (["--like", "reddit", "--scale", "0.05"], ["--recipe", "reddit", "--parts", "75", "--epochs", "40"]),
    "ppi shape": (["--like", "ppi", "--scale", "0.25"], ["--recipe", "ppi", "--parts", "12", "--epochs", "100"]),
    "amazon2m shape": (["--like", "amazon2m", "--scale", "0.01"], ["--recipe", "amazon2m", "--parts", "150", "--epochs", "30"]),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="build/release/clustergcn")
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--stores", type=pathlib.Path, help="folder that keeps the graph stores; default: a temporary one")
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=0)
    arguments.add_argument("--only", nargs="*", choices=list(GRAPHS), metavar="GRAPH", help="graphs by name")
    arguments.add_argument("--settings", nargs="*", default=["default", "fixed", "recipe"], choices=["default", "fixed", "recipe"])
    given = arguments.parse_args()

    def run(*words):
        return subprocess.run([given.program, *map(str, words)], check=True, text=True, capture_output=True).stdout

    print("| graph | settings | test micro F1 | test macro F1 | epochs | seconds | options |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only or GRAPHS:
            source, recipe = GRAPHS[name]
            store = (given.stores or pathlib.Path(folder)) / name.replace(" ", "_")
            if not store.exists():
                if isinstance(source, str):
                    run("import", given.data / source, store, "--quiet")
                else:
                    run("generate", store, "--quiet", *source)
            options = {"default": [], "fixed": ["--recipe", "none"], "recipe": recipe}
            for settings in given.settings:
                results = []
                for seed in range(1, given.seeds + 1):
                    place = pathlib.Path(folder) / f"run-{len(list(pathlib.Path(folder).iterdir()))}"
                    results.append(json.loads(run("train", store, "--run", place, "--seed", seed, "--threads", given.threads, "--json",
                                                  *options[settings])))
                micro = [100 * r["test"]["micro_f1"] for r in results]
                macro = [100 * r["test"]["macro_f1"] for r in results]
                deviation = [statistics.stdev(x) if len(x) > 1 else 0 for x in (micro, macro)]
                print(f"| {name} | {settings} | {statistics.mean(micro):.2f} ± {deviation[0]:.2f} | {statistics.mean(macro):.2f} ± "
                      f"{deviation[1]:.2f} | {statistics.mean(r['epochs'] for r in results):.0f} | "
                      f"{statistics.mean(r['total_seconds'] for r in results):.1f} | `{' '.join(options[settings])}` |", flush=True)


if __name__ == "__main__":
    main()
