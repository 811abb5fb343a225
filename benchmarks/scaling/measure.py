#!/usr/bin/env python3
"""What a step costs on several processes of this machine: compute, waiting, communication and bytes, compared with one process.

  benchmarks/scaling/measure.py build/release/clustergcn [--shapes ppi,reddit,amazon2m] [--scale 0.1] [--slots 2] [--epochs 2] [--ranks 1x2,2x1] [--rounds 1]

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
        command = ["mpirun", "-n", str(ranks), "--map-by", f"slot:PE={threads}", "--bind-to", "core"] + command
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def prepare(program, shape, scale, slots, folder):
    """The generated graph, the options of its training, and the batches of an epoch."""
    os.makedirs(folder, exist_ok=True)
    store = f"{folder}/{shape}-{scale}"
    if not os.path.exists(store):
        subprocess.run([program, "generate", store, "--like", shape, "--scale", scale, "--quiet"], check=True)
    options = list(SHAPES[shape])
    parts, per_batch = options.index("--parts") + 1, int(options[options.index("--per-batch") + 1])
    step = slots * per_batch  # an epoch is whole steps
    options[parts] = str(max(4, -(-int(int(options[parts]) * float(scale)) // step)) * step)
    return store, options, -(-int(options[parts]) // per_batch)


def show(shape, pair, result, steps, first):
    ranked = result["ranks"] or [{"compute_seconds": result["train_seconds"], "waiting_seconds": 0, "communication_seconds": 0, "bytes_sent": 0}]
    mean = {key: sum(r[key] for r in ranked) / len(ranked) for key in ranked[0] if key.endswith("seconds") or key == "bytes_sent"}
    share = 100 / result["train_seconds"]
    print(f"{shape:<10}{pair[0]:>6}{pair[1]:>8}{1e3 * result['train_seconds'] / steps:>9.2f}{result['train_seconds'] / first['train_seconds']:>7.2f}"
          f"{share * mean['compute_seconds']:>7.0f} %{share * mean['waiting_seconds']:>7.0f} %{share * mean['communication_seconds']:>5.0f} %"
          f"{mean['bytes_sent'] / steps / 1e6:>14.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shapes", default="ppi,reddit,amazon2m")
    parser.add_argument("--scale", default="0.1", help="of the generated graphs; clusters shrink with it")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--ranks", default="1x2,2x1")
    parser.add_argument("--rounds", type=int, default=1, help="each configuration is trained so often, in turn; the fastest counts")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "clustergcn-scaling"))
    arguments = parser.parse_args()
    print(f"{'shape':<10}{'ranks':>6}{'threads':>8}{'ms/step':>9}{'ratio':>7}{'compute':>9}{'waiting':>9}{'comm.':>7}{'MB sent/step':>14}")
    for shape in arguments.shapes.split(","):
        store, options, batches = prepare(arguments.program, shape, arguments.scale, arguments.slots, arguments.folder)
        pairs = [tuple(int(n) for n in pair.split("x")) for pair in arguments.ranks.split(",")]
        best, weights = {}, set()
        for _ in range(arguments.rounds):
            for pair in pairs:
                run = tempfile.mkdtemp(dir=arguments.folder) + "/run"
                result = train(arguments.program, store, run, *pair, options + ["--epochs", str(arguments.epochs), "--batches-per-step", str(arguments.slots)])
                weights.add(numbers(f"{run}/last.safetensors"))
                shutil.rmtree(os.path.dirname(run))
                if pair not in best or result["train_seconds"] < best[pair]["train_seconds"]:
                    best[pair] = result
        for pair in pairs:
            show(shape, pair, best[pair], arguments.epochs * -(-batches // arguments.slots), best[pairs[0]])
        if len(weights) != 1:
            sys.exit("error: the configurations have different weights")


if __name__ == "__main__":
    main()
