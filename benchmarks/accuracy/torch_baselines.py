#!/usr/bin/env python3
"""GCN, GraphSAGE and GAT in PyTorch on the nodes, edges and split of a graph store: full batch, transductive, a search on
validation, then several seeds of each model's best settings.

    benchmarks/accuracy/torch_baselines.py STORE … [--seeds 5] [--epochs 200] [--search-epochs 100] [--models gcn sage gat] [--quick]

Settings of the search: width, depth, dropout, learning rate, norm and residual as in tuned GNNs.
Prints one row per model: mean and deviation of test micro F1 over the seeds, and the settings that validation chose.
"""
import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional as F


def product(matrix, x):
    """A SciPy matrix in CSR form times a dense tensor, by PyTorch's kernel: four times as fast as SciPy's."""
    matrix.sort_indices()
    arrays = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    return torch._sparse_csr_tensor_unsafe(*arrays, matrix.shape) @ x  # without a pass over the indices that checks them


class Product(torch.autograd.Function):
    """A constant sparse matrix times a dense one."""

    @staticmethod
    def forward(ctx, matrix, transposed, x):
        ctx.transposed = transposed
        return product(matrix, x.detach())

    @staticmethod
    def backward(ctx, gradient):
        transposed = ctx.transposed() if callable(ctx.transposed) else ctx.transposed
        return None, None, product(transposed, gradient.contiguous())


class WeightedProduct(torch.autograd.Function):
    """A sparse matrix whose values are learnt, times a dense one. order: the places of the transpose's entries."""

    @staticmethod
    def forward(ctx, edges, values, x):
        ctx.edges = edges
        ctx.save_for_backward(values, x)
        n = len(edges.offsets) - 1
        return product(sp.csr_matrix((values.detach().numpy(), edges.sources, edges.offsets), (n, n)), x.detach())

    @staticmethod
    def backward(ctx, gradient):
        edges, (values, x) = ctx.edges, ctx.saved_tensors
        n = len(edges.offsets) - 1
        gradient = gradient.contiguous()
        back = sp.csr_matrix((values.numpy()[edges.order], edges.back_targets, edges.back_offsets), (n, n))
        dx = product(back, gradient)
        dv = torch.empty_like(values)
        for begin in range(0, len(values), 1 << 17):
            part = slice(begin, begin + (1 << 17))
            dv[part] = (gradient[edges.t_targets[part]] * x[edges.t_sources[part]]).sum(1)
        return None, dv, dx


class Edges:
    """Rows of A with self-loops."""

    def __init__(self, a):
        a = a.tocsr()
        self.offsets, self.sources = a.indptr, a.indices
        self.targets = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
        numbered = sp.csr_matrix((np.arange(1, a.nnz + 1), a.indices, a.indptr), a.shape).T.tocsr()
        self.order, self.back_targets, self.back_offsets = numbered.data - 1, numbered.indices, numbered.indptr
        self.t_sources, self.t_targets = torch.from_numpy(self.sources).long(), torch.from_numpy(self.targets).long()


