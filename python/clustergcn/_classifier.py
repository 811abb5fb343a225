"""The estimator, in the form that scikit-learn's have."""
from __future__ import annotations

import difflib
import os
import sys
import time
from typing import Any, Callable, Optional

import numpy as np

from . import _core
from ._arrays import as_classes, as_settings, label_numbers, number_labels, part_of_split
from ._errors import Error
from ._graph import Graph


class NotFittedError(Error, AttributeError):
    """The model has not been trained yet."""


_DEFAULTS = {option["name"].replace("-", "_"): option for option in _core.options()}


class _Progress:
    """A progress line, in a terminal or a notebook."""

    def __init__(self, verbose: int, on_epoch: Optional[Callable[[dict], Any]]) -> None:
        self._verbose, self._on_epoch = verbose, on_epoch
        self._began, self._shown, self._width = time.monotonic(), 0.0, 0
        try:
            from IPython import get_ipython  # type: ignore[import-not-found]
            self._moves = get_ipython() is not None or sys.stderr.isatty()
        except ImportError:
            self._moves = sys.stderr.isatty()

    def __call__(self, epoch: dict) -> Any:
        if self._verbose:
            self._show(epoch)
        answer = self._on_epoch(epoch) if self._on_epoch is not None else True
        return not (isinstance(answer, (bool, np.bool_)) and not answer)

    def _show(self, epoch: dict) -> None:
        now, last = time.monotonic(), epoch["epoch"] == epoch["epochs"]
        if not last and now - self._shown < (0.1 if self._moves else 30):
            return
        if not self._moves and self._shown == 0.0 and not last and now - self._began < 2:
            return
        self._shown = now
        validation, score = epoch["validation"], ""
        if validation:
            score = f"  validation R² {validation['r2']:.4f}" if "r2" in validation else \
                f"  validation F1 {100 * validation['micro_f1']:.2f} %"
        line = f"epoch {epoch['epoch']}/{epoch['epochs']}  loss {epoch['loss']:.4f}{score}"
        if self._moves:
            sys.stderr.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._verbose and self._moves and self._width:
            sys.stderr.write("\n")


