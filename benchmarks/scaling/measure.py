#!/usr/bin/env python3
"""What a step costs on several processes of this machine: compute, waiting, communication and bytes, beside one process.

  benchmarks/scaling/measure.py build/release/clustergcn [--shapes ppi,reddit,amazon2m] [--scale 0.1] [--slots 2] [--epochs 2] [--ranks 1x2,2x1]

Trains each shape with R ranks of T threads (RxT) at the same --batches-per-step, and prints the time of a step relative to the first
configuration. The graphs are generated once, in --folder. The weights of all configurations must be the same.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

# The paper's shapes and the models that docs/performance.md measures.
SHAPES = {
    "ppi": ["--layers", "3", "--hidden", "512", "--parts", "50", "--per-batch", "1", "--standardise"],
    "reddit": ["--layers", "4", "--hidden", "128", "--parts", "1500", "--per-batch", "20"],
    "amazon2m": ["--layers", "3", "--hidden", "400", "--parts", "15000", "--per-batch", "10"],
}
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")


def numbers(file):
    raw = pathlib.Path(file).read_bytes()
    return hashlib.sha256(raw[8 + struct.unpack("<Q", raw[:8])[0]:]).hexdigest()


def train(program, store, run, ranks, threads, options):
    command = [program, "train", store, "--run", run, "--threads", str(threads), "--json", "--keep", "last", "--eval-every", "1000000", "--recipe", "none"] + options
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), "--bind-to", "none"] + command
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shapes", default="ppi,reddit,amazon2m")
    parser.add_argument("--scale", default="0.1", help="of the generated graphs; clusters shrink with it")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--ranks", default="1x2,2x1")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "clustergcn-scaling"))
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    print(f"{'shape':<10}{'ranks':>6}{'threads':>8}{'ms/step':>9}{'ratio':>7}{'compute':>9}{'waiting':>9}{'comm.':>7}{'MB sent/step':>14}")
    for shape in arguments.shapes.split(","):
        store = f"{arguments.folder}/{shape}-{arguments.scale}"
        if not os.path.exists(store):
            subprocess.run([arguments.program, "generate", store, "--like", shape, "--scale", arguments.scale, "--quiet"], check=True)
        options = list(SHAPES[shape])
        parts = options.index("--parts") + 1
        per_batch = int(options[options.index("--per-batch") + 1])
        options[parts] = str(max(4 * arguments.slots * per_batch, int(int(options[parts]) * float(arguments.scale))))
        first, weights = None, set()
        for pair in arguments.ranks.split(","):
            ranks, threads = (int(n) for n in pair.split("x"))
            run = tempfile.mkdtemp(dir=arguments.folder) + "/run"
            result = train(arguments.program, store, run, ranks, threads, options + ["--epochs", str(arguments.epochs), "--batches-per-step", str(arguments.slots)])
            batches = -(-int(options[parts]) // per_batch)
            steps = arguments.epochs * -(-batches // arguments.slots)
            seconds = result["train_seconds"] / steps
            first = first or seconds
            weights.add(numbers(f"{run}/last.safetensors"))
            ranked = result["ranks"] or [{"compute_seconds": result["train_seconds"], "waiting_seconds": 0, "communication_seconds": 0, "bytes_sent": 0}]
            mean = {key: sum(r[key] for r in ranked) / len(ranked) for key in ranked[0] if key.endswith("seconds") or key == "bytes_sent"}
            share = 100 / result["train_seconds"]
            print(f"{shape:<10}{ranks:>6}{threads:>8}{1e3 * seconds:>9.2f}{seconds / first:>7.2f}{share * mean['compute_seconds']:>7.0f} %"
                  f"{share * mean['waiting_seconds']:>7.0f} %{share * mean['communication_seconds']:>5.0f} %{mean['bytes_sent'] / steps / 1e6:>14.2f}", flush=True)
            shutil.rmtree(os.path.dirname(run))
        if len(weights) != 1:
            sys.exit("error: the configurations have different weights")


if __name__ == "__main__":
    main()
