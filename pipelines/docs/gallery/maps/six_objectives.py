"""
Six objectives on one graph
===========================

All nonlinear methods pull neighbours together and push all points apart; they differ in how. With one `store` the
points, the graph, the affinities and the spectral start are computed once: each further method costs its descent.
"""

import tempfile

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(n_class=6, return_X_y=True)
methods = (sm.TSNE, sm.SymmetricSNE, sm.SNE, sm.ElasticEmbedding, sm.StudentElasticEmbedding)

figure, panels = plt.subplots(2, 3, figsize=(9, 6.4))
with tempfile.TemporaryDirectory() as store:
    for axes, method in zip(panels.flat, (*methods, sm.EpanechnikovElasticEmbedding), strict=True):
        model = method(perplexity=20, max_iter=200, settings={"layout.converged": 1e-3}, store=store).fit(points)
        axes.scatter(*model.embedding_.T, c=labels, cmap="tab10", s=3)
        axes.set(xticks=[], yticks=[], title=method.__name__)
figure.tight_layout()
