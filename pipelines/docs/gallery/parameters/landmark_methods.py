"""
How landmarks are chosen
========================

Points of uneven density, and 60 landmarks of them by several methods. Random ones follow the density; `minmax` covers
the space and takes outliers; `dpp` draws points that repel each other.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

rng = np.random.default_rng(2)
points = np.concatenate([rng.normal(size=(1500, 2)), rng.normal((4, 2), 0.3, size=(1500, 2))])
methods = ("random", "kmeans", "minmax", "dpp")

figure, panels = plt.subplots(1, 4, figsize=(12, 3.2))
for axes, method in zip(panels, methods, strict=True):
    chosen = sm.select_landmarks(points, 60, method=method)
    axes.scatter(*points.T, s=1, color="lightgrey")
    axes.scatter(*chosen.points.T, s=10, color="black")
    axes.set(xticks=[], yticks=[], title=method)
figure.tight_layout()

# %%
# What they are worth: the share of a Gaussian kernel that Nystrom's formula loses with them, and how far points are
# from their nearest landmark.

for quality in sm.compare_landmarks(points, 60, methods):
    print(
        f"{quality.method:7} kernel lost {quality.nystrom_error.value:.4f}, "
        f"mean distance {quality.distance.value:.3f}, largest {quality.largest_distance:.3f}"
    )
