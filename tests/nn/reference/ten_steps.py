#!/usr/bin/env python3
"""Ten training steps of small networks in PyTorch, double precision and autograd, as an independent implementation.

Writes ten_steps.json next to itself; tests/nn/ten_steps_test.cc trains the same networks on the same data and compares
losses and final weights. Needs python3-torch:  /usr/bin/python3 tests/nn/reference/ten_steps.py
"""
import json
import os

import torch

NODES, FEATURES, CLASSES, HIDDEN, STEPS, BATCHES = 30, 6, 4, 8, 10, 2

CASES = [
    dict(name="concat", layers=3, concat=True, norm=True, residual=False, bias=False, multi_label=False, decay=0.0),
    dict(name="residual", layers=5, concat=True, norm=True, residual=True, bias=True, multi_label=True, decay=0.01),
    dict(name="plain", layers=3, concat=False, norm=False, residual=False, bias=True, multi_label=True, decay=0.0),
    dict(name="plain_norm", layers=4, concat=False, norm=True, residual=True, bias=False, multi_label=False, decay=0.001),
]


def uniform(stream, i):
    """A number in [0, 1) that C++ computes as well: an integer hash."""
    x = ((stream * 1000003 + i) * 2654435761) % 2**32
    x ^= x >> 15
    x = (x * 2246822519) % 2**32
    x ^= x >> 13
    x = (x * 3266489917) % 2**32
    x ^= x >> 16
    return x / 2**32


def matrix(stream, rows, columns, scale=1.0, shift=0.0):
    values = [shift + scale * (uniform(stream, i) - 0.5) for i in range(rows * columns)]
    return torch.tensor(values, dtype=torch.float32).double().reshape(rows, columns)


def links():
    """Directed and weighted: entry (u, v) where u aggregates from v."""
    a = torch.zeros(NODES, NODES, dtype=torch.float64)
    for u in range(NODES):
        for v in range(NODES):
            if u != v and uniform(1, u * NODES + v) < 0.2:
                a[u, v] = 0.5 + uniform(2, u * NODES + v)
    return a


def mean(a):
    degree = a.sum(dim=1, keepdim=True)
    return torch.where(degree > 0, a / degree.clamp(min=1e-300), torch.zeros_like(a))


def parameters(case):
    made = []

    def add(name, rows, columns, scale, shift=0.0):
        made.append((name, matrix(100 + len(made), rows, columns, scale, shift).requires_grad_()))

    for layer in range(1, case["layers"] + 1):
        fan_in = (FEATURES if layer == 1 else HIDDEN) * (2 if case["concat"] else 1)
        out = CLASSES if layer == case["layers"] else HIDDEN
        add(f"layer{layer}.weight", fan_in, out, 4 / fan_in**0.5)
        if case["bias"]:
            add(f"layer{layer}.bias", 1, out, 0.4)
        if case["norm"] and layer < case["layers"]:
            add(f"layer{layer}.norm.scale", 1, out, 0.4, 1.0)
            add(f"layer{layer}.norm.offset", 1, out, 0.4)
    return dict(made)


def forward(case, weights, x, aggregated, a):
    h = None
    for layer in range(1, case["layers"] + 1):
        own = x if layer == 1 else h
        left = aggregated if layer == 1 else a @ h
        z = (torch.cat([left, own], dim=1) if case["concat"] else left) @ weights[f"layer{layer}.weight"]
        if case["bias"]:
            z = z + weights[f"layer{layer}.bias"]
        if layer == case["layers"]:
            return z
        if case["norm"]:
            z = torch.nn.functional.layer_norm(z, (HIDDEN,), weights[f"layer{layer}.norm.scale"][0],
                                               weights[f"layer{layer}.norm.offset"][0], eps=1e-5)
        z = torch.relu(z)
        h = z + h if case["residual"] and layer > 1 else z


def run(case):
    a, x = links(), matrix(3, NODES, FEATURES, 2.0)
    aggregated = mean(a) @ x
    classes = torch.tensor([int(uniform(4, v) * CLASSES) for v in range(NODES)])
    bits = torch.tensor([[float(uniform(5, v * CLASSES + c) < 0.4) for c in range(CLASSES)] for v in range(NODES)],
                        dtype=torch.float64)
    weights = parameters(case)
    adam = torch.optim.Adam(weights.values(), lr=0.01, weight_decay=case["decay"])
    losses = []
    for step in range(STEPS):
        nodes = torch.tensor([v for v in range(NODES) if v % BATCHES == step % BATCHES])
        labelled = torch.tensor([i for i, v in enumerate(nodes.tolist()) if v % 3 != 0])
        logits = forward(case, weights, x[nodes], aggregated[nodes], mean(a[nodes][:, nodes]))[labelled]
        target = nodes[labelled]
        if case["multi_label"]:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, bits[target])
        else:
            loss = torch.nn.functional.cross_entropy(logits, classes[target])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    final = {name: [round(v, 9) for v in value.detach().flatten().tolist()] for name, value in weights.items()}
    return dict(case, losses=losses, weights=final)


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ten_steps.json")
    with open(path, "w") as file:
        json.dump(dict(cases=[run(case) for case in CASES]), file, indent=1)
        file.write("\n")
