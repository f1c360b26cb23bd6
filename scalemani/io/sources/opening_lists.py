"""From what a user passes in the place of points to neighbour lists, or to distances that have them."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.base import PointsSource
from scalemani.io.sources.distance_matrix import DistanceMatrix
from scalemani.io.sources.neighbor_lists import NeighborLists, lists_of_matrix
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.pairwise import take_pairwise
from scalemani.io.sources.sparse_rows import SparseRows

ALLOWED = (
    "a matrix of distances (N, N), sparse with the k nearest of each point or dense with all, a KnnGraph, an AnnData "
    "with obsp['distances'], arrays (indices, distances) of shape (N, k) in any order, or the path of such a matrix "
    "(.npz, .npy, .zarr, .h5ad::obsp/distances) or of a zarr group or .npz with indices and distances"
)
NAMES = ("indices", "distances")
KEPT = "distances"  # of scanpy's graph among the matrices of an AnnData


def open_lists(given: Any) -> NeighborLists | DistanceMatrix:
    """Return neighbour lists, or distances between all points, of any kind that is read.

    Parameters
    ----------
    given : a matrix of distances (N, N) of SciPy, or whatever becomes an array, an object with `indices` and
        `distances`, an AnnData, arrays of these two, in the order of scikit-learn and faiss or that of pynndescent and
        umap, or a path

    Raises
    ------
    DataError
        For anything else, and for lists that cannot be used.
    """
    if isinstance(given, NeighborLists | DistanceMatrix):
        return given
    given = take_pairwise(given, KEPT)
    if isinstance(given, str | Path):
        return open_stored_lists(str(given))
    if sparse.issparse(given) or hasattr(given, "__array__"):
        return lists_of(open_points(given))
    parts = given if isinstance(given, tuple | list) else [getattr(given, name, None) for name in NAMES]
    if len(parts) not in (2, 3) or any(part is None for part in parts[:2]):  # umap's third is its index for searches
        raise DataError(f"metric='precomputed' takes {ALLOWED}; got {type(given).__name__}")
    one, other = (np.asarray(part) for part in parts[:2])
    return lists_of_pair(one, other, f"{type(given).__name__} in memory")


def lists_of(matrix: PointsSource) -> NeighborLists | DistanceMatrix:
    """Return what a matrix of distances stands for: a sparse one for lists, a dense one for all distances."""
    if isinstance(matrix, SparseRows):
        return lists_of_matrix(matrix)
    return DistanceMatrix(matrix)


def lists_of_pair(one: np.ndarray, other: np.ndarray, description: str) -> NeighborLists:
    """Return the lists of two tables (N, k), of which that of integers holds the indices."""
    swapped = one.dtype.kind == "f" and other.dtype.kind in "iu"
    return NeighborLists(*((other, one) if swapped else (one, other)), description)


def open_stored_lists(location: str) -> NeighborLists | DistanceMatrix:
    """Return the lists at a path: those of a matrix, or arrays `indices` and `distances` of a zarr group or an .npz."""
    try:
        return lists_of(open_points(location))
    except (StoreError, ConfigError) as error:
        if "::" in location or not ("is a zarr group" in str(error) or location.endswith(".npz")):
            raise
    indices, distances = (open_points(f"{location}::{name}") for name in NAMES)
    table = indices.read(0, indices.shape[0])
    return NeighborLists(table.astype(np.int64), distances.read(0, distances.shape[0]), location)
