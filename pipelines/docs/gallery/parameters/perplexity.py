"""
Perplexity
==========

The effective number of neighbours of a point. Small values show small groups, of which some are chance; large ones
show what is common to many points and cost more, as the graph has three neighbours a point for each unit of it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(n_class=5, return_X_y=True)
figure, panels = plt.subplots(1, 4, figsize=(12, 3.3))
for axes, perplexity in zip(panels, (3, 10, 30, 100), strict=True):
    model = sm.TSNE(perplexity=perplexity, max_iter=500).fit(points)
    axes.scatter(*model.embedding_.T, c=labels, cmap="tab10", s=3)
    axes.set(xticks=[], yticks=[], title=f"perplexity {perplexity}")
figure.tight_layout()
