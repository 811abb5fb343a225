#!/usr/bin/python3
"""Cluster-GCN training in PyTorch, as a peer for speed and accuracy.

The same model on the same batches as `clustergcn train`: it reads the partition's layout (docs/formats.md) and does
what the engine does, written as well as PyTorch 1.13 on a CPU allows:
- A·X is computed once; blocks are built once and kept if a batch is one cluster (q = 1), else ahead on a thread;
- forward and backward are written by hand (no autograd graph), no gradient for the input, buffers reused;
- the sparse product is embedding_bag, the fastest that 1.13 has on a CPU (3 times its CSR and COO products);
- dropout masks are random bytes from NumPy's SFC64, made on the same thread ahead (5 times faster than bernoulli_);
- the parameters are one flat tensor, so that Adam is a handful of passes.

Run it with OPENBLAS_CORETYPE=SkylakeX on a processor that OpenBLAS does not know, as the engine does by itself.
"""
import argparse
import json
import os
import queue
import threading
import time

import numpy as np
import torch
from torch.nn.functional import embedding_bag

EPSILON = 1e-5  # of LayerNorm


class Layout:
    """The training graph in cluster order."""

    def __init__(self, path):
        meta = json.load(open(os.path.join(path, "meta.json")))

        def array(name, mode="r"):
            return np.load(os.path.join(path, name + ".npy"), mmap_mode=mode)

        self.offsets = np.asarray(array("adjacency_offsets")).astype(np.int64)
        self.targets = np.asarray(array("adjacency_targets")).astype(np.int64)
        self.nodes = meta["nodes"]
        if meta["features"]["kind"] == "sparse":  # made dense: PyTorch 1.13 has no fast product of such batches
            self.features = np.zeros((self.nodes, meta["features"]["columns"]), np.float32)
            rows = np.repeat(np.arange(self.nodes), np.diff(np.asarray(array("features_offsets")).astype(np.int64)))
            self.features[rows, np.asarray(array("features_columns"))] = np.asarray(array("features_values"))
        else:
            self.features = np.array(array("features"), dtype=np.float32)
        self.classes = meta["labels"]["classes"]
        self.multi_label = meta["labels"]["kind"] == "multi"
        labels = np.asarray(array("labels"))
        self.labels = (np.unpackbits(labels, axis=1, count=self.classes, bitorder="little") if self.multi_label
                       else labels)
        self.split = np.asarray(array("split"))
        if os.path.exists(os.path.join(path, "cluster_offsets.npy")):
            self.clusters = np.asarray(array("cluster_offsets")).astype(np.int64)
        else:
            self.clusters = np.array([0, self.nodes])


class Normalisation:
    """The scale of a row and the diagonal, as in the engine: mean, self, self+diagonal, symmetric."""

    def __init__(self, name, weight):
        self.name, self.weight = name, weight

    def apply(self, rows, columns, count):
        """The entries (with the diagonal if there is one) as sorted rows: offsets, columns, values."""
        degree = np.bincount(rows, minlength=count).astype(np.float32)
        if self.name == "mean":
            with np.errstate(divide="ignore"):
                values = (1 / degree)[rows]
        else:
            own = np.arange(count)
            scale = 1 / (degree + 1) if self.name != "symmetric" else 1 / np.sqrt(degree + 1)
            values = scale[rows] if self.name != "symmetric" else scale[rows] * scale[columns]
            diagonal = {"self": scale, "self+diagonal": (1 + self.weight) * scale, "symmetric": scale * scale}[self.name]
            rows, columns = np.concatenate([rows, own]), np.concatenate([columns, own])
            values = np.concatenate([values, diagonal])
            order = np.argsort(rows, kind="stable")
            rows, columns, values = rows[order], columns[order], values[order]
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
        return offsets, columns.astype(np.int32), values.astype(np.float32)


class Sparse:
    """A sparse matrix and its transpose, as the index lists that embedding_bag takes."""

    def __init__(self, offsets, columns, values):
        count = len(offsets) - 1
        rows = np.repeat(np.arange(count, dtype=np.int32), np.diff(offsets))
        order = np.argsort(columns, kind="stable")
        back = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(columns, minlength=count), out=back[1:])
        self.forward = tuple(map(torch.from_numpy, (columns, offsets, values)))
        self.backward = tuple(map(torch.from_numpy, (rows[order], back, values[order])))

    @staticmethod
    def multiply(matrix, dense):
        columns, offsets, values = matrix
        return embedding_bag(columns, dense, offsets, mode="sum", per_sample_weights=values, include_last_offset=True)


