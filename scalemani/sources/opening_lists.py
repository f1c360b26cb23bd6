"""From what a user passes as neighbours to the lists that a run starts from."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from scalemani.errors import DataError, StoreError
from scalemani.sources.neighbor_lists import ALLOWED, NeighborLists, lists_of_matrix
from scalemani.sources.opening import open_points

GRAPH_NAMES = ("indices", "distances")


def open_lists(given: Any) -> NeighborLists:
    """Return neighbour lists of any kind that is read.

    Parameters
    ----------
    given : a SciPy matrix of distances (N, N), an object with `indices` and `distances`, a pair of these, or a path

    Raises
    ------
    DataError
        For anything else, and for lists that cannot be used.
    """
    if isinstance(given, NeighborLists):
        return given
    if isinstance(given, str | Path):
        return open_stored_lists(str(given))
    if sparse.issparse(given):
        return lists_of_matrix(open_points(given), f"{type(given).__name__} in memory")
    pair = given if isinstance(given, tuple | list) else [getattr(given, name, None) for name in GRAPH_NAMES]
    if len(pair) != 2 or pair[0] is None or pair[1] is None:
        raise DataError(f"metric='precomputed' takes {ALLOWED}; got {type(given).__name__}")
    return NeighborLists(np.asarray(pair[0]), np.asarray(pair[1]), f"{type(given).__name__} in memory")


def open_stored_lists(location: str) -> NeighborLists:
    """Return the lists at a path: a matrix in compressed sparse rows, or arrays `indices` and `distances` in zarr."""
    try:
        return lists_of_matrix(open_points(location), location)
    except StoreError as error:
        if "::" in location or "is a zarr group" not in str(error):
            raise
    indices, distances = (open_points(f"{location}::{name}") for name in GRAPH_NAMES)
    table = indices.read(0, indices.shape[0])
    return NeighborLists(table.astype(np.int64), distances.read(0, distances.shape[0]), location)
