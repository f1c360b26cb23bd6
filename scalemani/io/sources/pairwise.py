"""Matrices between the points of an AnnData: neighbours and affinities as scanpy keeps them."""

from pathlib import Path
from typing import Any

import zarr

from scalemani.errors import DataError
from scalemani.io.sources.stores import RegularFiles

H5AD = ".h5ad"
MARKERS = (".zgroup", "zarr.json")  # of a zarr group
ENCODING = "anndata"  # what an AnnData says that it is


def take_pairwise(given: Any, name: str) -> Any:
    """Return a matrix (N, N) between the points of an AnnData, or where it lies; anything else as it is.

    Parameters
    ----------
    name : of the matrix in `obsp`

    Raises
    ------
    DataError
        Where the AnnData has none of that name, saying what it has.
    """
    if isinstance(given, str | Path):
        location = str(given)
        annotated = "::" not in location and (location.lower().endswith(H5AD) or is_anndata(location))
        return f"{location}::obsp/{name}" if annotated else given
    if not (hasattr(given, "obsp") and hasattr(given, "obs_names")):
        return given
    if name not in given.obsp:
        raise DataError(
            f"{type(given).__name__} has no obsp[{name!r}], got {', '.join(given.obsp) or 'nothing'}: find the "
            "neighbours first, or give points, with neither metric nor affinity precomputed"
        )
    return given.obsp[name]


def is_anndata(location: str) -> bool:
    """Return whether there is an AnnData in a zarr store of this machine."""
    path = Path(location)
    if "://" in location or not any((path / marker).exists() for marker in MARKERS):
        return False
    try:
        node = zarr.open(RegularFiles(path, read_only=True), mode="r")
    except Exception:  # damaged, in one of many ways: no AnnData
        return False
    return isinstance(node, zarr.Group) and node.attrs.get("encoding-type") == ENCODING
