"""
Points that stand for many
==========================

Rounded measurements repeat. With `sample_weight` each distinct point says how many equal ones it stands for: the
embedding is that of the repeated points, at the cost of the distinct ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

rng = np.random.default_rng(0)
angles = np.round(rng.vonmises(0, 1.0, size=3000), 2)
repeated = np.column_stack([np.cos(angles), np.sin(angles)])
distinct, counts = np.unique(repeated, axis=0, return_counts=True)

model = sm.LaplacianEigenmaps(perplexity=30, n_neighbors=90, residual=1e-6)
weighted = model.fit(distinct, sample_weight=counts.astype(float)).embedding_
print(f"{len(repeated)} points, {len(distinct)} of them distinct, one of them {counts.max()} times")
figure, axes = plt.subplots(figsize=(5, 4))
axes.scatter(*weighted.T, s=counts, alpha=0.4)
axes.set(title="each point as large as its weight")
figure.tight_layout()

# %%
# The same eigenvectors by hand, from the affinities of the repeated points summed over their copies.

graph = sm.knn_graph(distinct, 90)
affinities = sm.entropic_affinities(graph.distances, 30, indices=graph.indices, sample_weight=counts)
W = sm.symmetric_affinities(graph.indices, affinities.values, sample_weight=counts, twins=affinities.twins)
degrees = np.asarray(W.sum(axis=1)).ravel()
normalized = W.toarray() / np.sqrt(np.outer(degrees, degrees))
vectors = np.linalg.eigh(normalized)[1][:, [-2, -3]] / np.sqrt(degrees)[:, np.newaxis]
print(f"angle between the two: {sm.measures.subspace_angle(weighted, vectors):.1e} radians")
