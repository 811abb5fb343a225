from typing import Any, Callable, Optional, Sequence

import numpy as np
import numpy.typing as npt

version: str
Settings = Sequence[tuple[str, str]]
Log = Optional[Callable[[str], Any]]

def set_error_class(made: type) -> None: ...
def options() -> list[dict[str, Any]]: ...
def report(runs: Sequence[str]) -> str: ...
# how: threads, run, resume, on_epoch and log.
def train(graph: Graph, recipe: str, settings: Settings,
          how: dict[str, Any]) -> tuple[Model, list[dict[str, Any]], dict[str, Any], dict[str, Any]]: ...

class Graph:
    @staticmethod
    def open(store: str) -> Graph: ...
    @staticmethod
    def from_arrays(arrays: dict[str, Any], threads: int, log: Log) -> Graph: ...
    @staticmethod
    def import_files(source: str, store: str, settings: Settings, log: Log) -> Graph: ...
    @staticmethod
    def download(dataset: str, store: str, settings: Settings, log: Log) -> Graph: ...
    @staticmethod
    def generate(store: str, settings: Settings) -> Graph: ...
    def save(self, store: str, replace: bool = ...) -> None: ...
    name: str
    store: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    directed: bool
    multi_label: bool
    regression: bool
    split_sizes: tuple[int, int, int]
    class_names: list[str]
    feature_names: list[str]
    node_ids: list[str]
    hash: str
    indptr: npt.NDArray[np.uint64]
    indices: npt.NDArray[np.uint32]
    weights: Optional[npt.NDArray[np.float32]]
    dense_features: Optional[npt.NDArray[Any]]
    sparse_features: tuple[Any, Any, Any]
    labels: Optional[npt.NDArray[Any]]
    split: Optional[npt.NDArray[np.uint8]]

class Model:
    @staticmethod
    def load(path: str) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def save(self, file: str) -> None: ...
    def in_precision(self, name: str) -> Model: ...
    def probabilities(self, graph: Graph, nodes: Any, calibrated: bool, smooth: str, threads: int, log: Log) -> npt.NDArray[np.float32]: ...
    def classes(self, graph: Graph, nodes: Any, smooth: str, threads: int, log: Log) -> npt.NDArray[np.float32]: ...
    def values(self, graph: Graph, nodes: Any, threads: int, log: Log) -> npt.NDArray[np.float32]: ...
    def embeddings(self, graph: Graph, layer: int, nodes: Any, threads: int, log: Log) -> npt.NDArray[np.float32]: ...
    def evaluate(self, graph: Graph, smooth: str, threads: int, log: Log) -> dict[str, Any]: ...
    def option(self, name: str) -> str: ...
    num_layers: int
    num_features: int
    num_classes: int
    multi_label: bool
    regression: bool
    thresholds: npt.NDArray[np.float32]
    temperature: Optional[float]
    class_names: list[str]
    feature_names: list[str]
