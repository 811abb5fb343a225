import numpy as np
import pandas
import pytest
import scipy.sparse

import clustergcn as cg


def test_arrays_in_the_right_layout_are_used_where_they_lie(small):
    adjacency, X, y, split = small
    rows = scipy.sparse.csr_matrix(adjacency)
    graph = cg.Graph.from_scipy(rows, X, y, split=split)
    assert np.shares_memory(graph.indices.view(np.int32), rows.indices)
    assert np.shares_memory(graph.features, X)
    assert not graph.features.flags.writeable
    half = X.astype(np.float16)
    assert np.shares_memory(cg.Graph.from_scipy(rows, half, y, split=split).features, half)


def test_one_directional_doubled_and_looped_entries_are_mended():
    adjacency = scipy.sparse.csr_matrix(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]]))
    graph = cg.Graph.from_scipy(adjacency)
    assert graph.num_edges == 2
    assert graph.indptr.tolist() == [0, 1, 3, 4] and graph.indices.tolist() == [1, 0, 2, 1]
    assert cg.Graph.from_scipy(adjacency, directed=True).num_edges == 2
    edges = cg.Graph.from_edge_index(np.array([[0, 1, 1, 0], [1, 0, 2, 1]]))
    assert edges.indices.tolist() == graph.indices.tolist() and edges.hash == graph.hash


def test_edges_as_rows_or_columns_of_any_integers(small):
    adjacency, X, y, split = small
    coo = adjacency.tocoo()
    ends = np.stack([coo.row, coo.col])
    wanted = cg.Graph.from_scipy(adjacency, X, y, split=split).hash
    for edges in (ends, ends.T, ends.astype(np.int64), np.asfortranarray(ends), ends.astype(np.uint32)):
        assert cg.Graph.from_edge_index(edges, X, y, split=split).hash == wanted


def test_a_saved_graph_is_the_same(small, graph, tmp_path, run_program):
    graph.save(tmp_path / "store")
    again = cg.Graph.open(tmp_path / "store")
    assert again.hash == graph.hash and again.num_edges == graph.num_edges
    assert "300" in run_program("info", tmp_path / "store")
    with pytest.raises(cg.Error, match="exists"):
        graph.save(tmp_path / "store")
    graph.save(tmp_path / "store", replace=True)


def test_masks_lists_and_split_agree(small):
    adjacency, X, y, split = small
    whole = cg.Graph.from_scipy(adjacency, X, y, split=split)
    masks = cg.Graph.from_scipy(adjacency, X, y, train=split == 0, validation=split == 1, test=split == 2)
    lists = cg.Graph.from_scipy(adjacency, X, y, train=np.flatnonzero(split == 0), validation=np.flatnonzero(split == 1),
                                test=np.flatnonzero(split == 2))
    assert whole.hash == masks.hash == lists.hash
    assert whole.nodes_of("test").tolist() == np.flatnonzero(split == 2).tolist()


def test_classes_by_name_and_numbers_with_gaps(small):
    adjacency, X, y, split = small
    named = cg.Graph.from_scipy(adjacency, X, np.array(["red", "green", "blue"])[y], split=split)
    assert named.classes.tolist() == ["blue", "green", "red"] and named.num_classes == 3
    gaps = cg.Graph.from_scipy(adjacency, X, np.array([10, 200, 3000])[y], split=split)
    assert gaps.num_classes == 3 and gaps.classes.tolist() == [10, 200, 3000]
    far = y.astype(np.int64)
    far[7] = -2**40
    assert cg.Graph.from_scipy(adjacency, X, far, split=split).labels[7] == -1
    some = y.astype(float)
    some[5] = np.nan
    assert cg.Graph.from_scipy(adjacency, X, some, split=split).labels[5] == -1


def test_byte_order_and_alignment_do_not_matter(small):
    adjacency, X, y, split = small
    wanted = cg.Graph.from_scipy(adjacency, X, y, split=split).hash
    assert cg.Graph.from_scipy(adjacency, X.astype(">f4"), y.astype(">i8"), split=split).hash == wanted
    odd = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(X.shape)
    assert not odd.flags.aligned and cg.Graph.from_scipy(adjacency, odd, y, split=split).hash == wanted


def test_sparse_features_and_none(small):
    adjacency, X, y, split = small
    sparse = scipy.sparse.csr_matrix(np.where(X > 1, X, 0))
    graph = cg.Graph.from_scipy(adjacency, sparse, y, split=split)
    assert (graph.features != sparse).nnz == 0
    assert cg.Graph.from_scipy(adjacency, None, y, split=split).features is None


