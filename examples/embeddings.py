"""Embeddings of nodes as features of another classifier."""
import numpy as np

import clustergcn as cg

graph = cg.Graph.generate(nodes=1000, seed=1)
model = cg.ClusterGCNClassifier(layers=3, hidden=32, epochs=10, seed=1, verbose=0).fit(graph)
H, y = model.embed(graph), np.asarray(graph.labels)
train, test = graph.nodes_of("train"), graph.nodes_of("test")
try:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import]
except ImportError:
    raise SystemExit("this example needs scikit-learn")
other = LogisticRegression(max_iter=500).fit(H[train], y[train])
print(f"logistic regression on embeddings {100 * other.score(H[test], y[test]):.1f} %, "
      f"the network itself {100 * model.score(graph, test):.1f} %")
