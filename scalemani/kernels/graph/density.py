"""W normalised by density: what is left of an edge when the crowds at its two ends are divided out.

Source: Coifman and Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 2006, section 3.4.
"""

import numpy as np

from scalemani.kernels.machine.compile import compiled


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
