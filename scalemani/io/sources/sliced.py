"""Points in whatever can be sliced by rows as an array is: data sets of HDF5, labelled arrays, other libraries' own."""

from typing import Any

import numpy as np

from scalemani.io.sources.base import Source, as_store_errors
from scalemani.io.sources.missing_chunks import missing_chunks


class SlicedPoints(Source):
    """An object with a shape and a dtype whose slices of rows become arrays; no more is read than is asked for."""

    def __init__(self, points: Any, description: str | None = None) -> None:
        super().__init__(tuple(points.shape), points.dtype, description or f"{type(points).__name__} in memory")
        self.points, self.remark = points, missing_chunks(points, self.description)
        chunks = getattr(points, "chunks", None)
        if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
            self.preferred_rows = chunks[0]
            self.held_bytes = chunks[0] * self.shape[1] * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        with as_store_errors(self.description, start, stop):
            return np.asarray(self.points[start:stop])


def is_sliced(points: Any) -> bool:
    """Return whether an object is an array (N, D) of numbers other than NumPy's, to be read by slices."""
    if isinstance(points, np.ndarray | np.generic) or not hasattr(points, "__getitem__"):
        return False
    shape, dtype = getattr(points, "shape", None), getattr(points, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or dtype is None or not hasattr(points, "__array__"):
        return False
    try:
        np.dtype(dtype)
    except TypeError:  # of another library, which NumPy does not know: NumPy asks the object for all of it
        return False
    return all(isinstance(length, int | np.integer) for length in shape)
