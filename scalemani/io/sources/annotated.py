"""The table of points of an AnnData, as scanpy chooses it, and of a column of vectors."""

from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.validation import check_exact_columns, refuse_masked
from scalemani.errors import DataError
from scalemani.io.sources.sparse_rows import SparseRows, sparse_parts


def take_vectors(points: Any) -> Any:
    """Return the table (N, D) of a column of N vectors in memory, of one length; anything else as it is."""
    if not is_column_of_objects(points):
        return points
    rows = list(np.asarray(points))
    if not rows or not all(isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim) for row in rows):
        return points
    description = f"{type(points).__name__} in memory"
    refuse_masked(rows, description)
    lengths = np.array([len(row) for row in rows])
    if (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        raise DataError(
            f"{description} is a column of vectors of different lengths: {lengths[0]} numbers in row 0, {lengths[row]} "
            f"in row {row}. Give vectors of one length"
        )
    try:
        table = np.array(rows)
    except ValueError as error:
        raise DataError(
            f"{description} is a column of vectors that form no table ({error}): give vectors of one length"
        ) from error
    check_exact_columns(rows, table, description)
    return table


def is_column_of_objects(points: Any) -> bool:
    """Return whether points are one column of Python objects, of NumPy or pandas; Dask's are not in memory."""
    in_memory = isinstance(points, np.ndarray) or (hasattr(points, "iloc") and not hasattr(points, "dask"))
    return in_memory and getattr(points, "ndim", None) == 1 and points.dtype == object


COMPONENTS = "X_pca"  # on which scanpy finds neighbours too
WHOLE = "X"
ANNOTATED_SUFFIXES = (".h5ad", ".zarr")


def take_representation(points: Any, use_rep: str | None = None) -> Any:
    """Return the matrix of an AnnData, the table of a column of vectors, or anything else as it is.

    `use_rep` is "X" or a name in `obsm`; by default "X_pca" where there is one, else "X". NumPy must not see an
    AnnData: it takes one for nested sequences and does not return.
    """
    if isinstance(points, str | Path):
        return stored_representation(points, use_rep)
    if not (hasattr(points, "obsm") and hasattr(points, "obs_names")):
        return take_vectors(points)
    name = use_rep or (COMPONENTS if COMPONENTS in points.obsm else WHOLE)
    matrix = points.X if name == WHOLE else points.obsm.get(name)
    if matrix is None:
        raise DataError(
            f"{type(points).__name__} has no {name if name == WHOLE else f'obsm[{name!r}]'}, got obsm of "
            f"{', '.join(points.obsm) or 'nothing'}: give use_rep one of these"
            + ("" if points.X is None else f", or {WHOLE!r}")
        )
    if hasattr(matrix, "group") and hasattr(matrix, "to_memory"):  # sparse rows of a file that is open
        return SparseRows(*sparse_parts(matrix.group, dict(matrix.group.attrs), f"{type(points).__name__}.{name}"))
    return matrix


def stored_representation(location: str | Path, use_rep: str | None) -> str | Path:
    """Return the location of the requested matrix of a stored AnnData; a path that names one stays as it is."""
    if use_rep is None or "::" in str(location) or Path(location).suffix.lower() not in ANNOTATED_SUFFIXES:
        return location
    return f"{location}::{WHOLE if use_rep == WHOLE else f'obsm/{use_rep}'}"
