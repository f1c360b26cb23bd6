"""
Metrics
=======

Counts of 200 words in documents of very different lengths, from three topics. Euclidean distances see the lengths;
the cosine and the Hellinger distance see the shares.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

rng = np.random.default_rng(3)
topics = rng.dirichlet(np.full(200, 0.1), size=3)
labels = rng.integers(3, size=900)
lengths = rng.integers(20, 2000, size=900)
counts = np.array([rng.multinomial(n, topics[label]) for n, label in zip(lengths, labels, strict=True)], np.float32)

figure, panels = plt.subplots(1, 3, figsize=(10, 3.3))
for axes, metric in zip(panels, ("euclidean", "cosine", "hellinger"), strict=True):
    embedding = sm.LaplacianEigenmaps(metric=metric, perplexity=10, affinity="self-tuning").fit_transform(counts)
    axes.scatter(*embedding.T, c=labels, cmap="tab10", s=5)
    axes.set(xticks=[], yticks=[], title=metric)
figure.tight_layout()
