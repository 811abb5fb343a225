"""Arrays as the engine takes them, made of what people have: NumPy, tensors, pandas, SciPy."""
from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

from . import _core
from ._errors import Error


def contiguous(values: Any, name: str) -> np.ndarray:
    """A NumPy array in C order; what is one already is not copied."""
    if values is None:
        return None
    if hasattr(values, "detach"):  # a torch tensor
        values = values.detach().cpu()
        values = np.from_dlpack(values) if str(values.dtype) != "torch.bool" else values.numpy()
    elif hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = np.from_dlpack(values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise Error(f"{name} holds {array.dtype}", f"holds {array.dtype}, and numbers are wanted", name)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if array.dtype in (np.uint16, np.int16):
        array = array.astype(np.int32)
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsr") and not isinstance(matrix, np.ndarray)


def feature_arrays(X: Any) -> tuple[dict, list]:
    """The arrays of a feature matrix, and the names of its columns."""
    if X is None:
        return {}, []
    names: list = []
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):  # a pandas frame
        names = [str(name) for name in X.columns]
        wrong = [str(name) for name, kind in X.dtypes.items() if kind.kind not in "biuf"]
        if wrong:
            raise Error(f"{wrong[0]} is no number", f"column {wrong[0]!r} does not hold numbers", "X",
                        "from_pandas encodes texts and fills missing values: Graph.from_pandas")
        X = X.to_numpy(dtype=np.float32)
    if is_sparse(X):
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return {"feature_offsets": contiguous(rows.indptr, "X"), "feature_columns": contiguous(rows.indices, "X"),
                "feature_values": contiguous(rows.data, "X"), "feature_width": int(rows.shape[1])}, names
    array = contiguous(X, "X")
    if array.ndim != 2:
        raise Error("X is no matrix", f"has {array.ndim} dimension{'s' * (array.ndim != 1)}, and a matrix is wanted", "X")
    return {"features": array}, names


def label_numbers(y: Any) -> tuple[Optional[np.ndarray], list]:
    """Class numbers, negative for none, and the classes as the caller has them; or a matrix of 0 and 1."""
    if y is None:
        return None, []
    if hasattr(y, "detach"):
        y = y.detach().cpu().numpy()
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        return contiguous(array.astype(np.uint8) if array.dtype == bool else array, "y"), []
    if array.dtype.kind in "OUS":
        known = np.array([value is not None and value == value and str(value) != "" for value in array.tolist()])
        classes, numbers = np.unique(np.array([str(v) for v in array[known].tolist()]), return_inverse=True)
        out = np.full(len(array), -1, dtype=np.int32)
        out[known] = numbers
        return out, [str(name) for name in classes]
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        if np.isinf(array).any():
            raise Error("y is infinite", f"entry {int(np.flatnonzero(np.isinf(array))[0])} is infinite", "y")
        if not np.all(array[~missing] == np.floor(array[~missing])):
            raise Error("y holds fractions", "holds numbers that are no classes, such as "
                        f"{array[~missing][array[~missing] != np.floor(array[~missing])][0]}", "y",
                        "numbers to predict: task='regression'")
        out = np.full(len(array), -1, dtype=np.int64)
        out[~missing] = array[~missing].astype(np.int64)
        array = out
    if array.dtype.kind not in "biu":
        raise Error(f"y holds {array.dtype}", f"holds {array.dtype}, and classes are wanted", "y")
    # Numbers with gaps are names: a model has an output for each class that occurs.
    array = array.astype(np.int64)
    occurring = np.unique(array[array >= 0])
    if len(occurring) and not np.array_equal(occurring, np.arange(len(occurring))):
        out = np.where(array >= 0, np.searchsorted(occurring, array), -1).astype(np.int32)
        return out, occurring.tolist()
    return np.where(array >= 0, array, -1).astype(np.int32), []


def number_labels(y: Any) -> Optional[np.ndarray]:
    """Numbers to predict, NaN for none."""
    if y is None:
        return None
    array = contiguous(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise Error("y is no vector", f"has {array.ndim} dimensions, and one number per node is wanted", "y")
    if np.isinf(array).any():
        raise Error("y is infinite", f"entry {int(np.flatnonzero(np.isinf(array))[0])} is infinite", "y")
    return np.ascontiguousarray(array, dtype=np.float32)


def part_of_split(nodes: Any, name: str, num_nodes: int) -> Optional[np.ndarray]:
    """A mask, or a list of node numbers."""
    if nodes is None:
        return None
    if hasattr(nodes, "detach"):
        nodes = nodes.detach().cpu().numpy()
    array = np.asarray(nodes)
    if array.dtype == object and all(isinstance(value, (bool, np.bool_)) for value in array.tolist()):
        array = array.astype(bool)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise Error(f"{name} is no mask", f"is neither a mask of {num_nodes} nodes nor a list of node numbers", name)
    if array.dtype == bool:
        if len(array) != num_nodes:
            raise Error(f"{name} has the wrong length", f"marks {len(array)} nodes, and the graph has {num_nodes}", name)
        return np.ascontiguousarray(array)
    if len(array) == num_nodes > 2 and array.max() <= 1:
        raise Error(f"{name} may be a mask", "holds only 0 and 1, one for each node: a mask is an array of bool", name,
                    "mask.astype(bool)")
    outside = array[(array < 0) | (array >= num_nodes)]
    if len(outside):
        raise Error(f"{name} is out of range", f"names node {int(outside[0])}, and the graph has {num_nodes}", name)
    return contiguous(array, name)


def in_frames(problem: Error, folder: str) -> Error:
    """What the import says of its files, said of the frames that they were written from."""
    def say(text: str) -> str:
        for part, frame in (("edges", "edges"), ("features", "nodes"), ("labels", "nodes"), ("split", "nodes")):
            text = text.replace(os.path.join(folder, part + ".csv"), frame)
        return text.replace("drop_columns=", "drop=").replace("split_file=", "split=")
    return Error(say(problem.problem), say(problem.problem), say(problem.where), say(problem.hint))


def as_classes(core: "_core.Graph | _core.Model") -> np.ndarray:
    """Class names; numbers if that is what they are."""
    names = core.class_names
    if not names:
        return np.arange(core.num_classes)
    numbers = all(name.isascii() and name.isdigit() and str(int(name)) == name for name in names)
    return np.array([int(name) for name in names]) if numbers else np.array(names)


def as_settings(options: dict) -> list:
    """Options as the engine takes them: by name, as text. None: left at its default."""
    settings = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, (bool, np.bool_)):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(part) for part in value)
        settings.append((name, str(value)))
    return settings
