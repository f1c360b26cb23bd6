"""Checks of sparse matrices that users pass."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.errors import DataError, DisconnectedGraphError
from scalemani.kernels.graph.symmetric import row_sums

SYMMETRY_TOLERANCE = 1e-9


def checked_sparse(matrix: Any, name: str) -> sp.csr_matrix:
    """Return a matrix in CSR form and floating point.

    Parameters
    ----------
    matrix : (m, n) sparse or dense, real
    name : of the matrix in messages

    Raises
    ------
    DataError
        For what is not real, finite, and of at least one row and column.
    """
    try:
        checked = sp.csr_matrix(matrix)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be a sparse or dense matrix of real numbers ({error})") from error
    if checked.dtype.kind not in "fiub":
        raise DataError(f"{name} must be real, got dtype {checked.dtype}")
    if min(checked.shape) == 0:
        raise DataError(f"{name} must have rows and columns, got shape {checked.shape}")
    if not np.isfinite(checked.data).all():
        raise DataError(
            f"{name} must be finite, got {np.count_nonzero(~np.isfinite(checked.data))} values that are not"
        )
    return checked if checked.dtype.kind == "f" else checked.astype(np.float64)


def check_affinities(affinities: sp.csr_matrix) -> None:
    """Refuse affinities (N, N) float that a graph cannot have.

    Raises
    ------
    DataError
        For negative or asymmetric affinities.
    DisconnectedGraphError
        For points without any.
    """
    if affinities.nnz and affinities.data.min() < 0:
        raise DataError(f"W must not be negative, its least entry is {affinities.data.min():.3g}")
    skew = abs(affinities - affinities.T)
    if skew.nnz and skew.max() > SYMMETRY_TOLERANCE * affinities.max():
        raise DataError(
            f"W must be symmetric, W - W^T reaches {skew.max():.3g}: pass symmetric_affinities(indices, values) "
            "or (W + W.T) / 2"
        )
    isolated = np.flatnonzero(~(row_sums(affinities.data, affinities.indptr) > 0))
    if len(isolated):
        raise DisconnectedGraphError(
            f"{len(isolated)} points have no affinity to any other, the first is row {isolated[0]}: "
            "use more neighbours, or leave these points out"
        )
