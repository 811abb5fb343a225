"""Graphs: from SciPy, NumPy, pandas, networkx, PyG, DGL, from files, and from stores on disk."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Optional, Sequence

import numpy as np

from . import _core
from ._arrays import (as_classes, as_settings, contiguous, feature_arrays, in_frames, is_sparse, label_numbers,
                      number_labels, part_of_split)
from ._errors import Error


class Graph:
    """A graph with features, labels and a split. Make one with ``from_…``, :meth:`open` or :meth:`generate`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> adjacency = scipy.sparse.random(100, 100, density=0.1, random_state=1)
    >>> X = np.random.default_rng(1).normal(size=(100, 8)).astype(np.float32)
    >>> graph = Graph.from_scipy(adjacency, X, np.arange(100) % 3, train=np.arange(60), test=np.arange(60, 100))
    >>> graph.num_nodes, graph.num_classes
    (100, 3)
    """

    def __init__(self, core: _core.Graph, index: Any = None) -> None:
        self._core = core
        self._classes: Optional[np.ndarray] = None  # as the caller gave them; None: as the engine has them
        self._tables: Any = None  # the folder that from_pandas imported from
        #: The node ids of the source; None: nodes are numbered from 0.
        self.index = index

    # -- making one ----------------------------------------------------------------------------------------------

    @classmethod
    def _make(cls, links: dict, X: Any, y: Any, train: Any, validation: Any, test: Any, split: Any, directed: bool,
              name: str, nodes: int, index: Any = None, feature_names: Sequence[str] = (), log: Any = None,
              task: str = "classification") -> "Graph":
        if task not in ("classification", "regression"):
            raise Error("task", f"is {task!r}, and 'classification' or 'regression' is wanted", "task=")
        if split is not None and any(part is not None for part in (train, validation, test)):
            raise Error("two splits", "is given together with train, validation or test", "split")
        features, names = feature_arrays(X)
        labels, classes = (number_labels(y), []) if task == "regression" else label_numbers(y)
        shares = split if isinstance(split, str) else ""
        split = None if shares else split
        arrays: dict = {"name": name, "nodes": nodes, "directed": bool(directed), "keep_self_loops": False,
                        "feature_width": 0, "class_names": [str(value) for value in classes], "feature_names": list(feature_names) or names,
                        "labels": labels, "regression": task == "regression", "split": contiguous(split, "split"), "split_shares": shares,
                        "train": part_of_split(train, "train", nodes), "validation": part_of_split(validation, "validation", nodes),
                        "test": part_of_split(test, "test", nodes), **links, **features}
        made = cls(_core.Graph.from_arrays(arrays, 0, log), index)
        made._classes = np.array(classes) if classes else None
        return made

    @classmethod
    def from_scipy(cls, adjacency: Any, X: Any = None, y: Any = None, *, train: Any = None, validation: Any = None,
                   test: Any = None, split: Any = None, weighted: bool = False, directed: bool = False,
                   name: str = "graph", task: str = "classification") -> "Graph":
        """A graph from a square sparse matrix.

        Parameters
        ----------
        adjacency : SciPy sparse matrix or array, n × n
            A symmetric CSR matrix with sorted rows and no self-loops is used without a copy. Otherwise self-loops are
            dropped, duplicate entries merged, and missing reverse edges added (unless `directed`).
        X : array, n × F, or SciPy sparse matrix, or pandas frame, optional
            Features. float32 and float16 arrays in C order are used without a copy. None: no features.
        y : array of n classes, or n × C of 0 and 1, optional
            Class numbers or names; a negative number, NaN or None for unlabelled nodes.
        train, validation, test : masks of n, or lists of node numbers, optional
        split : array of n, optional
            Instead: 0 training, 1 validation, 2 test, 255 none; or shares such as "60/20/20" of the labelled nodes.
        weighted : bool
            Use the matrix's values as edge weights. Default: every edge counts 1.
        task : "classification" or "regression"
            "regression": y holds numbers to predict, NaN for nodes without one (:class:`ClusterGCNRegressor`).
        """
        if not hasattr(adjacency, "tocsr"):
            raise Error("adjacency is no sparse matrix", f"is a {type(adjacency).__name__}, and a SciPy sparse matrix is "
                        "wanted", "adjacency", "scipy.sparse.csr_array(adjacency)")
        if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise Error("adjacency is not square", f"has the shape {adjacency.shape}, which is not square", "adjacency")
        rows = adjacency.tocsr()
        if not np.all(rows.data):  # stored zeros are no edges
            rows = rows.copy()
            rows.eliminate_zeros()
        links = {"offsets": contiguous(rows.indptr, "adjacency"), "targets": contiguous(rows.indices, "adjacency"),
                 "weights": contiguous(rows.data, "adjacency") if weighted else None}
        if links["offsets"].dtype == np.int32:
            links["offsets"] = links["offsets"].astype(np.int64)
        return cls._make(links, X, y, train, validation, test, split, directed, name, adjacency.shape[0], task=task)

    @classmethod
    def from_edge_index(cls, edges: Any, X: Any = None, y: Any = None, *, num_nodes: Optional[int] = None,
                        weights: Any = None, train: Any = None, validation: Any = None, test: Any = None,
                        split: Any = None, directed: bool = False, name: str = "graph",
                        task: str = "classification") -> "Graph":
        """A graph from a list of edges, 2 × E or E × 2 node numbers (a NumPy array or a tensor)."""
        array = contiguous(edges, "edges")
        if array.ndim != 2 or 2 not in array.shape:
            raise Error("edges have the wrong shape", f"has the shape {array.shape}, and 2 × E or E × 2 is wanted", "edges")
        ends = array if array.shape[0] == 2 else array.T
        if num_nodes is not None and num_nodes < 1:
            raise Error("no nodes", f"is {num_nodes}", "num_nodes=")
        if num_nodes is None:
            num_nodes = next((len(part) if not is_sparse(part) else part.shape[0] for part in (X, y) if part is not None),
                             int(array.max()) + 1 if array.size else 0)
        links = {"from": contiguous(ends[0], "edges"), "to": contiguous(ends[1], "edges"),
                 "weights": contiguous(weights, "weights")}
        return cls._make(links, X, y, train, validation, test, split, directed, name, int(num_nodes), task=task)

    @classmethod
    def from_pandas(cls, edges: Any, nodes: Any, *, id: str = "id", label: Optional[str] = "label",
                    split: Any = None, source: Any = 0, target: Any = 1, missing: str = "refuse",
                    categorical: str = "refuse", drop: Sequence[str] = (), like: Optional["Graph"] = None,
                    directed: bool = False, name: str = "graph", verbose: int = 1) -> "Graph":
        """A graph from two frames: edges (two columns) and nodes (an id, a label, features).

        Parameters
        ----------
        edges : DataFrame
            `source` and `target` name or count its two columns of node ids.
        nodes : DataFrame
            One row per node. `id` names its column of ids (or the index, if there is no such column).
        label : str or None
            The column of classes.
        split : str, optional
            Shares such as "60/20/20", drawn with seed 1; or the name of a column of "train", "validation", "test".
        missing, categorical : str
            How to treat missing numbers ("mean", "zero", "indicator", "refuse") and texts ("one-hot", "refuse"):
            as ``clustergcn import`` does it, fitted on training nodes.
        like : Graph, optional
            A graph from earlier tables: the same categories, filled values and classes are used.
        """
        frame = nodes.rename_axis(id).reset_index() if id not in nodes.columns and nodes.index.name in (id, None) and \
            not nodes.index.equals(nodes.reset_index(drop=True).index) else nodes
        unknown = [column for column in drop if column not in frame.columns]
        if unknown:
            raise Error("no such column", f"has no column {unknown[0]!r} to drop", "nodes", "drop=[…]")
        if id not in frame.columns:
            raise Error("no column of ids", f"has no column {id!r}; there are {', '.join(map(str, frame.columns))}", "nodes",
                        "id='…'")
        if label is not None and label not in frame.columns:
            raise Error("no column of labels", f"has no column {label!r}; there are {', '.join(map(str, frame.columns))}",
                        "nodes", "label='…', or label=None")
        by_column = isinstance(split, str) and split in frame.columns
        ends = [edges[column] if isinstance(column, str) else edges.iloc[:, column] for column in (source, target)]
        if like is not None and like._tables is None:
            raise Error("no tables", "was not made by from_pandas with feature columns", "like=")
        import pandas
        tables = tempfile.TemporaryDirectory(prefix="clustergcn-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        folder = tables.name
        paths = {part: os.path.join(folder, part + ".csv") for part in ("edges", "features", "labels", "split")}
        pandas.DataFrame({"source": ends[0], "target": ends[1]}).to_csv(paths["edges"], index=False)
        others = [column for column in frame.columns if column not in {id, label, split if by_column else None, *drop}]
        settings = {"name": name, "header": "yes", "labels": "none", "features": "none",
                    "directed": "true" if directed else "false"}
        if others or label is not None or by_column:
            settings["id-column"] = "id"
        if like is not None:
            settings["like"] = os.path.join(like._tables.name, "store")
        elif others:
            settings |= {"missing": missing, "categorical": categorical}
        if others:
            frame[[id, *others]].rename(columns={id: "id"}).to_csv(paths["features"], index=False)
            settings["features"] = paths["features"]
        classes: list = []
        if label is not None:
            values = frame[label].to_numpy(dtype=object, na_value=None) if frame[label].dtype.kind not in "biuf" else frame[label]
            numbers, classes = label_numbers(values)
            if like is not None:
                numbers, classes = like._own_numbers(numbers, classes)
            known = numbers >= 0
            pandas.DataFrame({"id": frame[id][known], "label": [f"c{number}" for number in numbers[known]]}).to_csv(
                paths["labels"], index=False)
            settings |= {"labels": paths["labels"], "label-column": "label"}
        if by_column:
            frame[[id, split]].dropna().rename(columns={id: "id", split: "split"}).to_csv(paths["split"], index=False)
            settings["split-file"] = paths["split"]
        elif split is not None:
            settings["split"] = str(split)
        try:
            core = _core.Graph.import_files(paths["edges"], os.path.join(folder, "store"), list(settings.items()),
                                            print if verbose else None)
        except Error as problem:
            raise in_frames(problem, folder) from None
        for path in paths.values():
            if os.path.exists(path):
                os.remove(path)
        made = cls._reordered(core, [str(value) for value in frame[id]], classes)
        made._tables = tables if others else None  # what like= reads; it goes with the graph
        return made

    def _own_numbers(self, numbers: np.ndarray, classes: list) -> tuple[np.ndarray, list]:
        """Labels that number `classes`, as numbers of this graph's classes."""
        place = {str(name): i for i, name in enumerate(self.classes)}
        names = [str(name) for name in classes] or [str(v) for v in range(int(np.max(numbers, initial=-1)) + 1)]
        occurring = {names[number] for number in numbers[numbers >= 0].tolist()}
        unknown = sorted(occurring - set(place))
        if unknown:
            raise Error("another class", f"the class {unknown[0]!r} does not occur in the earlier graph", "nodes")
        number = np.array([place.get(name, -1) for name in names] + [-1], dtype=np.int32)
        return number[numbers], [] if self._classes is None else self._classes.tolist()

    @classmethod
    def _reordered(cls, core: _core.Graph, wanted: list, classes: list) -> "Graph":
        """The same graph in memory, its nodes in this order, those that are not in it behind."""
        arrays = cls(core)._copied()
        ids = core.node_ids or [str(v) for v in range(core.num_nodes)]
        place = {node: i for i, node in enumerate(wanted)}
        extra = [node for node in ids if node not in place]
        place |= {node: len(wanted) + i for i, node in enumerate(extra)}
        order = np.argsort([place[node] for node in ids])  # nodes without edges, features and label are not in the store
        position = np.argsort(order)  # of the store's nodes in the new order
        assert arrays["feature_offsets"] is None
        degrees = np.diff(arrays["offsets"].astype(np.int64))
        arrays["from"] = position[np.repeat(np.arange(core.num_nodes), degrees)]
        arrays["to"] = position[arrays["targets"]]
        arrays["offsets"] = arrays["targets"] = None
        for part in ("features", "labels", "split"):
            if arrays[part] is not None:
                arrays[part] = np.ascontiguousarray(arrays[part][order])
        if arrays["labels"] is not None:  # classes were written as c0, c1, …, in the order of `classes`
            number = np.array([int(name[1:]) for name in core.class_names] + [-1], dtype=np.int32)
            arrays["labels"] = number[arrays["labels"]]
            arrays["class_names"] = [str(value) for value in classes]
        names = [*wanted, *extra]
        present = set(ids)
        made = cls(_core.Graph.from_arrays(arrays, 0, None), [node for node in names if node in present])
        made._classes = np.array(classes) if classes else None
        return made

    def with_split(self, *, train: Any = None, validation: Any = None, test: Any = None, split: Any = None) -> "Graph":
        """The same graph with other training, validation and test nodes; its arrays are shared."""
        arrays = self._copied(copy=False)
        arrays |= {"train": part_of_split(train, "train", self.num_nodes), "test": part_of_split(test, "test", self.num_nodes),
                   "validation": part_of_split(validation, "validation", self.num_nodes), "split": contiguous(split, "split")}
        made = Graph(_core.Graph.from_arrays(arrays, 0, None), self.index)
        made._classes = self._classes
        return made

    def _copied(self, copy: bool = True) -> dict:
        """Arrays of this graph; copies do not depend on its files."""
        core = self._core
        take = lambda array: np.array(array) if copy and array is not None else array  # noqa: E731
        offsets, columns, values = core.sparse_features
        return {"name": core.name, "nodes": core.num_nodes, "directed": core.directed, "keep_self_loops": True,
                "offsets": take(core.indptr), "targets": take(core.indices), "weights": take(core.weights),
                "features": take(core.dense_features), "feature_offsets": take(offsets), "feature_columns": take(columns),
                "feature_values": take(values), "feature_width": core.num_features if offsets is not None else 0,
                "labels": take(core.labels), "regression": core.regression, "split": take(core.split), "class_names": core.class_names,
                "feature_names": core.feature_names}

    @classmethod
    def from_networkx(cls, graph: Any, *, features: Sequence[str] = (), label: Optional[str] = None,
                      weight: Optional[str] = None, train: Any = None, validation: Any = None, test: Any = None,
                      split: Any = None, name: str = "graph") -> "Graph":
        """A graph from networkx; `features` and `label` name node attributes, `index` keeps the nodes' names."""
        order = list(graph.nodes)
        place = {node: i for i, node in enumerate(order)}
        ends = np.array([[place[u], place[v]] for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        if weight is not None and not any(weight in d for _, _, d in graph.edges(data=True)):
            raise Error("no weights", f"no edge has the attribute {weight!r}", "weight=")
        absent = [name for name in features if any(name not in graph.nodes[v] for v in order)]
        if isinstance(features, str) or absent:
            raise Error("no features", f"not every node has the attribute {features if isinstance(features, str) else absent[0]!r}",
                        "features=", "features=['age', …]")
        weights = None if weight is None else np.array([d.get(weight, 1) for _, _, d in graph.edges(data=True)], np.float32)
        X = None
        if features:
            X = np.array([[graph.nodes[v][name] for name in features] for v in order], dtype=np.float32)
        y = None if label is None else np.array([graph.nodes[v].get(label) for v in order], dtype=object)
        links = {"from": np.ascontiguousarray(ends[:, 0]), "to": np.ascontiguousarray(ends[:, 1]), "weights": weights}
        return cls._make(links, X, y, train, validation, test, split, graph.is_directed(), name, len(order), index=order,
                         feature_names=list(features))

    @classmethod
    def from_pyg(cls, data: Any, *, directed: bool = False, name: str = "graph") -> "Graph":
        """A graph from a PyTorch Geometric ``Data`` with edge_index, x, y and masks."""
        mask = {part: getattr(data, key, None) for part, key in
                (("train", "train_mask"), ("validation", "val_mask"), ("test", "test_mask"))}
        x = getattr(data, "x", None)
        nodes = int(data.num_nodes)
        return cls.from_edge_index(data.edge_index, x, getattr(data, "y", None), num_nodes=nodes,
                                   weights=getattr(data, "edge_weight", None), directed=directed, name=name, **mask)

    @classmethod
    def from_dgl(cls, graph: Any, *, directed: bool = False, name: str = "graph") -> "Graph":
        """A graph from DGL, with ndata 'feat', 'label', 'train_mask', 'val_mask', 'test_mask' if it has them."""
        source, target = graph.edges()
        data = graph.ndata
        take = lambda key: data[key] if key in data else None  # noqa: E731
        ends = np.stack([contiguous(source, "edges"), contiguous(target, "edges")])
        return cls.from_edge_index(ends, take("feat"), take("label"), num_nodes=int(graph.num_nodes()),
                                   train=take("train_mask"), validation=take("val_mask"), test=take("test_mask"),
                                   directed=directed, name=name)

    @classmethod
    def open(cls, store: "str | os.PathLike[str]") -> "Graph":
        """Open a graph store on disk (memory-mapped)."""
        return cls(_core.Graph.open(os.fspath(store)))

    @classmethod
    def import_files(cls, source: "str | os.PathLike[str]", store: "str | os.PathLike[str]", *, verbose: int = 1,
                     **options: Any) -> "Graph":
        """Import files into a store, as ``clustergcn import`` does, and open it."""
        return cls(_core.Graph.import_files(os.fspath(source), os.fspath(store), as_settings(options),
                                            print if verbose else None))

    @classmethod
    def download(cls, dataset: str, store: "str | os.PathLike[str]", *, verbose: int = 1, **options: Any) -> "Graph":
        """Download a public data set ("cora", "ppi", …) into a store, as ``clustergcn download`` does, and open it."""
        return cls(_core.Graph.download(dataset, os.fspath(store), as_settings(options), print if verbose else None))

    @classmethod
    def generate(cls, store: "str | os.PathLike[str] | None" = None, **options: Any) -> "Graph":
        """Generate a synthetic graph, as ``clustergcn generate`` does; in memory if no store is given."""
        if store is not None:
            return cls(_core.Graph.generate(os.fspath(store), as_settings(options)))
        with tempfile.TemporaryDirectory(prefix="clustergcn-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            made = cls(_core.Graph.generate(os.path.join(folder, "store"), as_settings(options)))
            return cls(_core.Graph.from_arrays(made._copied(), 0, None))

    def save(self, store: "str | os.PathLike[str]", replace: bool = False) -> None:
        """Write a store, to be read by :meth:`open` and the command line."""
        try:
            self._core.save(os.fspath(store), replace)
        except Error as problem:
            raise Error(problem.problem, problem.problem, problem.where, problem.hint.replace("force=", "replace=True")) from None

    # -- looking at it --------------------------------------------------------------------------------------------

    @property
    def name(self) -> str: return self._core.name
    @property
    def num_nodes(self) -> int: return self._core.num_nodes
    @property
    def num_edges(self) -> int: return self._core.num_edges
    @property
    def num_features(self) -> int: return self._core.num_features
    @property
    def num_classes(self) -> int: return self._core.num_classes
    @property
    def multi_label(self) -> bool: return self._core.multi_label
    @property
    def directed(self) -> bool: return self._core.directed
    @property
    def hash(self) -> str: return self._core.hash
    @property
    def indptr(self) -> np.ndarray: return self._core.indptr
    @property
    def indices(self) -> np.ndarray: return self._core.indices
    @property
    def weights(self) -> Optional[np.ndarray]: return self._core.weights
    @property
    def labels(self) -> Optional[np.ndarray]: return self._core.labels
    @property
    def split(self) -> Optional[np.ndarray]: return self._core.split
    @property
    def feature_names(self) -> list: return self._core.feature_names

    @property
    def classes(self) -> np.ndarray:
        """Class names, or numbers."""
        return self._classes if self._classes is not None else as_classes(self._core)

    @property
    def features(self) -> Any:
        """Dense features as a read-only array, sparse ones as a SciPy CSR matrix, None if there are none."""
        dense = self._core.dense_features
        offsets, columns, values = self._core.sparse_features
        if dense is not None or offsets is None:
            return dense
        import scipy.sparse
        return scipy.sparse.csr_matrix((values, columns.view(np.int32), offsets.view(np.int64)),
                                       shape=(self.num_nodes, self.num_features), copy=False)

    def nodes_of(self, part: str) -> np.ndarray:
        """The node numbers of "train", "validation" or "test"."""
        roles = {"train": 0, "validation": 1, "test": 2}
        if part not in roles:
            raise Error("no such part", f"is none of {', '.join(roles)}", f"part={part!r}")
        role = roles[part]
        return np.flatnonzero(self.split == role) if self.split is not None else np.array([], dtype=np.int64)

    def _rows(self) -> list:
        train, validation, test = self._core.split_sizes
        kind = "none" if self.num_features == 0 else f"{self.num_features:,}"
        return [("nodes", f"{self.num_nodes:,}"), ("edges", f"{self.num_edges:,}"), ("features", kind),
                ("classes", f"{self.num_classes:,}{', multi-label' if self.multi_label else ''}"),
                ("split", f"{train:,} training, {validation:,} validation, {test:,} test")]

    def __reduce__(self) -> Any:
        return _from_copies, (self._copied(), self.index, self._classes)

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, " + ", ".join(f"{key}: {value}" for key, value in self._rows()) + ")"

    def _repr_html_(self) -> str:
        import html
        rows = "".join(f"<tr><td>{key}</td><td style='text-align:right'>{html.escape(value)}</td></tr>"
                       for key, value in self._rows())
        return f"<table><caption>{html.escape(self.name)}</caption>{rows}</table>"


def _from_copies(arrays: dict, index: Any, classes: Optional[np.ndarray]) -> Graph:
    made = Graph(_core.Graph.from_arrays(arrays, 0, None), index)
    made._classes = classes
    return made
