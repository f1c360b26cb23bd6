"""Where the positions of new points are written, and what tells that an earlier command has written them."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import zarr

from scalemani.chunked.task import Dimensions
from scalemani.export import rows_per_block, write_rows
from scalemani.export.atomic import already_there
from scalemani.export.rows import Rows, new_zarr_array, run_blocks, zarr_rows
from scalemani.new_points.clusters import nearest_clusters
from scalemani.runs.opened import Run
from scalemani.sources.stores import store_at
from scalemani.store.objects import digest

KEY, CERTIFICATES = "scalemani_transform", "scalemani_certificates"  # attributes of an output of zarr
KEY_CHARACTERS = 16


def result_key(run: Run, dimensions: Dimensions, content: str) -> str:
    """Return what tells the results of some points in a run from those of others.

    Parameters
    ----------
    run : a finished run
    dimensions, content : the shape of the new points, and their digest
    """
    identity = [run.keys, dimensions.n_points, dimensions.n_features, dimensions.dtype, content]
    return digest(json.dumps(identity).encode())[:KEY_CHARACTERS]


def earlier_result(target: str) -> dict[str, str] | None:
    """Return what an earlier transform has told of itself in the array at `target`; None where nothing is there.

    Raises
    ------
    StoreError
        For anything else that is there.
    """
    try:
        there = zarr.open(store_at(target) if "://" in target else target, mode="r")
    except Exception as error:  # stores say in many ways that nothing is there, and what is wrong with what is
        if "://" in target or not Path(target).exists():
            return None
        raise already_there(target) from error
    told = {name: there.attrs.get(name) for name in (KEY, CERTIFICATES)}
    if None in told.values():
        raise already_there(target)
    return {name: str(value) for name, value in told.items()}


def write(
    coordinates: Any,
    target: str,
    labels: str | None,
    centers: np.ndarray | None,
    told: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write coordinates (n, d), and before them the clusters (n,) where there are centres.

    Parameters
    ----------
    coordinates : (n, d), read by rows
    target : where they go
    labels, centers : where clusters go, and centres (K, d); None where there are none
    told : attributes of an array of zarr, which it has once all rows are written
    """

    def read(start: int, stop: int) -> np.ndarray:
        return np.asarray(coordinates[start:stop])

    if labels is not None and centers is not None:

        def clusters(start: int, stop: int) -> np.ndarray:
            return nearest_clusters(read(start, stop), centers)

        write_rows(clusters, (coordinates.shape[0],), np.int32, labels)
    if not told or not target.lower().endswith(".zarr"):
        write_rows(read, coordinates.shape, coordinates.dtype, target)
        return
    kind = np.dtype(coordinates.dtype)
    rows = Rows(coordinates.shape, kind, rows_per_block(coordinates.shape[1] * kind.itemsize))
    with new_zarr_array(target, rows) as array:
        run_blocks(read, rows, zarr_rows(array))
        array.attrs.update(told)
