"""Deep graph convolutional networks on large graphs, by the Cluster-GCN algorithm.

>>> import clustergcn as cg
>>> graph = cg.Graph.generate(nodes=600, seed=1)
>>> model = cg.ClusterGCNClassifier(layers=2, hidden=32, epochs=5, seed=1, verbose=0).fit(graph)
>>> model.predict_proba(graph).shape
(600, 10)
"""
try:
    from . import _core
except ImportError as problem:
    raise ImportError(f"clustergcn cannot be loaded: {problem}; on Debian and Ubuntu, tools/install-packages.sh build installs the "
                      "libraries that it was built with") from problem
from ._classifier import ClusterGCNClassifier, ClusterGCNRegressor, NotFittedError
from ._errors import Error
from ._graph import Graph
from ._core import version as __version__

__all__ = ["ClusterGCNClassifier", "ClusterGCNRegressor", "Error", "Graph", "NotFittedError", "__version__"]
