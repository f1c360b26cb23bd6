"""Points that are read in batches of rows, one after the other: going back starts where the file can be entered."""

import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.arrow_columns import PointColumns
from scalemani.sources.base import Source, optional_module

BATCH_BYTES = 2**20
BATCH_ROWS = 16_384
Place = TypeVar("Place")  # of a file: a path, or a file in a bucket


class BatchedPoints(Source, Generic[Place]):
    """Files that are read one after the other, each in parts at which reading can begin.

    Ascending blocks go on in the open file; going back starts at the part that holds the first row asked for.

    Parameters
    ----------
    columns : that are coordinates
    width : D
    parts : the file and the number of each part, in order
    starts : the first row of each part, and behind the last one the number of rows
    description : where the points come from
    """

    sequential = True

    def __init__(
        self,
        columns: PointColumns,
        width: int,
        parts: Sequence[tuple[Place, int]],
        starts: Sequence[int],
        description: str,
    ) -> None:
        self.columns, self.parts, self.starts = columns, parts, starts
        self._lock = threading.Lock()
        self._batches: Iterator[np.ndarray] | None = None
        self._row = 0
        self._left: np.ndarray | None = None
        super().__init__((starts[-1], width), columns.dtype, description)

    @property
    def batch_rows(self) -> int:
        """How many rows are best read at once: a megabyte."""
        return min(BATCH_ROWS, max(1, BATCH_BYTES // (self.shape[1] * self.dtype.itemsize)))

    @abstractmethod
    def batches(self, part: int) -> Iterator[Any]:
        """Yield the record batches of a part, in order."""

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._lock:
            first_part = bisect_right(self.starts, start) - 1
            batches = self._batches
            if batches is None or start < self._row or self.starts[first_part] > self._row:
                batches = self._read_from(first_part)
                self._row = self.starts[first_part]
                self._left = None
            self._batches = None  # until these rows are read: what fails half-way is not gone on with
            while self._row < stop:
                batch = self._left if self._left is not None else next(batches)
                end = self._row + len(batch)
                first, last = max(self._row, start), min(end, stop)
                if first < last:
                    rows[first - start : last - start] = batch[first - self._row : last - self._row]
                self._left = batch[stop - self._row :] if end > stop else None
                self._row = min(end, stop)
            self._batches = batches
        return rows

    def _read_from(self, first_part: int) -> Iterator[np.ndarray]:
        arrow = optional_module("pyarrow", "parquet")
        width = self.shape[1] if self.columns.lists else None
        for part in range(first_part, len(self.parts)):
            path, row = self.parts[part][0], self.starts[part]
            try:
                for batch in self.batches(part):
                    yield self.columns.rows(batch, str(path), row, width)
                    row += len(batch)
            except (OSError, arrow.ArrowException) as error:
                raise DataError(f"{path} is truncated or damaged: {error}; copy it again") from error
