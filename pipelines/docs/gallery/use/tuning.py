"""
Choosing parameters
===================

Every combination of a grid in one store, where points, graph and landmark weights are computed once, scored by labels.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import scalemani as sm

warnings.filterwarnings("ignore", "embedding: eigenvalues")  # labels are the judge here

points, labels = load_digits(return_X_y=True)
perplexities, neighbors = [3, 6, 12, 24], [36, 72]
tuning = sm.tune(
    sm.LaplacianEigenmaps(n_components=5, n_landmarks=300, solver="lll"),
    {"perplexity": perplexities, "n_neighbors": neighbors},
    points,
    labels,
)
print(tuning.best_params_, round(tuning.best_score_, 3))
print(f"computed once for all: {', '.join(tuning.shared_seconds)}")

# %%
table = np.full((len(perplexities), len(neighbors)), np.nan)
for values, score in zip(tuning.results_["params"], tuning.results_["label-accuracy"], strict=True):
    table[perplexities.index(values["perplexity"]), neighbors.index(values["n_neighbors"])] = score
figure, axes = plt.subplots(figsize=(4, 3.6))
shown = axes.imshow(table)
axes.set(xlabel="neighbours", ylabel="perplexity", xticks=range(2), xticklabels=neighbors)
axes.set(yticks=range(4), yticklabels=perplexities)
figure.colorbar(shown, label="label accuracy")
figure.tight_layout()
