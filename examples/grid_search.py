"""A search over parameters: the folds are node numbers, and the graph stays whole."""
import numpy as np

import clustergcn as cg

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.model_selection import GridSearchCV
except ImportError:
    raise SystemExit("this example needs scikit-learn")

graph = cg.Graph.generate(nodes=1000, seed=1)
y = np.asarray(graph.labels)


class OnNodes(ClassifierMixin, BaseEstimator):
    """Takes node numbers for X, as cross-validation hands them out."""

    def __init__(self, hidden=16, layers=2):
        self.hidden, self.layers = hidden, layers

    def fit(self, nodes, y):
        known = cg.Graph.from_edge_index(edges, graph.features, graph.labels, train=nodes)
        self.model_ = cg.ClusterGCNClassifier(hidden=self.hidden, layers=self.layers, epochs=5, seed=1, verbose=0).fit(known)
        self.classes_ = np.unique(y)
        return self

    def predict(self, nodes):
        return self.model_.predict(graph, nodes=nodes)


edges = np.stack([np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr.astype(np.int64))), graph.indices])
search = GridSearchCV(OnNodes(), {"hidden": [16, 32], "layers": [2, 3]}, cv=2)
search.fit(np.arange(graph.num_nodes), y)
print(search.best_params_, f"{100 * search.best_score_:.1f} %")
