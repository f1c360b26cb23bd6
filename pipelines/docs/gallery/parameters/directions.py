"""
Search directions
=================

Learning curves of the elastic embedding. The spectral direction solves a linear system in the graph's Laplacian in
every iteration. `sm.minimize` runs the descent of a run on affinities in memory.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, _ = load_digits(n_class=5, return_X_y=True)
graph = sm.knn_graph(points, n_neighbors=45)
W = sm.symmetric_affinities(graph.indices, sm.entropic_affinities(graph.distances, perplexity=15).values)

figure, axes = plt.subplots(figsize=(6, 3.8))
for direction in ("spectral+l-bfgs", "spectral", "l-bfgs", "fixed-point", "gradient-descent"):
    settings = {"layout.max_iterations": 60, "layout.converged": 0.0}
    minimum = sm.minimize(W, "elastic-embedding", direction=direction, settings=settings)
    axes.semilogy(minimum.curve.iteration, minimum.curve.objective, label=direction)
axes.set(xlabel="iteration", ylabel="objective")
axes.legend()
figure.tight_layout()
