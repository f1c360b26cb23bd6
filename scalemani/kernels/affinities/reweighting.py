"""Factors on the edges of W: by the classes of their ends, and by the density around them."""

import numpy as np

from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT
from scalemani.kernels.machine.compile import compiled


@compiled
def lowered_between_classes(
    indptr: np.ndarray, values: np.ndarray, classes: np.ndarray, others: np.ndarray, target_weight: float
) -> np.ndarray:
    """Return the nonzeros (E,) of rows of W, times 1 - target_weight where both points have a class and these differ.

    Entries (n, m) and (m, n) stay equal to the last bit. One that would underflow has the least normal float32, so that
    the graph stays connected.

    Parameters
    ----------
    indptr, values : (n + 1,) int and (E,) float, above zero
    classes, others : (n,) int and (E,) int, the classes of rows and of the columns of the nonzeros, negative for none
    target_weight : in [0, 1)
    """
    lowered = values.copy()
    for row in range(classes.shape[0]):
        if classes[row] < 0:
            continue
        for entry in range(indptr[row], indptr[row + 1]):
            if others[entry] >= 0 and others[entry] != classes[row]:
                value = np.float64(values[entry])
                lowered[entry] = max(value * (1.0 - target_weight), min(value, LEAST_WEIGHT))
    return lowered


def density_scales(degrees: np.ndarray, alpha: float) -> np.ndarray:
    """Return q^-alpha (N,) float64 of the degrees q (N,) of W, all above zero; exactly one for alpha 0."""
    return np.asarray(degrees, np.float64) ** -alpha


@compiled
def density_normalized(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, first_row: int, scales: np.ndarray
) -> np.ndarray:
    """Return the nonzeros (E,) of rows of diag(s) W diag(s) from those of W in CSR form, in their dtype.

    `scales` (N,) float64 are s. Entries (n, m) and (m, n) are equal to the last bit.
    """
    scaled = np.empty_like(values)
    for row in range(indptr.shape[0] - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            scaled[entry] = np.float64(values[entry]) * (scales[first_row + row] * scales[indices[entry]])
    return scaled
