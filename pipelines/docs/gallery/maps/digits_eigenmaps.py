"""
Digits by Laplacian eigenmaps
=============================

The eigenvectors of the graph Laplacian, to a residual that is computed over all points. Ten of them are more than a
picture shows: a classifier on these columns sees what the plane has no room for.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

digits = load_digits()
model = sm.LaplacianEigenmaps(n_components=10, perplexity=10).fit(digits.data)
bounds = model.certificates_["embedding"]
print(f"residual {bounds['residual']:.1e}, angle to the exact eigenvectors at most {bounds['angle_bound']} radians")

# %%
# The first columns part one digit each from the rest.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.4))
for axes, first in zip(panels, (0, 2, 4), strict=True):
    axes.scatter(*model.embedding_[:, first : first + 2].T, c=digits.target, cmap="tab10", s=4)
    axes.set(xticks=[], yticks=[], xlabel=f"column {first}", ylabel=f"column {first + 1}")
figure.tight_layout()

# %%
# The nearest neighbour of a point says its digit the better, the more columns are used.

for n_columns in (2, 5, 10):
    accuracy = sm.measures.knn_accuracy(model.embedding_[:, :n_columns], digits.target)
    print(f"{n_columns} columns: {accuracy.value:.3f} ± {accuracy.error:.3f}")
