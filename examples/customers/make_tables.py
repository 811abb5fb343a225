"""Writes edges.csv and customers.csv: 400 customers of a shop in four groups, who recommend it to each other. Some have no known segment."""
import csv
import random

random.seed(4)
segments = ["student", "family", "business", "retired"]
age = {"student": 23, "family": 38, "business": 44, "retired": 69}
spend = {"student": 40, "family": 160, "business": 310, "retired": 90}
customers = []
for i in range(400):
    segment = random.choice(segments)
    customers.append({"id": f"c{i:03}", "age": max(18, round(random.gauss(age[segment], 11))),
                      "spend": round(max(5, random.gauss(spend[segment], 110)), 2), "channel": random.choice(["web", "shop", "phone"]),
                      "segment": segment})
edges = set()
while len(edges) < 1400:
    a, b = random.sample(customers, 2)
    if a["segment"] == b["segment"] or random.random() < 0.12:
        edges.add((a["id"], b["id"]))
for customer in random.sample(customers, 60):
    customer["segment"] = ""
with open("edges.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["source", "target"])
    writer.writerows(sorted(edges))
with open("customers.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, customers[0].keys())
    writer.writeheader()
    writer.writerows(customers)
print(f"{len(customers)} customers, {len(edges)} edges")
