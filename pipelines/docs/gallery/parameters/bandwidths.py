"""
Bandwidths of affinities
========================

Entropic affinities give every point a separate bandwidth, such that its neighbours count as `perplexity` equal ones.
It is small where points are dense. One bandwidth for all (`affinity="gaussian"`) leaves some points without neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

rng = np.random.default_rng(1)
points = np.concatenate([rng.normal(size=(600, 2)), rng.normal((6, 0), 0.15, size=(600, 2))])
graph = sm.knn_graph(points, n_neighbors=60)
entropic = sm.entropic_affinities(graph.distances, perplexity=20)
sigma = 1 / np.sqrt(2 * entropic.beta)

figure, axes = plt.subplots(figsize=(7, 3.4))
shown = axes.scatter(*points.T, c=np.log10(sigma), s=5)
axes.set(title="bandwidth of each point", aspect="equal")
figure.colorbar(shown, label="log10 sigma")
figure.tight_layout()

# %%
# The effective number of neighbours, exp(entropy): entropic affinities have the requested one, others what results.

figure, axes = plt.subplots(figsize=(7, 3.4))
for name, values in (
    ("entropic, perplexity 20", entropic.values),
    ("self-tuning", sm.self_tuning_affinities(graph.distances)),
    ("gaussian, sigma 0.15", sm.gaussian_affinities(graph.distances, sigma=0.15)),
):
    shares = values / values.sum(axis=1, keepdims=True)
    neighbors = np.exp(-np.sum(shares * np.log(np.maximum(shares, 1e-300)), axis=1))
    axes.hist(neighbors, bins=np.arange(0, 62, 2), histtype="step", label=name)
axes.set(xlabel="effective number of neighbours", ylabel="points", yscale="log")
axes.legend()
figure.tight_layout()
print(f"entropic: every entropy within {np.abs(entropic.residuals).max():.1e} nats of log(20)")
