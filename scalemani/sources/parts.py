"""Points in several .npy files of a folder, one after the other."""

from bisect import bisect_right
from pathlib import Path

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.base import Source, check_file, natural_order
from scalemani.sources.numpy_files import NpyPoints


class NpyParts(Source):
    """The .npy files of a folder in natural order of their names (part-2 before part-10)."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.npy"), key=natural_order)
        for path in files:
            check_file(path)
        self.parts = [NpyPoints(path) for path in files]
        first = self.parts[0]
        for path, part in zip(files, self.parts, strict=True):
            if (part.shape[1], part.file_dtype) != (first.shape[1], first.file_dtype):
                raise DataError(
                    f"all files must have the same columns: {path} has {part.shape[1]} of {part.file_dtype}, "
                    f"{files[0]} has {first.shape[1]} of {first.file_dtype}"
                )
        self.starts = np.cumsum([0, *(part.shape[0] for part in self.parts)]).tolist()
        super().__init__((self.starts[-1], first.shape[1]), first.file_dtype, f"{folder} ({len(files)} files)")

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        part = bisect_right(self.starts, start) - 1
        row = start
        while row < stop:
            first, last = self.starts[part], min(self.starts[part + 1], stop)
            rows[row - start : last - start] = self.parts[part].read(row - first, last - first)
            row, part = last, part + 1
        return rows