class Batches:
    """Groups of q clusters, edges between them restored, normalised on the batch's own degrees."""

    def __init__(self, layout, per_batch, normalisation, seed):
        self.layout, self.per_batch, self.normalisation = layout, per_batch, normalisation
        self.random = np.random.default_rng(seed)
        self.position = np.full(layout.nodes, -1, np.int64)
        self.trained = layout.split == 0
        self.kept = {}  # q = 1: every batch is built once

    def epoch(self):
        clusters = len(self.layout.clusters) - 1
        order = self.random.permutation(clusters)
        for begin in range(0, clusters, self.per_batch):
            chosen = np.sort(order[begin:begin + self.per_batch])
            if self.per_batch > 1:
                yield self.build(chosen)
            else:
                key = int(chosen[0])
                if key not in self.kept:
                    self.kept[key] = self.build(chosen)
                yield self.kept[key]

    def build(self, chosen):
        layout = self.layout
        ranges = [(layout.clusters[c], layout.clusters[c + 1]) for c in chosen]
        nodes = np.concatenate([np.arange(begin, end) for begin, end in ranges])
        entries = [slice(layout.offsets[begin], layout.offsets[end]) for begin, end in ranges]
        degrees = np.concatenate([np.diff(layout.offsets[begin:end + 1]) for begin, end in ranges])
        count = len(nodes)
        self.position[nodes] = np.arange(count)
        columns = self.position[np.concatenate([layout.targets[part] for part in entries])]
        inside = columns >= 0
        rows = np.repeat(np.arange(count), degrees)[inside]
        self.position[nodes] = -1
        block = Sparse(*self.normalisation.apply(rows, columns[inside], count))
        return torch.from_numpy(nodes), block, torch.from_numpy(np.flatnonzero(self.trained[nodes]))


class Masks:
    """Inverted dropout from random bytes: a share of `threshold` in 256 is dropped."""

    def __init__(self, rate, seed):
        self.threshold = round(rate * 256)
        self.scale = 256 / (256 - self.threshold)
        self.random = np.random.Generator(np.random.SFC64(seed))

    def make(self, rows, columns):
        if self.threshold == 0:
            return None
        noise = torch.frombuffer(bytearray(self.random.bytes(rows * columns)), dtype=torch.uint8)
        return (noise >= self.threshold).view(rows, columns).to(torch.float32).mul_(self.scale)


class Model:
    def __init__(self, features, hidden, classes, layers, dropout, seed):
        widths = [features] + [hidden] * (layers - 1) + [classes]
        self.shapes = [(2 * a, b) for a, b in zip(widths, widths[1:])]
        norms = [b for _, b in self.shapes[:-1]]
        total = sum(a * b for a, b in self.shapes) + 2 * sum(norms)
        self.flat, self.gradient = torch.zeros(total), torch.zeros(total)
        self.first, self.second, self.steps = torch.zeros(total), torch.zeros(total), 0
        self.weights, self.scales, self.shifts = self.views(self.flat)
        self.weight_gradients, self.scale_gradients, self.shift_gradients = self.views(self.gradient)
        generator = torch.Generator().manual_seed(seed)
        for weight in self.weights:
            bound = (6 / sum(weight.shape)) ** 0.5
            weight.uniform_(-bound, bound, generator=generator)
        for scale in self.scales:
            scale.fill_(1)
        self.masks = Masks(dropout, seed)

    def views(self, flat):
        at, groups = 0, ([], [], [])
        for index, shape in enumerate(self.shapes):
            parts = [(0, shape)] + ([(1, shape[1:]), (2, shape[1:])] if index + 1 < len(self.shapes) else [])
            for group, extents in parts:
                size = int(np.prod(extents))
                groups[group].append(flat[at:at + size].view(*extents))
                at += size
        return groups

    def make_masks(self, rows):
        return [self.masks.make(rows, shape[0]) for shape in self.shapes]

    def forward(self, first_input, matrix, masks=None):
        """first_input: [N(A)X, X] of the rows. Returns the logits and what backward needs."""
        kept, inputs = [], first_input
        for layer, weight in enumerate(self.weights):
            if layer > 0:
                inputs = torch.cat([Sparse.multiply(matrix.forward, hidden), hidden], 1)
            if masks is not None and masks[layer] is not None:
                inputs = inputs.mul_(masks[layer]) if layer > 0 else inputs * masks[layer]
            z = inputs @ weight
            if layer + 1 == len(self.weights):
                return z, kept + [(inputs,)]
            normed, mean, deviation = torch.native_layer_norm(z, z.shape[1:], self.scales[layer], self.shifts[layer],
                                                              EPSILON)
            hidden = normed.relu_()
            kept.append((inputs, z, mean, deviation, hidden))

    def backward(self, gradient, kept, matrix, masks):
        for layer in range(len(self.weights) - 1, -1, -1):
            weight, (inputs, *norm) = self.weights[layer], kept[layer]
            if norm:
                z, mean, deviation, hidden = norm
                gradient = gradient.masked_fill_(hidden == 0, 0)
                gradient, scale, shift = torch.ops.aten.native_layer_norm_backward(
                    gradient, z, z.shape[1:], mean, deviation, self.scales[layer], self.shifts[layer], [True] * 3)
                self.scale_gradients[layer].copy_(scale)
                self.shift_gradients[layer].copy_(shift)
            torch.mm(inputs.t(), gradient, out=self.weight_gradients[layer])
            if layer == 0:
                return
            down = gradient @ weight.t()
            if masks[layer] is not None:
                down.mul_(masks[layer])
            width = weight.shape[0] // 2
            gradient = Sparse.multiply(matrix.backward, down[:, :width].contiguous()).add_(down[:, width:])

    def step(self, rate):
        self.steps += 1
        self.first.lerp_(self.gradient, 0.1)
        self.second.mul_(0.999).addcmul_(self.gradient, self.gradient, value=0.001)
        correction1, correction2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        denominator = (self.second / correction2).sqrt_().add_(1e-8)
        self.flat.addcdiv_(self.first, denominator, value=-rate / correction1)


