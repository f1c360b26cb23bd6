"""
Strength of the repulsion
=========================

The elastic embedding weighs repulsion by `strength`. Near zero it is Laplacian eigenmaps; the larger it is, the more
evenly points spread over the plane.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(n_class=5, return_X_y=True)
figure, panels = plt.subplots(1, 4, figsize=(12, 3.3))
for axes, strength in zip(panels, (1e-6, 1e-5, 1e-4, 1e-2), strict=True):
    model = sm.ElasticEmbedding(strength=strength, perplexity=15, max_iter=200).fit(points)
    axes.scatter(*model.embedding_.T, c=labels, cmap="tab10", s=3)
    axes.set(xticks=[], yticks=[], title=f"strength {strength:g}")
figure.tight_layout()
