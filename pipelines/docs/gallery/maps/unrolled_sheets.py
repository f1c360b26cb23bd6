"""
Isomap and locally linear embedding by landmarks
================================================

Two ways to lay a rolled-up sheet flat. Isomap keeps lengths along the graph: its map has the sides of the sheet.
Locally linear embedding keeps how each point is made up of its neighbours, at any scale: both columns have unit
length. Both solve a problem of 500 landmarks, and make every point a combination of the landmarks nearest to it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

import scalemani as sm

points, along = make_swiss_roll(2000, random_state=0)
models = {
    "LandmarkIsomap": sm.LandmarkIsomap(2, n_landmarks=500),
    "LandmarkLLE": sm.LandmarkLLE(2, n_landmarks=500),
}
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
for axes, (name, model) in zip(panels, models.items(), strict=True):
    axes.scatter(*model.fit(points).embedding_.T, c=along, s=3)
    axes.set(xticks=[], yticks=[], title=name)
figure.tight_layout()

# %%
# How well the first column orders points along the roll, and what distances along the graph lose in two dimensions.

true_ranks = np.argsort(np.argsort(along))
for name, model in models.items():
    ranks = np.argsort(np.argsort(model.embedding_[:, 0]))
    print(f"{name}: rank correlation {abs(np.corrcoef(ranks, true_ranks)[0, 1]):.4f}")
print(f"residual variance: {models['LandmarkIsomap'].certificates_['isomap']['residual_variance']:.4f}")