def loss_gradient(logits, labels, rows, multi_label):
    """Replaces the logits by the gradient of the mean cross-entropy over `rows`."""
    gradient = torch.zeros_like(logits)
    if len(rows) == 0:
        return gradient
    if multi_label:
        gradient[rows] = (torch.sigmoid(logits[rows]) - labels[rows]).div_(len(rows) * logits.shape[1])
    else:
        chosen = torch.softmax(logits[rows], 1)
        chosen[torch.arange(len(rows)), labels[rows]] -= 1
        gradient[rows] = chosen.div_(len(rows))
    return gradient


def matrix_of(layout, normalisation):
    """N(A) of the whole layout."""
    rows = np.repeat(np.arange(layout.nodes), np.diff(layout.offsets))
    return Sparse(*normalisation.apply(rows, layout.targets, layout.nodes))


def input_of(layout):
    """[D⁻¹A·X, X], once."""
    x = torch.from_numpy(layout.features)
    return torch.cat([Sparse.multiply(matrix_of(layout, Normalisation("mean", 0)).forward, x), x], 1)


def ahead(items, depth=2):
    """The items of an iterator, made on another thread."""
    results = queue.Queue(depth)

    def work():
        for item in items:
            results.put(item)
        results.put(None)

    threading.Thread(target=work, daemon=True).start()
    return iter(results.get, None)


def train_epoch(model, batches, inputs, labels, multi_label, rate):
    def prepared():
        for nodes, block, rows in batches.epoch():
            yield inputs[nodes], labels[nodes], block, rows, model.make_masks(len(nodes))

    for first_input, own_labels, block, rows, masks in ahead(prepared()):
        logits, kept = model.forward(first_input, block, masks)
        model.backward(loss_gradient(logits, own_labels, rows, multi_label), kept, block, masks)
        model.step(rate)


def scores(logits, layout):
    """F1 micro (multi-label) or accuracy, of validation and test nodes."""
    result = {}
    for name, role in (("validation", 1), ("test", 2)):
        rows = np.flatnonzero(layout.split == role)
        if layout.multi_label:
            guess, truth = logits[rows].numpy() > 0, layout.labels[rows] != 0
            hits, wrong = (guess & truth).sum(), (guess != truth).sum()
            result[name] = float(2 * hits / max(1, 2 * hits + wrong))
        else:
            result[name] = float((logits[rows].argmax(1).numpy() == layout.labels[rows]).mean()) if len(rows) else 0.0
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layout", help="a partition of a store: STORE/partitions/NAME")
    parser.add_argument("--store", help="score the model on all nodes of this store, exactly, after training")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--per-batch", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--normalisation", choices=["mean", "self", "self+diagonal", "symmetric"], default="mean")
    parser.add_argument("--lambda", dest="weight", type=float, default=1.0)
    parser.add_argument("--standardise", action="store_true")
    parser.add_argument("--eval-every", type=int, default=10, help="with --store: epochs between validations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)

    layout = Layout(options.layout)
    if options.standardise:
        trained = layout.features[layout.split == 0].astype(np.float64)
        mean, deviation = trained.mean(0), trained.std(0)
        deviation[deviation == 0] = 1
        layout.features = ((layout.features - mean) / deviation).astype(np.float32)
    normalisation = Normalisation(options.normalisation, options.weight)
    inputs = input_of(layout)
    labels = torch.from_numpy(layout.labels.astype(np.float32 if layout.multi_label else np.int64))
    batches = Batches(layout, options.per_batch, normalisation, options.seed)
    model = Model(layout.features.shape[1], options.hidden, layout.classes, options.layers, options.dropout,
                  options.seed)
    if options.store:
        whole = Layout(options.store)
        if options.standardise:
            whole.features = ((whole.features - mean) / deviation).astype(np.float32)
        whole_inputs, whole_matrix = input_of(whole), matrix_of(whole, normalisation)
    seconds, best = [], None
    for epoch in range(options.epochs):
        start = time.perf_counter()
        train_epoch(model, batches, inputs, labels, layout.multi_label, options.lr)
        seconds.append(time.perf_counter() - start)
        if options.store and ((epoch + 1) % options.eval_every == 0 or epoch + 1 == options.epochs):
            now = scores(model.forward(whole_inputs, whole_matrix)[0], whole)
            if best is None or now["validation"] > best["validation"]:
                best = dict(now, epoch=epoch + 1)
    print(json.dumps({"epoch_seconds": seconds, "finite": bool(torch.isfinite(model.flat).all()), "best": best}))


if __name__ == "__main__":
    main()
