#!/usr/bin/python3
"""Cluster-GCN training in PyTorch, as a peer for speed and accuracy.

The same model on the same batches as `clustergcn train`: it reads the partition's layout (docs/formats.md) and does
what the engine does, with PyTorch's operators alone, written as well as PyTorch 1.13 on a CPU allows:
- forward and backward by hand: no autograd graph, no gradient for the input, products into buffers that are kept;
- A·X is computed once, and with one cluster per batch (q = 1) every batch is built once;
- the sparse product is embedding_bag, the one vectorised sparse kernel of a build without MKL;
- the narrow last layer multiplies before it aggregates, unless dropout on the aggregated input forbids it;
- dropout takes 8 random bits per number from NumPy's SFC64; its scale is in LayerNorm's gain or in the product's alpha;
- one flat Adam, in chunks that stay in the cache.

compare_speed.sh says how to start it: OpenBLAS's OpenMP build, bound threads, tcmalloc.
"""
import argparse
import json
import os
import time
from typing import NamedTuple, Optional

import numpy as np
import torch
from torch.nn.functional import embedding_bag

EPSILON = 1e-5  # of LayerNorm


class Layout:
    """The training graph in cluster order."""

    def __init__(self, path):
        with open(os.path.join(path, "meta.json")) as file:
            meta = json.load(file)
        if meta["directed"] or meta["weighted"]:
            raise SystemExit(f"{path}: directed or weighted; the peer takes neither")

        def array(name):
            return np.load(os.path.join(path, name + ".npy"), mmap_mode="r")

        self.offsets = np.asarray(array("adjacency_offsets")).astype(np.int64)
        self.targets = np.asarray(array("adjacency_targets")).view(np.int32)
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

    def standardise(self, mean, deviation):
        self.features = ((self.features - mean) / deviation).astype(np.float32)


class Sparse(NamedTuple):
    """N(A) of symmetric edges, and its transpose: the same columns with other values."""
    offsets: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    transposed: torch.Tensor

    def aggregate(self, dense):
        return self._multiply(dense, self.values)

    def aggregate_back(self, dense):
        return self._multiply(dense, self.transposed)

    def _multiply(self, dense, values):
        return embedding_bag(self.columns, dense, self.offsets, mode="sum", per_sample_weights=values,
                             include_last_offset=True)


class Normalisation:
    """The scale of a row and the diagonal, as in the engine: mean, self, self+diagonal, symmetric."""

    def __init__(self, name, weight=0.0):
        self.name, self.weight = name, weight

    def apply(self, offsets, columns):
        degrees = np.diff(offsets)
        if self.name == "mean":
            scale = (1 / np.maximum(degrees, 1)).astype(np.float32)
            values, transposed = np.repeat(scale, degrees), scale[columns]
        else:
            offsets, columns, own = self.with_diagonal(offsets, columns)
            scale = 1 / (degrees + 1) if self.name != "symmetric" else 1 / np.sqrt(degrees + 1)
            values, transposed = np.repeat(scale, degrees + 1).astype(np.float32), scale[columns].astype(np.float32)
            if self.name == "symmetric":
                values = transposed = values * transposed
            elif self.name == "self+diagonal":
                values[own] *= 1 + self.weight
                transposed[own] *= 1 + self.weight
        return Sparse(*map(torch.from_numpy, (offsets.astype(np.int32), columns, values, transposed)))

    @staticmethod
    def with_diagonal(offsets, columns):
        """Every row gets itself as its last entry. Returns also where these entries are."""
        count = len(offsets) - 1
        offsets = offsets + np.arange(count + 1)
        own = offsets[1:] - 1
        entries = np.empty(len(columns) + count, np.int32)
        is_own = np.zeros(len(entries), bool)
        is_own[own] = True
        entries[own] = np.arange(count)
        entries[~is_own] = columns
        return offsets, entries, own


class Batch(NamedTuple):
    matrix: Sparse
    inputs: torch.Tensor  # [D⁻¹A·X, X]
    labels: torch.Tensor
    loss_rows: Optional[torch.Tensor]  # None: all


