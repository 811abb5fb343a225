"""Two tables of your own, as pandas reads them, to predictions in a file."""
import numpy as np
import pandas  # type: ignore[import]

import clustergcn as cg

# Stand-ins for pandas.read_csv("customers.csv") and pandas.read_csv("payments.csv").
random = np.random.default_rng(1)
group = np.arange(400) % 2
customers = pandas.DataFrame({"customer": [f"c{i}" for i in range(400)], "income": random.normal(size=400) + group,
                              "region": random.choice(["north", "south"], 400),
                              "kind": np.array(["private", "business"])[group]})
customers.loc[random.random(400) < 0.3, "kind"] = None  # not known: to be predicted
payments = pandas.DataFrame({"payer": random.integers(0, 400, 3000), "payee": 0})
payments["payee"] = (payments["payer"] + 2 * random.integers(1, 200, 3000)) % 400  # mostly within the group
payments = payments.apply(lambda column: "c" + column.astype(str))

graph = cg.Graph.from_pandas(payments, customers, id="customer", label="kind", split="60/20/20", categorical="one-hot",
                             verbose=0)
model = cg.ClusterGCNClassifier(layers=2, hidden=32, epochs=20, transductive=True, seed=1, verbose=0).fit(graph)
table = pandas.DataFrame({"customer": graph.index, "kind": model.predict(graph)})
table.to_csv("predictions.csv", index=False)
print(table.head(), f"test F1 {100 * model.scores_['test']['micro_f1']:.1f} %", sep="\n")
