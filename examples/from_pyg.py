"""A graph that PyTorch Geometric has, trained without PyTorch."""
import numpy as np

import clustergcn as cg

random = np.random.default_rng(1)
y = np.arange(300) % 2
edge_index = np.stack([np.repeat(np.arange(300), 4), (np.repeat(np.arange(300), 4) + 2 * random.integers(1, 150, 1200)) % 300])
x = (random.normal(size=(300, 8)) + y[:, None]).astype(np.float32)
part = random.permutation(300)
masks = {"train_mask": np.isin(np.arange(300), part[:150]), "val_mask": np.isin(np.arange(300), part[150:200]),
         "test_mask": np.isin(np.arange(300), part[200:])}
try:
    import torch  # type: ignore[import]
    from torch_geometric.data import Data  # type: ignore[import]

    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index), y=torch.from_numpy(y),
                **{name: torch.from_numpy(mask) for name, mask in masks.items()})
except ImportError:  # anything with the same attributes does
    from types import SimpleNamespace

    data = SimpleNamespace(x=x, edge_index=edge_index, y=y, num_nodes=300, **masks)

graph = cg.Graph.from_pyg(data)
model = cg.ClusterGCNClassifier(layers=2, hidden=32, epochs=20, seed=1, verbose=0).fit(graph)
print(graph)
print(f"test F1 {100 * model.scores_['test']['micro_f1']:.1f} %")