def test_pandas_keeps_the_order_of_its_rows(tmp_path):
    random = np.random.default_rng(2)
    ids = [f"p{i}" for i in random.permutation(60)]
    nodes = pandas.DataFrame({"person": ids, "age": random.normal(size=60), "town": random.choice(["A", "B"], 60),
                              "group": random.choice(["x", "y"], 60)})
    nodes.loc[3, "age"] = np.nan
    edges = pandas.DataFrame({"a": random.choice(ids, 200), "b": random.choice(ids, 200)})
    graph = cg.Graph.from_pandas(edges, nodes, id="person", label="group", split="60/20/20", missing="mean",
                                 categorical="one-hot", verbose=0)
    assert graph.index == ids
    assert graph.classes[graph.labels].tolist() == nodes["group"].tolist()
    assert graph.features[0, 0] == pytest.approx(nodes["age"][0])
    assert "age" in graph.feature_names and any("town" in name for name in graph.feature_names)
    with pytest.raises(cg.Error, match="town"):
        cg.Graph.from_pandas(edges, nodes, id="person", label="group", split="60/20/20", missing="mean", verbose=0)
    with pytest.raises(cg.Error, match="persn"):
        cg.Graph.from_pandas(edges, nodes, id="persn", label="group")


def test_pandas_nodes_that_no_table_tells_anything_of():
    edges = pandas.DataFrame({"a": ["p", "q"], "b": ["q", "r"]})
    nodes = pandas.DataFrame({"id": ["r", "alone", "p", "q"]})
    graph = cg.Graph.from_pandas(edges, nodes, label=None, verbose=0)
    assert graph.index == ["r", "p", "q"] and graph.num_edges == 2
    assert sorted(np.diff(graph.indptr.astype(int))) == [1, 1, 2] and np.diff(graph.indptr.astype(int))[2] == 2


def test_pandas_labels_stay_what_they_are():
    random = np.random.default_rng(3)
    ids = np.arange(50)
    edges = pandas.DataFrame({"a": random.choice(ids, 200), "b": random.choice(ids, 200)})
    for label in (np.array([10115, 20095, 80331])[ids % 3], np.array(["01", "1", "2"])[ids % 3]):
        nodes = pandas.DataFrame({"id": ids, "x": random.normal(size=50), "label": label})
        graph = cg.Graph.from_pandas(edges, nodes, split="60/20/20", verbose=0)
        assert graph.num_classes == 3 and graph.classes[graph.labels].tolist() == label.tolist()
    with pytest.raises(cg.Error, match="no column 'typo'"):
        cg.Graph.from_pandas(edges, nodes, drop=["typo"])
    nodes.loc[4, "x"] = np.nan
    with pytest.raises(cg.Error) as caught:
        cg.Graph.from_pandas(edges, nodes, split="60/20/20", verbose=0)
    assert "/dev/shm" not in str(caught.value) and "nodes" in str(caught.value)


def test_pandas_a_later_table_is_encoded_like_the_first():
    random = np.random.default_rng(4)

    def tables(towns, groups):
        nodes = pandas.DataFrame({"id": np.arange(40), "town": random.choice(towns, 40), "size": random.normal(size=40),
                                  "label": random.choice(groups, 40)})
        edges = pandas.DataFrame({"a": random.integers(0, 40, 100), "b": random.integers(0, 40, 100)})
        return edges, nodes
    first = cg.Graph.from_pandas(*tables(["A", "B", "C"], ["x", "y", "z"]), split="60/20/20", categorical="one-hot",
                                 missing="mean", verbose=0)
    edges, nodes = tables(["A", "B"], ["z", "y"])
    nodes.loc[3, "size"] = np.nan
    later = cg.Graph.from_pandas(edges, nodes, like=first, verbose=0)
    assert later.feature_names == first.feature_names and later.classes.tolist() == ["x", "y", "z"]
    assert later.classes[later.labels].tolist() == nodes["label"].tolist()
    model = cg.ClusterGCNClassifier(layers=2, hidden=4, epochs=1, verbose=0).fit(first)
    assert model.predict(later).shape == (40,)
    with pytest.raises(cg.Error, match="'w'"):
        cg.Graph.from_pandas(*tables(["A"], ["w"]), like=first, verbose=0)


