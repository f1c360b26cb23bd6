"""Points with something more for each of them, such as labels: a source of the points, whatever else is read of it."""

import copy
from abc import ABC, abstractmethod
from typing import Self, TypeVar

import numpy as np
import scipy.sparse as sp

from scalemani.sources.base import PointsSource, nonzeros_of, read_rows

Beside = TypeVar("Beside", bound="PointsBeside")


class PointsBeside(ABC):
    """Points (N, D) of another source, `points`, which may be such a source too."""

    remote = False  # what is beside the points is in this process

    def __init__(self, points: PointsSource) -> None:
        self.points = points
        self.shape, self.dtype, self.description = points.shape, points.dtype, points.description
        self.preferred_rows, self.sequential = points.preferred_rows, points.sequential
        self.remark, self.held_bytes = getattr(points, "remark", ""), getattr(points, "held_bytes", 0)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the points."""
        return self.points.read(start, stop)

    @property
    def nonzeros(self) -> int | None:
        """As of the points."""
        return nonzeros_of(self.points)

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the points as sparse rows."""
        return read_rows(self.points, start, stop, sparse=True)

    def with_rows_of(self, points: PointsSource) -> Self:
        """Return the same with the rows of another source of as many points."""
        other = copy.copy(self)
        PointsBeside.__init__(other, points)
        return other

    def of_rows(self, points: PointsSource, rows: np.ndarray) -> "PointsBeside":
        """Return a source `points` of some of the rows, with what is beside these."""
        return self._of_rows(
            self.points.of_rows(points, rows) if isinstance(self.points, PointsBeside) else points, rows
        )

    @abstractmethod
    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "PointsBeside":
        """Return a source of some of the rows with what this source itself has for them."""


def found_beside(source: PointsSource, kind: type[Beside]) -> Beside | None:
    """Return the source of a kind that a source is or stands on, None where there is none."""
    while isinstance(source, PointsBeside):
        if isinstance(source, kind):
            return source
        source = source.points
    return None


def without_beside(source: PointsSource) -> PointsSource:
    """Return the source of the points themselves."""
    while isinstance(source, PointsBeside):
        source = source.points
    return source
