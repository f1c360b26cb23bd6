"""Rows of a lazy array, each computed once and cached in the folder of a run while it reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import StoreError
from scalemani.io.sources.base import Source, native_rows, pieces
from scalemani.store.places import open_objects


@dataclass(frozen=True)
class KeptRows:
    """The cache of rows (N, D), in pieces that end at multiples of `piece_rows` and where chunks end."""

    root: Path | str
    piece_rows: int
    shape: tuple[int, int]
    dtype: np.dtype
    description: str

    def keep(self, start: int, stop: int, given: Any) -> None:
        """Write computed rows [start, stop); refuse rows of another shape, and masked ones."""
        rows, objects = native_rows(given, start, stop, self), open_objects(self.root)
        for first in cuts([start, stop], self.piece_rows)[:-1]:
            last = min(stop, (first // self.piece_rows + 1) * self.piece_rows)
            objects.set(str(first), rows[first - start : last - start].tobytes())


class ComputedPoints(Source):
    """Cached points, in pieces that begin with the rows `starts`; the last of these is N."""

    remote = True

    def __init__(self, kept: KeptRows, chunk_starts: Sequence[int]) -> None:
        super().__init__(kept.shape, kept.dtype, kept.description)
        self.kept = kept
        self.starts = cuts(chunk_starts, kept.piece_rows)
        self.preferred_rows = kept.piece_rows
        self.held_bytes = min(kept.piece_rows, self.shape[0]) * self.shape[1] * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        rows, objects, row = np.empty((stop - start, self.shape[1]), self.dtype), open_objects(self.kept.root), 0
        for piece, first, last in pieces(self.starts, start, stop):
            begin, end = self.starts[piece], self.starts[piece + 1]
            content = objects.get(str(begin))
            if content is None or len(content) != (end - begin) * self.shape[1] * self.dtype.itemsize:
                raise StoreError(
                    f"rows [{begin}, {end}) of {self.description}, kept in {self.kept.root}, are gone or were cut "
                    "short: run the same command again"
                )
            cached = np.frombuffer(content, self.dtype).reshape(end - begin, -1)
            rows[row : row + last - first] = cached[first:last]
            row += last - first
        return rows


def cuts(bounds: Sequence[int], every: int) -> list[int]:
    """Return bounds of ascending pieces with the multiples of `every` between the first and the last of them."""
    return sorted({*bounds, *range(-(-bounds[0] // every) * every, bounds[-1], every)})