def test_stored_zeros_are_no_edges_and_shares_draw_a_split(small):
    adjacency, X, y, _ = small
    zeros = adjacency.copy()
    zeros.data[:500] = 0
    assert cg.Graph.from_scipy(zeros, X, y).num_edges < cg.Graph.from_scipy(adjacency, X, y).num_edges
    graph = cg.Graph.from_scipy(adjacency, X, y, split="60/20/20")
    assert [len(graph.nodes_of(part)) for part in ("train", "validation", "test")] == [180, 60, 60]
    with pytest.raises(cg.Error, match="split"):
        cg.Graph.from_scipy(adjacency, X, y, split="60/20")


def test_networkx():
    networkx = pytest.importorskip("networkx")
    club = networkx.karate_club_graph()
    graph = cg.Graph.from_networkx(club, label="club", train=np.arange(34) % 2 == 0, test=np.arange(34) % 2 == 1)
    assert (graph.num_nodes, graph.num_edges) == (34, 78) and graph.classes.tolist() == ["Mr. Hi", "Officer"]


def test_what_looks_like_pyg_and_dgl():
    class Data:  # what from_pyg reads of one
        edge_index = np.array([[0, 1, 2], [1, 2, 0]])
        x = np.eye(3, dtype=np.float32)
        y = np.array([0, 1, 0])
        train_mask = np.array([True, True, False])
        val_mask = np.array([False, False, False])
        test_mask = np.array([False, False, True])
        num_nodes = 3
    graph = cg.Graph.from_pyg(Data)
    assert (graph.num_edges, graph.split.tolist()) == (3, [0, 0, 2])

    class Dgl:
        ndata = {"feat": Data.x, "label": Data.y, "train_mask": Data.train_mask}
        def edges(self): return Data.edge_index[0], Data.edge_index[1]
        def num_nodes(self): return 3
    assert cg.Graph.from_dgl(Dgl()).num_edges == 3


@pytest.mark.parametrize("change, message", [
    (dict(train=np.ones(299, bool)), "train=|train"),
    (dict(train=np.array([0, 1]), test=np.array([1, 2])), "more than one part"),
    (dict(train=np.array([0, 300])), "300"),
    (dict(X=np.full((300, 6), np.nan, np.float32)), "row 0, column 0 is nan"),
    (dict(X=np.zeros((299, 6), np.float32)), "299"),
    (dict(y=np.linspace(0, 1, 300)), "no classes"),
    (dict(y=np.zeros(299, int)), "299"),
    (dict(y=np.where(np.arange(300) == 9, np.inf, 0.0)), "entry 9 is infinite"),
    (dict(X=scipy.sparse.csr_matrix((300, 2**32 + 8), dtype=np.float32)), "more columns"),
    (dict(X=np.array([["a"] * 6] * 300)), "numbers"),
])
def test_bad_arrays_are_refused_by_name(small, change, message):
    adjacency, X, y, _ = small
    given = dict(X=X, y=y) | change
    with pytest.raises(cg.Error, match=message):
        cg.Graph.from_scipy(adjacency, given.pop("X"), given.pop("y"), **given)


def test_negative_weights_are_refused():
    adjacency = scipy.sparse.csr_matrix(np.array([[0, 1, 0], [1, 0, -2.5], [0, -2.5, 0]]))
    with pytest.raises(cg.Error, match="weights: entry 2 is -2.5"):
        cg.Graph.from_scipy(adjacency, weighted=True)


def test_bad_links_are_refused(small):
    adjacency, X, y, split = small
    with pytest.raises(cg.Error, match="square"):
        cg.Graph.from_scipy(adjacency[:200], X, y)
    with pytest.raises(cg.Error, match="SciPy"):
        cg.Graph.from_scipy([[0, 1], [1, 0]])
    with pytest.raises(cg.Error, match="300"):
        cg.Graph.from_edge_index(np.array([[0, 300], [1, 2]]), X, y)
    with pytest.raises(cg.Error, match="-1"):
        cg.Graph.from_edge_index(np.array([[0, -1], [1, 2]]), X, y)
    ragged = scipy.sparse.csr_matrix(adjacency)
    ragged.indptr = ragged.indptr.copy()
    ragged.indptr[5] = 10**6
    with pytest.raises(cg.Error, match="offsets"):
        cg.Graph.from_scipy(ragged, X, y)


def test_no_other_library_is_imported():
    import subprocess
    import sys
    code = ("import sys, clustergcn; "
            "print([m for m in ('torch', 'pandas', 'networkx', 'sklearn', 'scipy') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
