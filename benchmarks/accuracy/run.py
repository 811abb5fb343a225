#!/usr/bin/env python3
"""Accuracy on real graphs and generated shapes: imports or generates each, trains with several seeds, prints mean and deviation of the test score.

    benchmarks/accuracy/run.py --data FOLDER [--only cora …] [--settings auto fixed recipe] [--seeds 5]

auto: `train` without options. fixed: the fixed defaults (`--recipe none`). recipe: the best recipe by name. Seconds are those of the processor for one seed: partition, trials
of networks (once for all seeds) and all evaluations included. For the strongest of GCN, GraphSAGE and GAT on the same stores: torch_baselines.py.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

# name: (source folder, or options of `generate`; the best recipe by name)
GRAPHS = {
    "cora": ("cora", ["--recipe", "cora"]),
    "cora, random partition": ("cora", ["--recipe", "cora", "--partitioner", "random"]),
    "citeseer": ("citeseer", ["--recipe", "citeseer"]),
    "amazon photo": ("amazon_photo", ["--recipe", "small"]),
    "coauthor cs": ("coauthor_cs", ["--recipe", "small"]),
    "wordnet": ("wordnet", ["--recipe", "none", "--transductive"]),
    "debtags": ("debtags", ["--recipe", "none", "--transductive"]),
    "twitch": ("twitch", ["--recipe", "none"]),
    "generated": (["--nodes", "10000", "--edges", "60000", "--classes", "10", "--features", "50"], ["--recipe", "small"]),
    "ppi shape": (["--like", "ppi"], ["--recipe", "ppi"]),
    "reddit shape": (["--like", "reddit", "--scale", "0.1"], ["--recipe", "reddit", "--parts", "150", "--epochs", "40"]),
}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spread(score):
    return f"{100 * score['mean']:.2f} ± {100 * score['deviation']:.2f}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="build/release/clustergcn")
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--stores", type=pathlib.Path, help="folder that keeps the graph stores; default: a temporary one")
    arguments.add_argument("--seeds", type=int, default=5, help="at least 2")
    arguments.add_argument("--threads", type=int, default=0)
    arguments.add_argument("--only", nargs="*", choices=list(GRAPHS), metavar="GRAPH", help="graphs by name")
    arguments.add_argument("--settings", nargs="*", default=["recipe"], choices=["auto", "fixed", "recipe"])
    given = arguments.parse_args()

    def run(*words):
        return subprocess.run([given.program, *map(str, words)], check=True, text=True, capture_output=True).stdout

    print("| graph | settings | test micro F1 | test macro F1 | processor seconds | options |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        runs = 0
        for name in given.only or GRAPHS:
            source, recipe = GRAPHS[name]
            store = (given.stores or pathlib.Path(folder)) / name.replace(" ", "_")
            if not store.exists() and isinstance(source, str):
                run("import", given.data / source, store, "--quiet")
            elif not store.exists():
                run("generate", store, "--quiet", *source)
            for settings in given.settings:
                options = {"auto": [], "fixed": ["--recipe", "none"], "recipe": recipe}[settings]
                place, before = pathlib.Path(folder) / f"run-{(runs := runs + 1)}", processor_seconds()
                words = ["train", store, "--run", place, "--seeds", given.seeds, "--threads", given.threads, "--json", *options]
                scores = json.loads(run(*words))["scores"]["test"]
                seconds = (processor_seconds() - before) / given.seeds
                print(f"| {name} | {settings} | {spread(scores['micro_f1'])} | {spread(scores['macro_f1'])} | {seconds:.1f} | "
                      f"`{' '.join(options)}` |", flush=True)


if __name__ == "__main__":
    main()