class Batches:
    """Groups of q clusters, edges between them restored, normalised on the batch's own degrees."""

    def __init__(self, layout, per_batch, normalisation, seed):
        self.layout, self.per_batch, self.normalisation = layout, per_batch, normalisation
        self.random = np.random.default_rng(seed)
        self.position = np.full(layout.nodes, -1, np.int32)
        self.inputs = input_of(layout)
        self.labels = torch.from_numpy(layout.labels.astype(np.float32 if layout.multi_label else np.int64))
        self.trained = layout.split == 0
        self.count = len(layout.clusters) - 1
        self.kept = [self.build([c]) for c in range(self.count)] if per_batch == 1 else None
        if per_batch > 1:
            self.input_buffer = torch.empty(self.most_rows(), self.inputs.shape[1])

    def most_rows(self):
        return int(np.sort(np.diff(self.layout.clusters))[-self.per_batch:].sum())

    def epoch(self):
        order = self.random.permutation(self.count)
        for begin in range(0, self.count, self.per_batch):
            if self.kept is not None:
                yield self.kept[order[begin]]
            else:
                yield self.build(np.sort(order[begin:begin + self.per_batch]))

    def build(self, clusters):
        layout = self.layout
        ranges = [slice(layout.clusters[c], layout.clusters[c + 1]) for c in clusters]
        count = 0
        for nodes in ranges:
            self.position[nodes] = np.arange(count, count + nodes.stop - nodes.start, dtype=np.int32)
            count += nodes.stop - nodes.start
        columns = self.position[np.concatenate([layout.targets[layout.offsets[nodes.start]:layout.offsets[nodes.stop]]
                                                for nodes in ranges])]
        ends = np.cumsum(np.concatenate([np.diff(layout.offsets[nodes.start:nodes.stop + 1]) for nodes in ranges]))
        inside = columns >= 0
        before = np.zeros(len(columns) + 1, np.int32)  # entries inside the batch before each entry
        np.cumsum(inside, out=before[1:])
        matrix = self.normalisation.apply(before[np.concatenate([[0], ends])], columns[inside])
        for nodes in ranges:
            self.position[nodes] = -1
        if len(ranges) == 1:
            inputs, labels, trained = self.inputs[ranges[0]], self.labels[ranges[0]], self.trained[ranges[0]]
        else:
            inputs = torch.cat([self.inputs[nodes] for nodes in ranges], out=self.input_buffer[:count])
            labels = torch.cat([self.labels[nodes] for nodes in ranges])
            trained = np.concatenate([self.trained[nodes] for nodes in ranges])
        return Batch(matrix, inputs, labels, None if trained.all() else torch.from_numpy(np.flatnonzero(trained)))


