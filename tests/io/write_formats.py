"""Writes one random graph in every binary format, in usual and unusual ways: python3 write_formats.py FOLDER

All of dense/ hold the same graph; so do all of sparse/ (other features), multi/ (multi-label) and weighted/.
"""
import collections
import json
import os
import pickle
import shutil
import sys

import numpy as np
import scipy.sparse as sp

folder = sys.argv[1]
rng = np.random.default_rng(7)
n, columns, classes, train = 120, 9, 5, 30

edges = rng.integers(0, n, (2, 400))
edges = edges[:, edges[0] != edges[1]]
adjacency = sp.coo_matrix((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(n, n)).tocsr()
adjacency = ((adjacency + adjacency.T) > 0).astype(np.float32).tocsr()
both = np.stack(adjacency.nonzero())
features = rng.normal(size=(n, columns)).astype(np.float32)
sparse = sp.csr_matrix(features * (rng.random((n, columns)) < 0.3))
labels = rng.integers(0, classes, n)
labels[0] = classes - 1
# Planetoid's own split (train, validation, none, test), so that every format can say it.
split = np.full(n, 255, np.uint8)
split[:train] = 0
split[train:80] = 1
split[80:] = 2


def path(*parts):
    full = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    return full


def plain(name, edge_index=both, x=features, y=labels, roles=split, version=None):
    def save(file, array):
        with open(path(name, file), "wb") as out:
            np.lib.format.write_array(out, np.asanyarray(array), version=version)

    save("edge_index.npy", edge_index)
    if x is not None:
        save("features.npy", x)
    save("labels.npy", y)
    save("split.npy", roles)


plain("dense/plain", both.astype(np.int32))
plain("dense/once", edges.astype(np.int32))  # each edge in one direction, some twice
plain("dense/fortran", np.asfortranarray(both), np.asfortranarray(features))
plain("dense/pairs", both.T.copy())
plain("dense/pairs_fortran", np.asfortranarray(both.T))
plain("dense/big_endian", both.astype(">i4"), features.astype(">f4"), labels.astype(">i2"))
plain("dense/wide", both.astype(np.uint64), features.astype(np.float64), labels.astype(np.float64), split.astype(np.int64))
plain("dense/narrow", both.astype(np.uint8), features, labels.astype(np.int8), np.where(split == 255, -1, split).astype(np.int8))
plain("dense/column_labels", y=labels[:, None])
one_hot = np.eye(classes, dtype=np.int32)[labels]
plain("dense/one_hot", y=one_hot.astype(bool))
plain("dense/version2", version=(2, 0))
plain("dense/version3", version=(3, 0))
plain("dense/parts", both)
os.remove(path("dense/parts", "split.npy"))
np.save(path("dense/parts", "train.npy"), np.flatnonzero(split == 0)[::-1])
np.save(path("dense/parts", "val_idx.npy"), np.flatnonzero(split == 1).astype(np.uint16))
np.save(path("dense/parts", "test_mask.npy"), split == 2)
plain("dense/npz_parts")
for name, array in (("edge_index", both), ("features", features)):
    os.remove(path("dense/npz_parts", name + ".npy"))
    np.savez_compressed(path("dense/npz_parts", name + ".npz"), array)
for name, matrix in (("csr", adjacency), ("csc", adjacency.tocsc()), ("coo", adjacency.tocoo())):
    plain("dense/adj_" + name)
    os.remove(path("dense/adj_" + name, "edge_index.npy"))
    sp.save_npz(path("dense/adj_" + name, "adj.npz"), matrix, compressed=name != "coo")

for name, save in (("dgl", np.savez), ("dgl_compressed", np.savez_compressed)):
    save(path("dense/" + name, "reddit_data.npz"), feature=features, label=labels.astype(np.int32), node_ids=np.arange(n),
         node_types=np.where(split == 255, 0, split + 1).astype(np.int32))
    sp.save_npz(path("dense/" + name, "reddit_graph.npz"), adjacency.tocoo(), compressed=name != "dgl")

sp.save_npz(path("dense/saint", "adj_full.npz"), adjacency.astype(bool))
sp.save_npz(path("dense/saint", "adj_train.npz"), adjacency.multiply((split == 0)[:, None] & (split == 0)).tocsr())
np.save(path("dense/saint", "feats.npy"), features.astype(np.float64))
json.dump({str(v): int(labels[v]) for v in rng.permutation(n)}, open(path("dense/saint", "class_map.json"), "w"))
json.dump({key: [int(v) for v in np.flatnonzero(split == role)] for role, key in enumerate(("tr", "va", "te"))},
          open(path("dense/saint", "role.json"), "w"))

for file in ("adj_full.npz", "feats.npy", "role.json"):
    shutil.copy(path("dense/saint", file), path("dense/saint_one_hot", file))
json.dump({str(v): one_hot[v].tolist() for v in range(n)}, open(path("dense/saint_one_hot", "class_map.json"), "w"))

np.savez(path("dense/benchmark", "some.npz"), adj_data=adjacency.data, adj_indices=adjacency.indices,
         adj_indptr=adjacency.indptr, adj_shape=adjacency.shape, attr_matrix=features, labels=labels,
         class_names=np.array(["a", "b", "c", "d", "é"]))
np.save(path("dense/benchmark", "split.npy"), split)

# Multi-label.
bits = rng.integers(0, 2, (n, classes))
plain("multi/plain", y=bits)
plain("multi/float", y=bits.astype(np.float32))
plain("multi/bool_fortran", y=np.asfortranarray(bits.astype(bool)))
for file in ("adj_full.npz", "feats.npy", "role.json"):
    shutil.copy(path("dense/saint", file), path("multi/saint", file))
json.dump({str(v): bits[v].tolist() for v in range(n)}, open(path("multi/saint", "class_map.json"), "w"))

# The same with sparse features.
plain("sparse/as_dense", x=sparse.toarray())
for name, matrix in (("csr", sparse), ("csc", sparse.tocsc()), ("coo", sparse.tocoo()), ("csr64", sparse.astype(np.float64))):
    plain("sparse/" + name, x=None)
    if name == "csr64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    sp.save_npz(path("sparse/" + name, "features.npz"), matrix)
for name, save in (("benchmark", np.savez), ("benchmark_compressed", np.savez_compressed)):
    save(path("sparse/" + name, "some.npz"), adj_data=adjacency.data, adj_indices=adjacency.indices,
         adj_indptr=adjacency.indptr, adj_shape=adjacency.shape, attr_data=sparse.data, attr_indices=sparse.indices,
         attr_indptr=sparse.indptr, attr_shape=sparse.shape, labels=labels,
         class_names=np.array(["a", "b", "c", "d", "é"], dtype=object))
    np.save(path("sparse/" + name, "split.npy"), split)

order = rng.permutation(np.arange(80, n))
neighbours = {v: [int(u) for u in adjacency.indices[adjacency.indptr[v]:adjacency.indptr[v + 1]]] for v in range(n)}
for protocol in (0, 1, 2, 3, 4, 5):
    stem = "sparse/planetoid%d/ind.some." % protocol
    for key, value in (("x", sparse[:train]), ("allx", sparse[:80]), ("tx", sparse[order]), ("y", one_hot[:train]),
                       ("ally", one_hot[:80]), ("ty", np.asfortranarray(one_hot[order])), ("graph", neighbours)):
        with open(path(stem + key), "wb") as out:
            pickle.dump(value, out, protocol=protocol)
    with open(path(stem + "test.index"), "w") as out:
        out.writelines("%d\n" % v for v in order)

# Other values of the same kind: SciPy's arrays, a defaultdict, integers of NumPy, dtypes that are not the usual ones.
for protocol in (2, 4, 5):
    stem = "sparse/planetoid%d_other/ind.some." % protocol
    lists = collections.defaultdict(list)
    for v in range(n):
        lists[np.int64(v)].extend(np.array(neighbours[v], np.int32))
    for key, value in (("x", sp.csr_array(sparse[:train])), ("allx", sp.csr_array(sparse[:80].astype(np.float64))),
                       ("tx", sp.csr_array(sparse[order])), ("y", one_hot[:train].astype(bool)),
                       ("ally", one_hot[:80].astype(">f8")), ("ty", one_hot[order][:, ::-1][:, ::-1]), ("graph", lists)):
        with open(path(stem + key), "wb") as out:
            pickle.dump(value, out, protocol=protocol)
    shutil.copy(path("sparse/planetoid2/ind.some.test.index"), path(stem + "test.index"))

# Arrays next to an edge list of text.
for name, x in (("dense/text_npz", features), ("dense/text_npy", features), ("sparse/text_npz", sparse)):
    np.savetxt(path(name, "edges.csv"), both.T, "%d", ",")
    if name.endswith("npy"):
        np.save(path(name, "features.npy"), x)
    elif x is sparse:
        sp.save_npz(path(name, "features.npz"), x)
    else:
        np.savez_compressed(path(name, "features.npz"), x)
    np.savez(path(name, "labels.npz"), labels)
    np.save(path(name, "split.npy"), split)

# Weights: the same in a matrix and next to an edge index.
weights = sp.triu(adjacency).tocoo()
weights.data = rng.integers(1, 9, weights.nnz).astype(np.float32)
plain("weighted/plain", np.stack([weights.row, weights.col]))
np.save(path("weighted/plain", "edge_weight.npy"), weights.data)
symmetric = (weights + weights.T).tocsr()
for name, matrix in (("csr", symmetric), ("csc", symmetric.tocsc()), ("coo", weights)):
    plain("weighted/" + name)
    os.remove(path("weighted/" + name, "edge_index.npy"))
    sp.save_npz(path("weighted/" + name, "adj.npz"), matrix)
