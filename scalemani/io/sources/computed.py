"""Rows of a lazy array, each computed once and kept as objects beside a run for as long as it reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.errors import StoreError
from scalemani.io.sources.base import PointsSource, Source, native_rows, pieces
from scalemani.io.sources.metrics import MetricPoints
from scalemani.io.sources.side_data import AccompaniedPoints
from scalemani.store.places import open_objects


@dataclass(frozen=True)
class KeptRows:
    """Where rows (N, D) of some points are kept: pieces end at multiples of `piece_rows`, and where chunks end.

    It travels to whoever computes a chunk.
    """

    root: Path | str
    piece_rows: int
    shape: tuple[int, int]
    dtype: np.dtype
    description: str

    def keep(self, start: int, stop: int, given: Any) -> None:
        """Write rows [start, stop) as they were computed.

        Raises
        ------
        DataError
            Where they are not what the lazy array said, or are masked.
        """
        rows, objects = native_rows(given, start, stop, self), open_objects(self.root)
        for first in cuts([start, stop], self.piece_rows)[:-1]:
            last = min(stop, (first // self.piece_rows + 1) * self.piece_rows)
            objects.set(str(first), rows[first - start : last - start].tobytes())


class ComputedPoints(Source):
    """Points whose rows are kept, in pieces that begin with the rows `starts`; the last of these is N."""

    remote = True

    def __init__(self, kept: KeptRows, chunk_starts: Sequence[int]) -> None:
        super().__init__(kept.shape, kept.dtype, kept.description)
        self.kept = kept
        self.starts = cuts(chunk_starts, kept.piece_rows)
        self.preferred_rows = kept.piece_rows
        self.held_bytes = min(kept.piece_rows, self.shape[0]) * self.shape[1] * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), of as many pieces as they lie in."""
        rows, objects, row = np.empty((stop - start, self.shape[1]), self.dtype), open_objects(self.kept.root), 0
        for piece, first, last in pieces(self.starts, start, stop):
            begin, end = self.starts[piece], self.starts[piece + 1]
            content = objects.get(str(begin))
            if content is None or len(content) != (end - begin) * self.shape[1] * self.dtype.itemsize:
                raise StoreError(
                    f"rows [{begin}, {end}) of {self.description}, kept in {self.kept.root}, are gone or were cut "
                    "short: run the same command again"
                )
            found = np.frombuffer(content, self.dtype).reshape(end - begin, -1)
            rows[row : row + last - first] = found[first:last]
            row += last - first
        return rows


def cuts(bounds: Sequence[int], every: int) -> list[int]:
    """Return bounds of ascending pieces with the multiples of `every` between the first and the last of them."""
    return sorted({*bounds, *range(-(-bounds[0] // every) * every, bounds[-1], every)})


def innermost(source: PointsSource) -> PointsSource:
    """Return the points that a source takes its rows from: before a metric, and without their side data."""
    while isinstance(source, AccompaniedPoints | MetricPoints):
        source = source.points
    return source


def on_rows_of(source: PointsSource, points: PointsSource) -> PointsSource:
    """Return a source as it is, but for its innermost points, which are others of the same rows."""
    if isinstance(source, AccompaniedPoints | MetricPoints):
        return source.with_points(on_rows_of(source.points, points))
    return points