class Graph:
    def __init__(self, store):
        store = pathlib.Path(store)
        load = lambda name: np.load(store / f"{name}.npy")
        offsets, targets = load("adjacency_offsets").astype(np.int64), load("adjacency_targets").astype(np.int64)
        n = self.n = len(offsets) - 1
        a = sp.csr_matrix((np.ones(len(targets), np.float32), targets, offsets), (n, n))
        a = ((a + a.T) > 0).astype(np.float32)
        self.mean = sp.diags(1 / np.maximum(1, a.sum(1).A1)).astype(np.float32) @ a
        loops = (a + sp.identity(n, dtype=np.float32)).tocsr()
        root = sp.diags(1 / np.sqrt(loops.sum(1).A1)).astype(np.float32)
        self.symmetric = (root @ loops @ root).tocsr().astype(np.float32)
        self.mean_t = self.mean.T.tocsr()
        self.edges = Edges(loops)
        meta = json.loads((store / "meta.json").read_text())
        if (store / "features.npy").exists():
            self.x = load("features").astype(np.float32)
            rows = self.x[load("split") == 0]
            self.x = torch.from_numpy((self.x - rows.mean(0)) / np.maximum(rows.std(0), 1e-6))
        else:
            columns = load("features_columns")
            values = load("features_values") if (store / "features_values.npy").exists() else np.ones(len(columns))
            width = meta["features"].get("columns", int(columns.max()) + 1)
            self.x = sp.csr_matrix((values.astype(np.float32), columns, load("features_offsets").astype(np.int64)), (n, width))
            self.x = sp.diags(1 / np.maximum(1e-6, self.x.sum(1).A1)).astype(np.float32) @ self.x
        labels = load("labels")
        self.multi = labels.ndim == 2
        if self.multi and meta.get("labels", {}).get("kind", "") != "dense" and labels.dtype != np.uint8:
            raise SystemExit("labels: not understood")
        classes = meta["labels"]["classes"] if "classes" in meta.get("labels", {}) else None
        if self.multi and classes and labels.shape[1] < classes:
            labels = np.unpackbits(labels.view(np.uint8), axis=1, bitorder="little")[:, :classes]
        self.y = torch.from_numpy(labels.astype(np.float32 if self.multi else np.int64))
        self.classes = labels.shape[1] if self.multi else int(labels.max()) + 1
        split = load("split")
        known = np.ones(n, bool) if self.multi else labels >= 0
        self.parts = [torch.from_numpy(np.flatnonzero((split == role) & known)) for role in range(3)]


def drop(x, p, training):
    if not training or p == 0:
        return x
    if sp.issparse(x):
        keep = (torch.rand(x.nnz) >= p).numpy()
        return sp.csr_matrix((x.data * keep / np.float32(1 - p), x.indices, x.indptr), x.shape)
    return F.dropout(x, p)


def times(x, weight):
    return Product.apply(x, lambda: x.T.tocsr(), weight) if sp.issparse(x) else x @ weight


class Layer(nn.Module):
    def __init__(self, kind, columns, out, heads):
        super().__init__()
        self.kind, self.heads = kind, heads if kind == "gat" else 1
        weight = lambda *shape: nn.Parameter(nn.init.xavier_uniform_(torch.empty(*shape)))
        self.weight, self.bias = weight(columns, out * self.heads), nn.Parameter(torch.zeros(out * self.heads))
        if kind == "sage":
            self.own = weight(columns, out)
        if kind == "gat":
            self.source, self.target = weight(self.heads, out), weight(self.heads, out)

    def forward(self, g, x, average):
        h = times(x, self.weight)
        if self.kind == "gcn":
            return Product.apply(g.symmetric, g.symmetric, h) + self.bias
        if self.kind == "sage":
            return Product.apply(g.mean, g.mean_t, h) + times(x, self.own) + self.bias
        h = h.view(g.n, self.heads, -1)
        score = F.leaky_relu((h * self.source).sum(2)[g.edges.t_sources] + (h * self.target).sum(2)[g.edges.t_targets], 0.2)
        score = (score - score.detach().max(0).values).clamp(-60).exp()
        total = torch.zeros(g.n, self.heads).index_add(0, g.edges.t_targets, score)
        alpha = score / total[g.edges.t_targets].clamp(1e-30)
        rows = [WeightedProduct.apply(g.edges, alpha[:, i].contiguous(), h[:, i].contiguous()) for i in range(self.heads)]
        out = torch.stack(rows, 1) + self.bias.view(self.heads, -1)
        return out.mean(1) if average else out.flatten(1)


