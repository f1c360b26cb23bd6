"""
The recall of a graph, certified and true
=========================================

A graph beyond some thousand points comes from a search that may miss neighbours. The run measures on a sample of exact
queries what it has missed, and refines until the target recall is reached. Here the sample's figure is compared with
the truth over all points.
"""

import numpy as np

import scalemani as sm

points = np.random.default_rng(0).normal(size=(6000, 12)).astype(np.float32)
for target in (0.8, 0.95):
    graph = sm.knn_graph(
        points, 15, method="partition", recall=target, settings={"neighbors.n_probes": 1, "partition.cell_points": 200}
    )
    true = sm.measures.recall(graph.indices, points, n_sampled=None)
    print(f"target {target}: certified {graph.recall:.4f}, true {true.value:.4f}")
