"""
A Swiss roll, unrolled by landmarks
===================================

A sheet rolled up in three dimensions. Laplacian eigenmaps see the graph, in which the sheet is flat: the first
column is the way along the roll. The solver `lll` computes the eigenvectors on a few hundred landmarks, and makes every
point a combination of the landmarks nearest to it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

import scalemani as sm

warnings.filterwarnings("ignore", "embedding: eigenvalues")  # of the landmarks' solution, whose error is measured below

points, along = make_swiss_roll(3000, random_state=0)
refined = sm.LaplacianEigenmaps(n_components=1, perplexity=8).fit(points)
by_landmarks = sm.LaplacianEigenmaps(n_components=1, perplexity=8, solver="lll", n_landmarks=300).fit(points)

figure = plt.figure(figsize=(10, 3.6))
roll = figure.add_subplot(131, projection="3d")
roll.scatter(*points.T, c=along, s=2)
for place, model, name in ((132, refined, "refined"), (133, by_landmarks, "by 300 landmarks")):
    axes = figure.add_subplot(place, xlabel="position along the roll", ylabel="first eigenvector", title=name)
    axes.scatter(along, model.embedding_[:, 0], c=along, s=2)
figure.tight_layout()

# %%
# Both order the points along the roll; the error of the landmarks is known by comparison with the refined solution.

for name, model in (("refined", refined), ("landmarks", by_landmarks)):
    ranks = np.argsort(np.argsort(model.embedding_[:, 0]))
    print(f"{name}: rank correlation {abs(np.corrcoef(ranks, np.argsort(np.argsort(along)))[0, 1]):.4f}")
error = sm.measures.procrustes_error(by_landmarks.embedding_, refined.embedding_)
print(f"relative error of the landmarks' solution: {error:.3f}")