class Net(nn.Module):
    def __init__(self, g, kind, hidden, layers, dropout, norm, residual):
        super().__init__()
        self.dropout, self.layers, self.norms, self.skips = dropout, nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        heads = 4 if kind == "gat" else 1
        columns = g.x.shape[1]
        for l in range(layers):
            last = l + 1 == layers
            self.layers.append(Layer(kind, columns, g.classes if last else hidden // heads, heads if not last else 1))
            self.skips.append(nn.Linear(columns, hidden) if residual and not last and l > 0 else nn.Identity())
            columns = hidden
            if not last:
                self.norms.append({"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "none": lambda c: nn.Identity()}[norm](columns))
        self.residual = residual

    def forward(self, g):
        x = g.x
        for l, layer in enumerate(self.layers):
            x = drop(x, self.dropout, self.training)
            last = l + 1 == len(self.layers)
            z = layer(g, x, last)
            if last:
                return z
            if self.residual and l > 0:
                z = z + self.skips[l](x)
            x = F.relu(self.norms[l](z))


def score(g, logits, part):
    rows, y = logits[part], g.y[part]
    if not g.multi:
        return (rows.argmax(1) == y).float().mean().item()
    said, right = rows > 0, y > 0
    both = (said & right).sum().item()
    return 2 * both / max(1, said.sum().item() + right.sum().item())


def train(g, kind, settings, seed, epochs, patience, limit):
    torch.manual_seed(seed)
    lr, decay = settings["lr"], settings["decay"]
    model = Net(g, kind, settings["hidden"], settings["layers"], settings["dropout"], settings["norm"], settings["residual"])
    optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=decay)
    best, test, since, begun = -1, 0, 0, time.process_time()
    for epoch in range(epochs):
        model.train()
        optimiser.zero_grad()
        rows, y = model(g)[g.parts[0]], g.y[g.parts[0]]
        loss = F.binary_cross_entropy_with_logits(rows, y) if g.multi else F.cross_entropy(rows, y)
        loss.backward()
        optimiser.step()
        if epoch % 2 == 0:
            continue
        model.eval()
        with torch.no_grad():
            logits = model(g)
        validation = score(g, logits, g.parts[1])
        since += 2
        if validation > best:
            best, test, since = validation, score(g, logits, g.parts[2]), 0
        if since > patience or time.process_time() - begun > limit:
            break
    return best, test, time.process_time() - begun


def search_space(g, quick):
    few = len(g.parts[0]) < g.n // 10
    base = {"hidden": 64 if few else 128, "layers": 2, "dropout": 0.5, "lr": 0.01, "decay": 5e-4, "norm": "none", "residual": False}
    if few:
        return [base, {**base, "dropout": 0.8, "lr": 0.005, "decay": 5e-3}, {**base, "hidden": 128, "layers": 3, "norm": "layer", "residual": True}]
    big = {**base, "decay": 5e-5, "norm": "batch", "residual": True, "lr": 0.005}
    several = [{**big, "layers": 3, "dropout": 0.3, "lr": 0.01}, big]
    return several if quick else [base, *several, {**big, "norm": "layer"}]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("stores", nargs="+")
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--epochs", type=int, default=200)
    arguments.add_argument("--patience", type=int, default=50, help="epochs")
    arguments.add_argument("--search-epochs", type=int, default=100, help="of each training of the search")
    arguments.add_argument("--models", nargs="*", default=["gcn", "sage", "gat"])
    arguments.add_argument("--quick", action="store_true", help="fewer settings")
    arguments.add_argument("--limit", type=float, default=600, help="processor seconds of a training")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    print("| graph | model | test F1 | processor seconds | settings |\n| --- | --- | --- | --- | --- |", flush=True)
    for store in given.stores:
        g = Graph(store)
        for kind in given.models:
            tried = [(train(g, kind, settings, 0, given.search_epochs, given.patience, given.limit), settings)
                     for settings in search_space(g, given.quick)]
            settings = max(tried, key=lambda pair: pair[0][0])[1]
            runs = [train(g, kind, settings, seed, given.epochs, given.patience, given.limit) for seed in range(1, given.seeds + 1)]
            tests = [100 * test for _, test, _ in runs]
            words = ", ".join(f"{name} {value}" for name, value in settings.items())
            print(f"| {pathlib.Path(store).name} | {kind} | {statistics.mean(tests):.2f} ± "
                  f"{statistics.stdev(tests) if len(tests) > 1 else 0:.2f} | {statistics.mean(s for *_, s in runs):.0f} | {words} |",
                  flush=True)


if __name__ == "__main__":
    main()
