"""
The recall of a graph, certified and true
=========================================

A graph beyond some thousand points comes from a search that may miss neighbours. The run measures on a sample of exact
queries what it has missed, and refines until the target recall is reached. Here the sample's figure is compared with
the truth over all points.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

points = np.random.default_rng(0).normal(size=(6000, 12)).astype(np.float32)
figure, axes = plt.subplots(figsize=(5, 3))
for target in (0.8, 0.95):
    graph = sm.knn_graph(
        points, 15, method="partition", recall=target, settings={"neighbors.n_probes": 1, "partition.cell_points": 200}
    )
    true = sm.measures.recall(graph.indices, points, n_sampled=None)
    print(f"target {target}: certified {graph.recall:.4f}, true {true.value:.4f}")
    axes.plot([target] * 2, [graph.recall, true.value], "o-")
    axes.annotate("certified", (target, graph.recall), (6, 0), textcoords="offset points", va="center")
axes.plot([0.8, 0.95], [0.8, 0.95], color="grey", linestyle=":")
axes.set(xlim=(0.78, 1.0), xlabel="recall asked for", ylabel="recall, certified and true")
figure.tight_layout()
