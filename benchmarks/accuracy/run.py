#!/usr/bin/env python3
"""Accuracy on real graphs: imports each, trains with several seeds, prints mean and deviation of the test score.

    benchmarks/accuracy/run.py --data FOLDER [--only cora …] [--seeds 5]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

# name: (source folder, options of `import`, options of `train`)
CASES = {
    "cora": ("cora", [], ["--recipe", "cora"]),
    "cora, random partition": ("cora", [], ["--recipe", "cora", "--partitioner", "random"]),
    "citeseer": ("citeseer", [], ["--recipe", "citeseer"]),
    "amazon photo": ("amazon_photo", [], ["--recipe", "small"]),
    "coauthor cs": ("coauthor_cs", [], ["--recipe", "small"]),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default="build/release/clustergcn")
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--only", nargs="*", help="cases by name")
    given = arguments.parse_args()

    def run(*words):
        return subprocess.run([given.program, *map(str, words)], check=True, text=True, capture_output=True).stdout

    print("| graph | test micro F1 | test macro F1 | seconds per epoch | options |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, (source, import_options, train_options) in CASES.items():
            if given.only and name not in given.only:
                continue
            store = pathlib.Path(folder) / source
            if not store.exists():
                run("import", given.data / source, store, "--quiet", *import_options)
            results = []
            for seed in range(1, given.seeds + 1):
                place = pathlib.Path(folder) / f"run-{len(list(pathlib.Path(folder).iterdir()))}"
                results.append(json.loads(run("train", store, "--run", place, "--seed", seed, "--json", *train_options)))
            micro = [100 * r["test"]["micro_f1"] for r in results]
            macro = [100 * r["test"]["macro_f1"] for r in results]
            deviation = [statistics.stdev(x) if len(x) > 1 else 0 for x in (micro, macro)]
            epoch = statistics.mean(r["seconds_per_epoch"] for r in results)
            print(f"| {name} | {statistics.mean(micro):.2f} ± {deviation[0]:.2f} | {statistics.mean(macro):.2f} ± "
                  f"{deviation[1]:.2f} | {epoch:.3f} | `{' '.join(train_options)}` |", flush=True)


if __name__ == "__main__":
    main()
