"""
Clusters that are not round
===========================

k-means parts two moons by a straight line; spectral clustering follows the graph. New points get the cluster of the
nearest centre among the landmarks' coordinates.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons

import scalemani as sm

points, moons = make_moons(2000, noise=0.06, random_state=0)
spectral = sm.SpectralClustering(2, perplexity=10, n_landmarks=200).fit(points)
means = KMeans(2, n_init=5, random_state=0).fit(points)

figure, panels = plt.subplots(1, 2, figsize=(9, 3.4))
for axes, name, labels in zip(panels, ("k-means", "spectral"), (means.labels_, spectral.labels_), strict=True):
    wrong = sm.measures.clustering_error(labels, moons)
    axes.scatter(*points.T, c=labels, cmap="coolwarm", s=4)
    axes.set(xticks=[], yticks=[], title=f"{name}: {wrong:.1%} in the wrong cluster")
figure.tight_layout()

# %%
new_points, new_moons = make_moons(500, noise=0.06, random_state=1)
print(f"of 500 new points, {sm.measures.clustering_error(spectral.predict(new_points), new_moons):.1%} are wrong")
