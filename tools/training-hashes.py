#!/usr/bin/env python3
"""Trains small configurations of every kind and prints a hash of the weights, of the optimiser's state and of the predictions of each:

    tools/training-hashes.py build/release/clustergcn > before.txt      # then change the code, build, and
    tools/training-hashes.py build/release/clustergcn | diff before.txt -

Only numbers are hashed, by name and shape, not the files that hold them. Every configuration runs with each number of threads (--threads, by
default 1,2,8), which must give the same hashes. The lines depend on the processor's instruction set: compare runs of one machine.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

# name: (graph, options of train). The options that a configuration shares with most others are in COMMON; later ones win.
FIXED = ["--recipe", "none"]  # unless a configuration names another one
COMMON = ["--hidden", "20", "--epochs", "3", "--parts", "6", "--per-batch", "2", "--batch-nodes", "96", "--layer-nodes", "64", "--keep", "last"]
BATCH_INPUT = ["--first-layer", "batch", "--dropout-place", "before"]
CONFIGURATIONS = {
    "cluster": ("dense", []),
    "cluster-plain": ("dense", ["--conv", "plain", "--bias", "--normalisation", "symmetric"]),
    "cluster-four-layers": ("dense", ["--layers", "4", "--residual", "--normalisation", "self+diagonal"]),
    "cluster-one-layer": ("dense", ["--layers", "1", "--bias"]),
    "cluster-narrow": ("dense", ["--hidden", "9", "--dropout", "0", "--no-layer-norm"]),
    "cluster-drop-before": ("dense", ["--dropout-place", "before", "--residual", "--layers", "4"]),
    "cluster-dense-head": ("dense", ["--head", "dense", "--clip", "0.5", "--weight-decay", "0.001"]),
    "cluster-multi-label": ("multi", ["--standardise"]),
    "cluster-memory": ("dense", ["--memory", "90M"]),
    "cluster-blocks": ("dense", ["--evaluation", "blocks", "--evaluation-blocks", "3", "--keep", "best"]),
    "cluster-resumed": ("dense", ["--resumed"]),
    "sparse": ("sparse", ["--bias"]),
    "sparse-plain": ("sparse", ["--conv", "plain", "--dropout", "0", "--dense-adam", "--weight-decay", "0.01", "--decay-scope", "first-layer"]),
    "sparse-batch": ("sparse", BATCH_INPUT + ["--normalise-rows", "--bias"]),
    "sparse-resumed": ("sparse", ["--resumed", "--schedule", "step"]),
    "identity": ("identity", []),
    "identity-multi-label": ("identity-multi", ["--layers", "2", "--conv", "plain"]),
    "full-batch": ("dense", ["--method", "full-batch"]),
    "full-batch-kipf": ("sparse", ["--recipe", "kipf", "--method", "full-batch"]),
    "full-batch-dense-input": ("dense", ["--method", "full-batch"] + BATCH_INPUT),
    "full-batch-drop-after": ("dense", ["--method", "full-batch", "--first-layer", "batch"]),
    "sgd": ("dense", ["--method", "sgd", "--layers", "2"]),
    "graphsage": ("dense", ["--method", "graphsage", "--fanout", "4,6"]),
    "graphsage-own": ("dense", ["--method", "graphsage", "--first-layer", "batch", "--head", "dense", "--no-layer-norm", "--dropout", "0", "--clip", "5"]),
    "graphsage-sparse": ("sparse", ["--method", "graphsage", "--conv", "plain"]),
    "fastgcn": ("dense", ["--method", "fastgcn"]),
    "fastgcn-multi-label": ("multi", ["--method", "fastgcn", "--importance", "norm"]),
    "vrgcn": ("dense", ["--method", "vrgcn"]),
    "vrgcn-cv": ("multi", ["--method", "vrgcn", "--control-variate", "cv", "--conv", "plain"]),
    "vrgcn-drop-before": ("dense", ["--method", "vrgcn", "--dropout-place", "before", "--normalisation", "self"]),
    "vrgcn-resumed": ("identity", ["--method", "vrgcn", "--resumed"]),
}


def npy(dtype, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (dtype, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def pack(code, values):
    return struct.pack("<%d%s" % (len(values), code), *values)


def write_sparse_source(folder):
    """A graph of 700 nodes and 5 communities with sparse features, as arrays that `import` reads."""
    rng = random.Random(7)
    n, columns, classes = 700, 60, 5
    labels = [rng.randrange(classes) for _ in range(n)]
    members = [[v for v in range(n) if labels[v] == c] for c in range(classes)]
    pairs = [(v, rng.choice(members[labels[v]]) if rng.random() < 0.8 else rng.randrange(n)) for v in range(n) for _ in range(4)]
    offsets, indices, values = [0], [], []
    for v in range(n):
        row = sorted(set(rng.randrange(12) + 12 * (labels[v] if rng.random() < 0.5 else rng.randrange(classes)) for _ in range(7)))
        indices += row
        values += [1 + rng.random() for _ in row]
        offsets.append(len(indices))
    split = [0 if v % 5 < 3 else 1 if v % 5 == 3 else 2 for v in range(n)]
    arrays = {"edge_index": npy("<i4", (2, len(pairs)), pack("i", [u for u, _ in pairs] + [v for _, v in pairs])),
              "labels": npy("<i4", (n,), pack("i", labels)), "split": npy("|u1", (n,), bytes(split))}
    for name, data in arrays.items():
        with open(os.path.join(folder, name + ".npy"), "wb") as out:
            out.write(data)
    with zipfile.ZipFile(os.path.join(folder, "features.npz"), "w") as out:
        out.writestr("indptr.npy", npy("<i4", (n + 1,), pack("i", offsets)))
        out.writestr("indices.npy", npy("<i4", (len(indices),), pack("i", indices)))
        out.writestr("data.npy", npy("<f4", (len(values),), pack("f", values)))
        out.writestr("shape.npy", npy("<i8", (2,), pack("q", [n, columns])))
        out.writestr("format.npy", npy("|S3", (), b"csr"))


def run(program, *arguments):
    done = subprocess.run([program, *arguments, "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s %s: %s" % (program, " ".join(arguments), done.stderr))


def make_graphs(program, folder):
    graphs = {name: os.path.join(folder, name) for name in ("dense", "multi", "identity", "identity-multi", "sparse")}
    shape = ["--nodes", "700", "--edges", "4000", "--classes", "6"]
    run(program, "generate", graphs["dense"], *shape, "--features", "24")
    run(program, "generate", graphs["multi"], *shape, "--features", "18", "--multi-label")
    run(program, "generate", graphs["identity"], *shape, "--identity")
    run(program, "generate", graphs["identity-multi"], *shape, "--identity", "--multi-label")
    source = os.path.join(folder, "source")
    os.mkdir(source)
    write_sparse_source(source)
    run(program, "import", source, graphs["sparse"])
    return graphs


def hash_tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    digest = hashlib.sha256()
    for name in sorted(key for key in header if key != "__metadata__"):
        begin, end = header[name]["data_offsets"]
        digest.update(("%s %s %s\n" % (name, header[name]["dtype"], header[name]["shape"])).encode())
        digest.update(data[begin:end])
    return digest.hexdigest()[:16]


def hash_array(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]  # the header is dtype and shape alone


def train(program, store, options, threads, folder):
    directory = os.path.join(folder, "run")
    shutil.rmtree(directory, ignore_errors=True)
    resumed = "--resumed" in options
    options = COMMON + ([] if "--recipe" in options else FIXED) + [option for option in options if option != "--resumed"] + ["--run", directory, "--threads", threads]
    options = [option for i, option in enumerate(options) if not is_overridden(options, i)]
    epochs = options.index("--epochs") + 1
    if resumed:
        run(program, "train", store, *options[:epochs], "1", *options[epochs + 1:])
        run(program, "train", "--run", directory, "--resume", "--epochs", options[epochs], "--threads", threads)
    else:
        run(program, "train", store, *options)
    optimiser = [name for name in os.listdir(directory) if name.startswith("optimiser-")]
    hashes = [hash_tensors(os.path.join(directory, "last.safetensors")), hash_tensors(os.path.join(directory, optimiser[0]))]
    output = os.path.join(folder, "out.npy")
    for what in (["probabilities"], ["embeddings", "--layer", "1"]):
        run(program, "predict", directory, "--what", *what, "--output", output, "--threads", threads)
        hashes.append(hash_array(output))
        os.remove(output)
    return hashes


def is_overridden(options, i):
    """Whether a later place names the same option as the one at place i, or as the one whose value stands there."""
    name = options[i] if options[i].startswith("--") else options[i - 1]
    place = i if options[i].startswith("--") else i - 1
    return name in options[place + 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--threads", default="1,2,8", help="numbers of threads, with commas")
    parser.add_argument("--only", default="", help="configurations whose names begin so")
    arguments = parser.parse_args()
    differing = []
    print("%-24s %-16s %-16s %-16s %-16s" % ("configuration", "weights", "optimiser", "probabilities", "embeddings"))
    with tempfile.TemporaryDirectory() as folder:
        graphs = make_graphs(arguments.program, folder)
        for name, (graph, options) in CONFIGURATIONS.items():
            if not name.startswith(arguments.only):
                continue
            found = [train(arguments.program, graphs[graph], options, threads, folder) for threads in arguments.threads.split(",")]
            if any(hashes != found[0] for hashes in found):
                differing.append(name)
            print("%-24s %s" % (name, " ".join(found[0])), flush=True)
    if differing:
        sys.exit("depend on the number of threads: " + ", ".join(differing))


if __name__ == "__main__":
    main()