class ClusterGCNClassifier:
    """Node classifier: a graph convolutional network trained by Cluster-GCN.

    Parameters
    ----------
    layers, hidden, epochs, lr, dropout, seed, parts, per_batch, method, … :
        Every option of ``clustergcn train``, with underscores in its name; ``ClusterGCNClassifier.options()`` lists
        them. Defaults are those of the command line.
    recipe : str, optional
        A preset ("cora", "ppi", …); other parameters override it. Default "auto": chosen from the graph, as the command
        line does. "none": the fixed defaults.
    threads : int
        0: all cores.
    verbose : int
        1 shows progress on stderr, 0 is silent.

    Attributes
    ----------
    classes_ : array
        Class names, or numbers.
    history_ : dict of arrays
        "epoch", "loss", "seconds", "validation_f1" (NaN if not validated), one entry per epoch.
    scores_ : dict
        Scores of the kept model on the training, validation and test nodes.
    n_features_in_ : int
    feature_names_in_ : array of str, if the features have names

    Examples
    --------
    >>> graph = Graph.generate(nodes=600, seed=1)
    >>> model = ClusterGCNClassifier(layers=2, hidden=32, epochs=5, seed=1, verbose=0).fit(graph)
    >>> model.predict(graph, nodes=[3, 1]).shape
    (2,)
    """

    _estimator_type = "classifier"

    def __init__(self, *, recipe: Optional[str] = None, threads: int = 0, verbose: int = 1, **options: Any) -> None:
        self.recipe, self.threads, self.verbose = recipe, threads, verbose
        for name, value in options.items():
            self._require_known(name)
            setattr(self, name, value)

    @staticmethod
    def _require_known(name: str) -> None:
        if name in _DEFAULTS:
            return
        near = difflib.get_close_matches(name, [*_DEFAULTS, "recipe", "threads", "verbose"], 1)
        hint = f"did you mean {near[0]}?" if near else "ClusterGCNClassifier.options() lists them"
        raise Error(f"no parameter {name}", f"there is no parameter of this name; {hint}", f"{name}=")

    @staticmethod
    def options() -> list:
        """Every option: name, kind, default, help, choices."""
        return [{**option, "name": name} for name, option in _DEFAULTS.items()]

    # -- parameters, as scikit-learn asks for them ------------------------------------------------------------------

    def _options(self) -> dict:
        return {name: value for name, value in vars(self).items() if name in _DEFAULTS}

    def get_params(self, deep: bool = True) -> dict:
        return {"recipe": self.recipe, "threads": self.threads, "verbose": self.verbose, **self._options()}

    def set_params(self, **params: Any) -> "ClusterGCNClassifier":
        for name, value in params.items():
            if name not in ("recipe", "threads", "verbose"):
                self._require_known(name)
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> "ClusterGCNClassifier":
        return type(self)(**self.get_params())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # type: ignore[import-not-found]
        return Tags(estimator_type="classifier", target_tags=TargetTags(required=True), classifier_tags=ClassifierTags(),
                    input_tags=InputTags(sparse=True))

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items()
                 if not (name == "recipe" and value is None or name == "threads" and value == 0 or
                         name == "verbose" and value == 1)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, adjacency: Any = None, graph: Optional[Graph] = None, train: Any = None,
            validation: Any = None,
            run: "str | os.PathLike[str] | None" = None, resume: bool = False,
            on_epoch: Optional[Callable[[dict], Any]] = None) -> "ClusterGCNClassifier":
        """Trains.

        Parameters
        ----------
        X : Graph, or features (with `y` and `adjacency`), or node numbers (with `graph`)
        y : classes, if X holds features
        graph : Graph, if X holds the numbers of the training nodes, as in cross-validation. `predict` and `score` of
            node numbers then use this graph.
        adjacency : SciPy sparse matrix, if X holds features
        train, validation : masks or node numbers, if X holds features; default for train: all nodes with a class
        run : path, optional
            Run folder to write, as ``clustergcn train --run`` does: settings, metrics, checkpoints, report.
        resume : bool
            Continue that run.
        on_epoch : callable, optional
            Called with a dict after each epoch; return False to stop.
        """
        if not isinstance(self.threads, (int, np.integer)) or self.threads < 0:
            raise Error("threads", f"is {self.threads!r}, and a number from 0 on is wanted", "threads=")
        if isinstance(X, Graph):
            given = {"y": y, "adjacency": adjacency, "graph": graph, "train": train, "validation": validation}
            for name, value in given.items():
                if value is not None:
                    raise Error(f"{name} is not used", "is not used with a Graph, which has its own labels and split",
                                f"{name}=", "graph.with_split(train=…), or leave it out")
        if graph is not None:
            if not isinstance(graph, Graph):
                raise Error("no graph", f"is a {type(graph).__name__}, and a Graph is wanted", "graph=")
            _require_own_labels(graph, X, y)
            graph = graph.with_split(train=X, validation=validation)
            self._kept = graph  # with this split: labels of other nodes must not reach predictions
        else:
            self._kept = None
            graph = X if isinstance(X, Graph) else self._graph_of(X, y, adjacency, train, validation)
        self._require_task(graph)
        progress = _Progress(self.verbose, on_epoch)
        settings = as_settings(self._options())
        try:
            self._model, history, self.scores_, about = _core.train(
                graph._core, self.recipe or "", settings,
                {"threads": self.threads, "run": os.fspath(run) if run is not None else "", "resume": resume,
                 "on_epoch": progress, "log": print if self.verbose > 1 else None})
        finally:
            progress.end()
        self._take(history, about)
        self.classes_ = graph.classes
        if self.run_:
            with open(os.path.join(self.run_, "report.html"), "w", encoding="utf-8") as file:
                file.write(_core.report([self.run_]))
        return self

    def _require_task(self, graph: Graph) -> None:
        if graph._core.regression:
            raise Error("numbers", "has labels that are numbers, and classes are wanted", "graph", "ClusterGCNRegressor")

    def _graph_of(self, X: Any, y: Any, adjacency: Any, train: Any, validation: Any) -> Graph:
        if adjacency is None:
            raise Error("no graph", "a graph is wanted", "adjacency=", "fit(graph), or fit(X, y, adjacency=matrix)")
        if train is None and y is not None:
            numbers, _ = label_numbers(y)
            labelled = np.ones(len(numbers), bool) if numbers.ndim == 2 else numbers >= 0
            train = labelled if validation is None else labelled & ~_as_mask(validation, len(labelled))
        return Graph.from_scipy(adjacency, X, y, train=train, validation=validation)

    def _take(self, history: list, about: dict) -> None:
        name = "r2" if self._model.regression else "micro_f1"
        score = [epoch["validation"][name] if epoch["validation"] else np.nan for epoch in history]
        self.history_ = {"epoch": np.array([epoch["epoch"] for epoch in history]),
                         "loss": np.array([epoch["loss"] for epoch in history]),
                         "seconds": np.array([epoch["seconds"] for epoch in history]),
                         "validation_r2" if self._model.regression else "validation_f1": np.array(score)}
        self.n_iter_ = len(history)
        self.kept_epoch_, self.stopped_early_, self.run_ = about["kept_epoch"], about["stopped_early"], about["run"]
        self._describe()

    def _describe(self) -> None:
        self.n_features_in_ = self._model.num_features
        if self._model.feature_names:
            self.feature_names_in_ = np.array(self._model.feature_names, dtype=object)

    # -- using it -----------------------------------------------------------------------------------------------------

    def _fitted(self) -> _core.Model:
        if not hasattr(self, "_model"):
            raise NotFittedError("not fitted", "the model has not been trained", "", "fit(graph) first")
        return self._model

    def _graph(self, X: Any, nodes: Any, adjacency: Any) -> "tuple[_core.Graph, Any]":
        """The graph, and the nodes that are asked for."""
        kept = getattr(self, "_kept", None)
        if kept is not None and not isinstance(X, Graph) and adjacency is None:
            X, nodes = kept, X
        graph = X if isinstance(X, Graph) else self._graph_of(X, None, adjacency, None, None)
        return graph._core, _node_numbers(nodes, graph.num_nodes)

    def predict_proba(self, X: Any, *, nodes: Any = None, adjacency: Any = None, calibrated: bool = False,
                      smooth: str = "trained") -> np.ndarray:
        """Class probabilities, one row per node (of `nodes`, in their order; default: all nodes).

        calibrated: of the logits divided by the temperature that fitted the validation nodes best; smoothed ones always are.
        smooth: "none", "correct", "smooth", "both" or "labels", as ``clustergcn predict --smooth``; "trained": as the option
        `smooth` of the training.
        """
        model = self._fitted()
        graph, wanted = self._graph(X, nodes, adjacency)
        if wanted is not None and len(wanted) == 0:
            return np.empty((0, model.num_classes), np.float32)
        return model.probabilities(graph, wanted, calibrated, smooth, self.threads, print if self.verbose > 1 else None)

    def predict(self, X: Any, *, nodes: Any = None, adjacency: Any = None, smooth: str = "trained") -> np.ndarray:
        """The class of each node; for multi-label graphs a matrix of 0 and 1."""
        model = self._fitted()
        graph, wanted = self._graph(X, nodes, adjacency)
        if wanted is not None and len(wanted) == 0:
            return np.empty((0, model.num_classes), np.uint8) if model.multi_label else self.classes_[:0]
        found = model.classes(graph, wanted, smooth, self.threads, print if self.verbose > 1 else None)
        return found.astype(np.uint8) if model.multi_label else self.classes_[found[:, 0].astype(np.int64)]

    def embed(self, X: Any, *, layer: int = 0, nodes: Any = None, adjacency: Any = None) -> np.ndarray:
        """The output of a layer, from 1; 0: the last hidden one."""
        if layer < 0:
            raise Error("layer", f"is {layer}, and a number from 0 on is wanted", "layer=")
        model = self._fitted()
        graph, wanted = self._graph(X, nodes, adjacency)
        if wanted is not None and len(wanted) == 0:
            wanted = np.array([0])
            return model.embeddings(graph, layer, wanted, self.threads, None)[:0]
        return model.embeddings(graph, layer, wanted, self.threads, print if self.verbose > 1 else None)

    def evaluate(self, graph: Graph, *, smooth: str = "trained") -> dict:
        """Scores on the training, validation and test nodes."""
        return self._fitted().evaluate(graph._core, smooth, self.threads, print if self.verbose > 1 else None)

    def score(self, X: Any, y: Any = None, *, nodes: Any = None, adjacency: Any = None) -> float:
        """Accuracy; micro F1 for multi-label graphs. Nodes without a label are ignored.

        Of a Graph, as the command line scores: its test nodes; if there are none its validation nodes; if there are
        none either, all nodes that are not training nodes.

        Parameters
        ----------
        X : Graph (or features, with `y` and `adjacency`: all nodes)
        y : classes, or, with a Graph, a mask or node numbers of the nodes to score instead
        nodes : mask or node numbers, likewise
        """
        kept = getattr(self, "_kept", None)
        if kept is not None and not isinstance(X, Graph) and adjacency is None:
            _require_own_labels(kept, X, y)
            return self.score(kept, X)
        if isinstance(X, Graph):
            truth, nodes = X.labels, _scored_nodes(X, y if nodes is None else nodes)
            truth = self._as_own_classes(truth, X.classes)
        else:
            numbers, names = label_numbers(y)
            truth = self._as_own_classes(numbers, np.array(names) if names else np.arange(int(np.max(numbers, initial=0)) + 1))
        wanted = np.arange(len(truth)) if nodes is None else _node_numbers(nodes, len(truth))
        truth = np.asarray(truth)[wanted]
        if truth.ndim == 2:
            found = self.predict(X, nodes=None if nodes is None else wanted, adjacency=adjacency) > 0
            right = np.sum(found & (truth == 1))
            return float(2 * right / max(1, found.sum() + truth.sum()))
        probabilities = self.predict_proba(X, nodes=None if nodes is None else wanted, adjacency=adjacency)
        known = truth >= 0
        return float(np.mean(np.argmax(probabilities, axis=1)[known] == truth[known])) if known.any() else float("nan")

    def _as_own_classes(self, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Labels that number `classes`, as numbers of the model's own classes; one that it does not know is never right."""
        if labels.ndim == 2 or list(map(str, classes)) == list(map(str, self.classes_)):
            return labels
        place = {str(name): i for i, name in enumerate(self.classes_)}
        number = np.array([place.get(str(name), len(place)) for name in classes] + [-1])
        return number[labels]

    def report(self) -> "Report":
        """The report of a run folder (``fit(graph, run="my-run")``), shown inline in a notebook."""
        self._fitted()
        if not getattr(self, "run_", ""):
            raise Error("no run", "the training has no run folder", "run=", "fit(graph, run='my-run')")
        return Report(_core.report([self.run_]))

    # -- keeping it ---------------------------------------------------------------------------------------------------

    def save(self, file: "str | os.PathLike[str]") -> None:
        """Writes the model as a .safetensors file, which ``clustergcn predict`` and :meth:`load` read."""
        self._fitted().save(os.fspath(file))

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "ClusterGCNClassifier":
        """A model from a run folder or a .safetensors file, of this program on any front."""
        made = cls()
        made._model = _core.Model.load(os.fspath(path))
        made.classes_ = as_classes(made._model)
        made._describe()
        return made

    def __getstate__(self) -> dict:
        state = {name: value for name, value in self.__dict__.items() if name != "_kept"}
        if "_model" in state:
            state["_model"] = state["_model"].to_bytes()
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        if "_model" in state:
            self._model = _core.Model.from_bytes(state["_model"])


class ClusterGCNRegressor(ClusterGCNClassifier):
    """Node regressor: as :class:`ClusterGCNClassifier`, for graphs whose labels are numbers.

    ``history_`` has "validation_r2"; ``scores_`` has "r2", "mae" and "rmse" of each part of the split.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> adjacency = scipy.sparse.random(100, 100, density=0.1, random_state=1)
    >>> X = np.random.default_rng(1).normal(size=(100, 8)).astype(np.float32)
    >>> graph = Graph.from_scipy(adjacency, X, X[:, 0] + 0.5, train=np.arange(60), test=np.arange(60, 100), task="regression")
    >>> ClusterGCNRegressor(layers=2, hidden=32, epochs=5, seed=1, verbose=0).fit(graph).predict(graph, nodes=[3, 1]).shape
    (2,)
    """

    _estimator_type = "regressor"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # type: ignore[import-not-found]
        return Tags(estimator_type="regressor", target_tags=TargetTags(required=True), regressor_tags=RegressorTags(),
                    input_tags=InputTags(sparse=True))

    def fit(self, X: Any, y: Any = None, **more: Any) -> "ClusterGCNRegressor":
        """Trains; parameters are those of :meth:`ClusterGCNClassifier.fit`, and `y` holds numbers."""
        super().fit(X, y, **more)
        return self

    def _require_task(self, graph: Graph) -> None:
        if not graph._core.regression:
            raise Error("classes", "has classes, and numbers are wanted", "graph", "Graph.from_scipy(…, task='regression')")

    def _graph_of(self, X: Any, y: Any, adjacency: Any, train: Any, validation: Any) -> Graph:
        if adjacency is None:
            raise Error("no graph", "a graph is wanted", "adjacency=", "fit(graph), or fit(X, y, adjacency=matrix)")
        if train is None and y is not None:
            numbers = number_labels(y)
            known = ~np.isnan(numbers)
            train = known if validation is None else known & ~_as_mask(validation, len(known))
        return Graph.from_scipy(adjacency, X, y, train=train, validation=validation, task="regression")

    def predict_proba(self, X: Any, **more: Any) -> np.ndarray:
        raise Error("no probabilities", "numbers have no probabilities", "predict_proba", "predict")

    def predict(self, X: Any, *, nodes: Any = None, adjacency: Any = None, smooth: str = "trained") -> np.ndarray:
        """The number of each node (of `nodes`, in their order; default: all nodes)."""
        if smooth not in ("none", "trained"):
            raise Error("smooth", "spreads classes, and the labels are numbers", "smooth=")
        model = self._fitted()
        graph, wanted = self._graph(X, nodes, adjacency)
        if wanted is not None and len(wanted) == 0:
            return np.empty(0, np.float32)
        return model.values(graph, wanted, self.threads, print if self.verbose > 1 else None)[:, 0]

    def score(self, X: Any, y: Any = None, *, nodes: Any = None, adjacency: Any = None) -> float:
        """R². Nodes without a label are ignored; nodes and parameters are those of :meth:`ClusterGCNClassifier.score`."""
        kept = getattr(self, "_kept", None)
        if kept is not None and not isinstance(X, Graph) and adjacency is None:
            return self.score(kept, X)
        if isinstance(X, Graph):
            truth, nodes = X.labels, _scored_nodes(X, y if nodes is None else nodes)
        else:
            truth = number_labels(y)
        wanted = np.arange(len(truth)) if nodes is None else _node_numbers(nodes, len(truth))
        truth = np.asarray(truth, dtype=np.float64)[wanted]
        found = self.predict(X, nodes=None if nodes is None else wanted, adjacency=adjacency)
        known = ~np.isnan(truth)
        if not known.any():
            return float("nan")
        spread = np.sum((truth[known] - truth[known].mean()) ** 2)
        return float(1 - np.sum((truth[known] - found[known]) ** 2) / spread) if spread > 0 else 0.0


class Report:
    """An HTML page, shown inline in a notebook."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, file: "str | os.PathLike[str]") -> None:
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.html)

    def _repr_html_(self) -> str:
        import html
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:900px;border:0"></iframe>'


def _scored_nodes(graph: Graph, nodes: Any) -> Any:
    """Those that are asked for; else the test nodes, the validation nodes, or all that were not trained on."""
    if graph.labels is None:
        raise Error("no labels", "has no labels to compare with", "graph")
    if nodes is not None or graph.split is None:
        return nodes
    for part in ("test", "validation"):
        if len(found := graph.nodes_of(part)):
            return found
    others = np.flatnonzero(graph.split != 0)
    if len(others) == 0:
        raise Error("training nodes", "has training nodes only, which say nothing about others", "graph",
                    "a graph with test nodes, or nodes=")
    return others


def _as_mask(nodes: Any, count: int) -> np.ndarray:
    array = np.asarray(nodes)
    if array.dtype == bool:
        return array
    mask = np.zeros(count, bool)
    mask[array] = True
    return mask


def _node_numbers(nodes: Any, count: int) -> Optional[np.ndarray]:
    if nodes is None:
        return None
    array = part_of_split(nodes, "nodes", count)
    return np.flatnonzero(array) if array is not None and array.dtype == bool else array


def _require_own_labels(graph: Graph, nodes: Any, y: Any) -> None:
    """Cross-validation hands out y with the node numbers; it must be what the graph has."""
    if y is None or graph.labels is None or graph.multi_label:
        return
    if graph._core.regression:
        own, given = np.asarray(graph.labels)[_node_numbers(nodes, graph.num_nodes)], np.asarray(y)
        if given.shape == own.shape and np.allclose(given, own, equal_nan=True):
            return
        raise Error("other labels", "is not what the graph has for these nodes", "y=", "a Graph with these labels")
    own = np.asarray(graph.labels)[_node_numbers(nodes, graph.num_nodes)]
    given = np.asarray(y)
    if given.shape == own.shape and (np.array_equal(given, own) or np.array_equal(given, graph.classes[own])):
        return
    raise Error("other labels", "is not what the graph has for these nodes", "y=", "a Graph with these labels")
