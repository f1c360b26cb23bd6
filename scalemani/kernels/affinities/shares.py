"""What the weights of a point's edges amount to, once each is taken as a share of their sum."""

import numpy as np
import scipy.special


def row_entropies(weights: np.ndarray) -> np.ndarray:
    """Return the entropy (n,) float64, in nats, of rows of weights (n, k), none negative, each divided by its sum.

    Its exponential is the effective number of neighbours: k where all weights are equal, 1 where one holds them all.
    """
    shares = weights.astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    return scipy.special.entr(shares).sum(axis=1)
