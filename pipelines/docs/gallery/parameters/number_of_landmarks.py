"""
How many landmarks
==================

What the landmarks' solution loses against the refined one, by their number: the error falls quickly at first. One run
computes the graph; each further number reuses it from the `store`.
"""

import tempfile
import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_swiss_roll

import scalemani as sm

warnings.filterwarnings("ignore", "embedding: eigenvalues")  # the error is measured here

points, _ = make_swiss_roll(4000, random_state=0)
numbers = (50, 100, 200, 400, 800)
with tempfile.TemporaryDirectory() as store:
    refined = sm.LaplacianEigenmaps(perplexity=8, store=store).fit(points)
    errors = []
    for n_landmarks in numbers:
        model = sm.LaplacianEigenmaps(perplexity=8, solver="lll", n_landmarks=n_landmarks, store=store).fit(points)
        errors.append(sm.measures.procrustes_error(model.embedding_, refined.embedding_))

figure, axes = plt.subplots(figsize=(5, 3.4))
axes.loglog(numbers, errors, marker="o")
axes.set(xlabel="landmarks", ylabel="relative error of the embedding", xticks=numbers, xticklabels=numbers)
axes.minorticks_off()
figure.tight_layout()