class Dropout:
    """A share of `threshold` in 256 is dropped; the rest is to be multiplied by `scale`."""

    def __init__(self, rate, seed):
        self.threshold = round(rate * 256)
        self.scale = 256 / (256 - self.threshold)
        self.random = np.random.SFC64(seed)

    def draw(self, mask):
        """Fills the mask with 0 and 1."""
        noise = self.random.random_raw((mask.numel() + 7) // 8).view(np.uint8)[:mask.numel()]
        return torch.ge(torch.from_numpy(noise).view(mask.shape), self.threshold, out=mask)


class Norm:
    """H = D(ReLU(LayerNorm(Z))); D only if dropout stands before the aggregation."""

    def __init__(self, width, dropout):
        self.width, self.dropout = width, dropout
        self.shapes = [(width,), (width,)]

    def reserve(self, rows, trained):
        if self.dropout is not None:
            self.mask = torch.empty(trained, self.width)

    def forward(self, z, train):
        drops = train and self.dropout is not None
        self.scale = self.dropout.scale if drops else 1
        (gain, shift), self.z = self.values, z
        self.h, self.mean, self.deviation = torch.native_layer_norm(z, (self.width,), gain * self.scale,
                                                                    shift * self.scale, EPSILON)
        self.h.clamp_min_(0)
        if drops:
            self.h.mul_(self.dropout.draw(self.mask[:len(z)]))
        return self.h

    def backward(self, gradient):
        gain, shift = self.values
        gradient = torch.ops.aten.threshold_backward(gradient, self.h, 0)  # what is dropped is 0 as well
        dz, gain_gradient, shift_gradient = torch.ops.aten.native_layer_norm_backward(
            gradient, self.z, (self.width,), self.mean, self.deviation, gain * self.scale, shift, [True] * 3)
        torch.mul(gain_gradient, self.scale, out=self.gradients[0])
        torch.mul(shift_gradient, self.scale, out=self.gradients[1])
        return dz


class First:
    """Z = D([A·X, X])·W"""

    def __init__(self, width, out, dropout):
        self.width, self.out, self.dropout = 2 * width, out, dropout
        self.shapes = [(2 * width, out)]

    def reserve(self, rows, trained):
        self.z = torch.empty(rows, self.out)
        if self.dropout is not None:
            self.mask, self.dropped = torch.empty(trained, self.width), torch.empty(trained, self.width)

    def forward(self, inputs, batch, train):
        drops, count = train and self.dropout is not None, len(inputs)
        self.scale = self.dropout.scale if drops else 1
        if drops:
            inputs = torch.mul(inputs, self.dropout.draw(self.mask[:count]), out=self.dropped[:count])
        self.inputs = inputs
        return scaled_product(inputs, self.values[0], self.scale, self.z[:count])

    def backward(self, dz, batch):
        scaled_product(self.inputs.t(), dz, self.scale, self.gradients[0])


class AggregateThenDrop:
    """Z = D([A·H, H])·W"""

    def __init__(self, width, out, dropout):
        self.width, self.out, self.dropout = width, out, dropout
        self.shapes = [(2 * width, out)]

    def reserve(self, rows, trained):
        self.z = torch.empty(rows, self.out)
        self.inputs, self.mask = torch.empty(rows, 2 * self.width), torch.empty(trained, 2 * self.width)
        self.down = torch.empty(rows, self.width)

    def forward(self, h, batch, train):
        left, right = slice(0, self.width), slice(self.width, 2 * self.width)
        inputs, mask = self.inputs[:len(h)], self.mask[:len(h)]
        self.scale = self.dropout.scale if train else 1
        aggregated = batch.matrix.aggregate(h)
        if train:
            self.dropout.draw(mask)
            torch.mul(aggregated, mask[:, left], out=inputs[:, left])
            torch.mul(h, mask[:, right], out=inputs[:, right])
        else:
            torch.cat([aggregated, h], 1, out=inputs)
        return scaled_product(inputs, self.values[0], self.scale, self.z[:len(h)])

    def backward(self, dz, batch):
        mask, down, weight = self.mask[:len(dz)], self.down[:len(dz)], self.values[0]
        scaled_product(self.inputs[:len(dz)].t(), dz, self.scale, self.gradients[0])
        scaled_product(dz, weight[:self.width].t(), self.scale, down).mul_(mask[:, :self.width])
        gradient = batch.matrix.aggregate_back(down)
        scaled_product(dz, weight[self.width:].t(), self.scale, down)
        return gradient.addcmul_(down, mask[:, self.width:])


class Aggregate:
    """Z = [A·H, H]·W, as two products without the concatenation"""

    def __init__(self, width, out):
        self.width, self.out = width, out
        self.shapes = [(2 * width, out)]

    def reserve(self, rows, trained):
        self.z, self.down = torch.empty(rows, self.out), torch.empty(rows, self.width)

    def forward(self, h, batch, train):
        weight, self.h, self.aggregated = self.values[0], h, batch.matrix.aggregate(h)
        z = torch.mm(self.aggregated, weight[:self.width], out=self.z[:len(h)])
        return z.addmm_(h, weight[self.width:])

    def backward(self, dz, batch):
        weight, gradient = self.values[0], self.gradients[0]
        torch.mm(self.aggregated.t(), dz, out=gradient[:self.width])
        torch.mm(self.h.t(), dz, out=gradient[self.width:])
        self.aggregated = None
        down = batch.matrix.aggregate_back(torch.mm(dz, weight[:self.width].t(), out=self.down[:len(dz)]))
        return down.addmm_(dz, weight[self.width:].t())


class ProjectThenAggregate:
    """Z = A·(H·W₁) + H·W₂, as one product with [W₁, W₂]"""

    def __init__(self, width, out):
        self.width, self.out = width, out
        self.shapes = [(width, 2 * out)]

    def reserve(self, rows, trained):
        self.projected, self.down = torch.empty(rows, 2 * self.out), torch.empty(rows, self.width)

    def forward(self, h, batch, train):
        self.h = h
        projected = torch.mm(h, self.values[0], out=self.projected[:len(h)])
        return batch.matrix.aggregate(projected[:, :self.out].contiguous()).add_(projected[:, self.out:])

    def backward(self, dz, batch):
        both = torch.cat([batch.matrix.aggregate_back(dz), dz], 1, out=self.projected[:len(dz)])
        torch.mm(self.h.t(), both, out=self.gradients[0])
        return torch.mm(both, self.values[0].t(), out=self.down[:len(dz)])


def scaled_product(a, b, scale, out):
    return torch.addmm(out, a, b, beta=0, alpha=scale, out=out)


class Model:
    """Layers with a Norm between each two, and Adam, on one flat vector; room for `rows` rows, `trained` of a batch."""

    def __init__(self, features, classes, options, rows, trained):
        def dropout(rate, stream):
            return Dropout(rate, [options.seed, stream]) if rate > 0 else None

        input_rate = options.dropout if options.input_dropout < 0 else options.input_dropout
        drops_after = options.dropout > 0 and options.dropout_place == "after"
        widths = [features] + [options.hidden] * (options.layers - 1) + [classes]
        self.layers, self.norms = [First(features, widths[1], dropout(input_rate, 0))], []
        for number in range(1, options.layers):
            rate = dropout(options.dropout, number)
            self.norms.append(Norm(widths[number], None if drops_after else rate))
            if drops_after:
                self.layers.append(AggregateThenDrop(*widths[number:number + 2], rate))
            elif widths[number + 1] < widths[number]:
                self.layers.append(ProjectThenAggregate(*widths[number:number + 2]))
            else:
                self.layers.append(Aggregate(*widths[number:number + 2]))
        parts = self.layers + self.norms
        for part in parts:
            part.reserve(rows, trained)
        total = sum(int(np.prod(shape)) for part in parts for shape in part.shapes)
        self.flat, self.gradient, self.first, self.second = (torch.zeros(total) for _ in range(4))
        self.steps = 0
        at, generator = 0, torch.Generator().manual_seed(options.seed)
        for part in parts:
            part.values, part.gradients = [], []
            for shape in part.shapes:
                size = int(np.prod(shape))
                part.values.append(self.flat[at:at + size].view(shape))
                part.gradients.append(self.gradient[at:at + size].view(shape))
                at += size
        for layer, width, out in zip(self.layers, widths, widths[1:]):
            bound = (6 / (2 * width + out)) ** 0.5
            layer.values[0].uniform_(-bound, bound, generator=generator)
        for norm in self.norms:
            norm.values[0].fill_(1)

    def forward(self, batch, train=False):
        z = self.layers[0].forward(batch.inputs, batch, train)
        for norm, layer in zip(self.norms, self.layers[1:]):
            z = layer.forward(norm.forward(z, train), batch, train)
        return z

    def backward(self, gradient, batch):
        for norm, layer in zip(reversed(self.norms), reversed(self.layers)):
            gradient = norm.backward(layer.backward(gradient, batch))
        self.layers[0].backward(gradient, batch)

    def step(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8, chunk=1 << 18):
        self.steps += 1
        correction1, correction2 = 1 - beta1**self.steps, (1 - beta2**self.steps) ** 0.5
        vectors = (v.split(chunk) for v in (self.flat, self.gradient, self.first, self.second))
        for value, gradient, first, second in zip(*vectors):
            first.mul_(beta1).add_(gradient, alpha=1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            gradient = torch.sqrt(second, out=gradient).add_(epsilon * correction2)
            value.addcdiv_(first, gradient, value=-rate * correction2 / correction1)


def loss_gradient(logits, batch):
    """The gradient of the mean cross-entropy over the loss's rows, in place of the logits."""
    rows, labels = batch.loss_rows, batch.labels
    if rows is not None:
        gradient = torch.zeros_like(logits)
        if len(rows) > 0:
            gradient[rows] = loss_gradient(logits[rows], batch._replace(labels=labels[rows], loss_rows=None))
        return gradient
    if labels.dim() == 2:
        return logits.sigmoid_().sub_(labels).mul_(1 / labels.numel())
    gradient, labels = torch.softmax(logits, 1), labels[:, None]
    return gradient.scatter_add_(1, labels, gradient.new_full(labels.shape, -1)).mul_(1 / len(labels))


def input_of(layout, rows_at_once=65536):
    """[D⁻¹A·X, X], once."""
    x, width = torch.from_numpy(layout.features), layout.features.shape[1]
    inputs = torch.empty(layout.nodes, 2 * width)
    inputs[:, width:] = x
    for begin in range(0, layout.nodes, rows_at_once):
        offsets = layout.offsets[begin:begin + rows_at_once + 1]
        scale = (1 / np.maximum(np.diff(offsets), 1)).astype(np.float32)
        columns = torch.from_numpy(np.array(layout.targets[offsets[0]:offsets[-1]]))
        sums = embedding_bag(columns, x, torch.from_numpy((offsets - offsets[0]).astype(np.int32)), mode="sum",
                             include_last_offset=True)
        inputs[begin:begin + rows_at_once, :width] = sums.mul_(torch.from_numpy(scale)[:, None])
    return inputs


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


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layout", help="a partition of a store: STORE/partitions/NAME")
    parser.add_argument("--store", help="score the model on all nodes of this store, exactly, after training")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--per-batch", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--input-dropout", type=float, default=-1, help="dropout of the features; -1: as --dropout")
    parser.add_argument("--dropout-place", choices=["after", "before"], default="after",
                        help="dropout on [N(A)H, H], or on H before aggregation")
    parser.add_argument("--normalisation", choices=["mean", "self", "self+diagonal", "symmetric"], default="mean")
    parser.add_argument("--lambda", dest="weight", type=float, default=1.0)
    parser.add_argument("--standardise", action="store_true")
    parser.add_argument("--eval-every", type=int, default=10, help="with --store: epochs between validations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)

    layout, whole = Layout(options.layout), Layout(options.store) if options.store else None
    if options.standardise:
        trained = layout.features[layout.split == 0].astype(np.float64)
        mean, deviation = trained.mean(0), trained.std(0)
        deviation[deviation == 0] = 1
        layout.standardise(mean, deviation)
        if whole:
            whole.standardise(mean, deviation)
    normalisation = Normalisation(options.normalisation, options.weight)
    batches = Batches(layout, options.per_batch, normalisation, options.seed)
    if whole:
        everything = Batches(whole, 1, normalisation, 0).kept[0]
    model = Model(layout.features.shape[1], layout.classes, options,
                  max(batches.most_rows(), whole.nodes if whole else 0), batches.most_rows())
    seconds, best = [], None
    for epoch in range(options.epochs):
        start = time.perf_counter()
        for batch in batches.epoch():
            model.backward(loss_gradient(model.forward(batch, train=True), batch), batch)
            model.step(options.lr)
        seconds.append(time.perf_counter() - start)
        if whole and ((epoch + 1) % options.eval_every == 0 or epoch + 1 == options.epochs):
            now = scores(model.forward(everything), whole)
            if best is None or now["validation"] > best["validation"]:
                best = dict(now, epoch=epoch + 1)
    print(json.dumps({"epoch_seconds": seconds, "finite": bool(torch.isfinite(model.flat).all()), "best": best}))


if __name__ == "__main__":
    main()
