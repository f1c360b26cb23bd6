"""Points in a column of vectors, as data frames hold embeddings: one array or list a row."""

from typing import Any

import numpy as np

from scalemani.errors import DataError
from scalemani.validation import check_exact_columns, refuse_masked


def take_vectors(points: Any) -> Any:
    """Return the table (N, D) of a column of N vectors in memory; anything else as it is.

    Parameters
    ----------
    points : (N,) array of Python objects or column of pandas, whose elements are arrays, lists or tuples of numbers

    Raises
    ------
    DataError
        For vectors of different lengths, with the first row that differs.
    """
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
