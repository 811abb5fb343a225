"""A search over parameters: the folds are node numbers, and the graph stays whole."""
import numpy as np

import clustergcn as cg

try:
    from sklearn.model_selection import GridSearchCV  # type: ignore[import]
except ImportError:
    raise SystemExit("this example needs scikit-learn")

graph = cg.Graph.generate(nodes=1000, seed=1)
model = cg.ClusterGCNClassifier(epochs=5, seed=1, transductive=True, verbose=0)
search = GridSearchCV(model, {"hidden": [16, 32], "layers": [2, 3]}, cv=2)
search.fit(np.arange(graph.num_nodes), np.asarray(graph.labels), graph=graph)
print(search.best_params_, f"{100 * search.best_score_:.1f} %")
