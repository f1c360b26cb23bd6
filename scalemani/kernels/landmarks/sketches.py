"""Short float32 sketches of points, whose distances bound the true ones: an orthogonal projection never lengthens."""

import numpy as np
import scipy.linalg

DIRECT_COLUMNS = 64  # up to here the coordinates themselves serve as sketch
N_BASIS_POINTS = 2048  # the leading directions of a sample this size lose nothing that matters for pruning


def principal_basis(points: np.ndarray, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (D,) and an orthonormal basis (D, s) float64 of the leading principal directions of `points`.

    s = D and the basis is the identity when D <= 64; otherwise s = min(n_dimensions, D, number of points). At most
    2,048 evenly spaced rows are used. Whatever the basis, distances between projections are lower bounds.
    """
    rows = np.linspace(0, len(points) - 1, min(len(points), N_BASIS_POINTS)).astype(np.int64)
    sample = points[rows].astype(np.float64)
    mean = sample.mean(axis=0)
    n_columns = sample.shape[1]
    if n_columns <= DIRECT_COLUMNS:
        return mean, np.eye(n_columns)
    sample -= mean
    largest = np.abs(sample).max()
    sample /= largest if largest > 0 else 1.0
    n_kept = min(n_dimensions, n_columns, len(sample))
    wide = n_columns > len(sample)
    gram = sample @ sample.T if wide else sample.T @ sample
    order = len(gram)
    vectors = scipy.linalg.eigh(gram, subset_by_index=[order - n_kept, order - 1])[1][:, ::-1]
    # Orthonormal to the last bit also where the Gram matrix has no rank left, and in the wide case.
    basis = np.linalg.qr(sample.T @ vectors if wide else vectors)[0]
    return mean, np.ascontiguousarray(basis)


def project(points: np.ndarray, mean: np.ndarray, basis: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Return (points - mean) basis / scale, computed in float64: (n, s) float32.

    Values beyond float32 become infinite; the caller treats such rows apart.
    """
    centred = points - mean
    sketch = (centred if basis.shape[0] <= DIRECT_COLUMNS else centred @ basis) / scale
    with np.errstate(over="ignore"):
        return sketch.astype(np.float32)


def comparable(points: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both tables C-contiguous and of one dtype: their own where it is the same, else float64."""
    dtype = points.dtype if points.dtype == others.dtype else np.dtype(np.float64)
    return np.ascontiguousarray(points, dtype=dtype), np.ascontiguousarray(others, dtype=dtype)
