"""Cluster-GCN compared with full-batch training and the other methods, on one graph."""
import clustergcn as cg

graph = cg.Graph.generate(nodes=2000, seed=1)
for method in ("cluster", "full-batch", "sgd", "graphsage", "fastgcn", "vrgcn"):
    model = cg.ClusterGCNClassifier(method=method, layers=2, hidden=32, epochs=5, seed=1, verbose=0).fit(graph)
    print(f"{method:<12} test F1 {100 * model.scores_['test']['micro_f1']:.1f} %, "
          f"{1000 * model.history_['seconds'].mean():.0f} ms per epoch")
