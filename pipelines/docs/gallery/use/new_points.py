"""
New points in a finished map
============================

Half of the digits make the map, the other half is placed into it. The map stays as it is; each new point descends the
objective among the fixed ones.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(return_X_y=True)
model = sm.TSNE(perplexity=15).fit(points[::2])
placed = model.transform(points[1::2])

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), sharex=True, sharey=True)
for axes, name, positions, shown in zip(
    panels, ("the map", "new points"), (model.embedding_, placed), (labels[::2], labels[1::2]), strict=True
):
    axes.scatter(*positions.T, c=shown, cmap="tab10", s=6)
    axes.set(xticks=[], yticks=[], title=name)
figure.tight_layout()

# %%
# A classifier that was trained on the map sees the new points where it expects them.

from sklearn.neighbors import KNeighborsClassifier

classifier = KNeighborsClassifier(5).fit(model.embedding_, labels[::2])
print(f"accuracy on new points {classifier.score(placed, labels[1::2]):.3f}")
