"""Clustered maps, and errors of sums over them, for tests of methods that sum repulsion."""

import numpy as np


def clusters(seed, n, d, extent):
    """Return n points (n, d) of twenty clusters, whose largest coordinate is half of an extent."""
    random = np.random.default_rng(seed)
    centers, spreads = random.normal(size=(20, d)), random.gamma(2.0, 0.05, 20)
    member = random.integers(20, size=n)
    points = centers[member] + spreads[member, None] * random.normal(size=(n, d))
    return points / np.abs(points).max() * extent / 2


def relative(found, exact):
    """Return the relative error of an array."""
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)
