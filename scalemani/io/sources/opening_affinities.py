"""From what a user passes in the place of points to affinities, and which of the doors that is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource
from scalemani.io.sources.given_affinities import GivenAffinities
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.opening_lists import open_lists
from scalemani.io.sources.pairwise import take_pairwise
from scalemani.kernels.rows.metrics import PRECOMPUTED

ALLOWED = (
    "a matrix of affinities (N, N), sparse with those above zero or dense with all, whatever has `tocsr()`, an AnnData "
    "with obsp['connectivities'], or the path of one of these (.npz, .npy, .zarr, .h5ad, .h5ad::obsp/connectivities)"
)
CONNECTIVITIES = "connectivities"  # of scanpy's graph among the matrices of an AnnData


def open_affinities(given: Any) -> GivenAffinities:
    """Return affinities of any kind that is read.

    Parameters
    ----------
    given : a matrix of affinities (N, N) of SciPy, or whatever becomes one or an array, as the affinities of a run do,
        an AnnData, or a path

    Raises
    ------
    DataError
        For anything else, and for affinities that cannot be used.
    """
    if isinstance(given, GivenAffinities):
        return given
    matrix = take_pairwise(given, CONNECTIVITIES)
    if hasattr(matrix, "tocsr"):
        matrix = matrix.tocsr()
    elif not (isinstance(matrix, str | Path | PointsSource) or hasattr(matrix, "__array__")):
        raise DataError(f"affinity='precomputed' takes {ALLOWED}; got {type(given).__name__}")
    return GivenAffinities(open_points(matrix))


def opener_instead(metric: str | None, affinity: str | None) -> Callable[[Any], PointsSource] | None:
    """Return what opens the affinities or neighbours that are given in the place of points; None where points are."""
    if affinity == PRECOMPUTED:
        return open_affinities
    return open_lists if metric == PRECOMPUTED else None
