"""Generated data sets: sources of points whose values are functions of the seed and the global row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scalemani.config.validation import LARGEST_SEED, check_count
from scalemani.kernels.arrays.draws import row_words

UNIFORM_STEP = 2.0**-52
DISCARDED_BITS = np.uint64(12)  # of the 64 random bits; with 52, the middle of each step is a float64 below 1


@dataclass(frozen=True)
class Generator(ABC):
    """`n_points` points (N, D) that are computed, not read; reads like any other source of points.

    Points and labels of a row depend on `seed` and the row, never on the block it is asked for in; they depend on
    `n_points` only where a subclass says so.
    """

    n_points: int
    seed: int = 0

    name: ClassVar[str]
    default_points: ClassVar[int] = 20_000
    sequential: ClassVar[bool] = False
    remote: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count(self.n_points, f"n_points of {self.name}")
        check_count(self.seed, f"seed of {self.name}", 0, LARGEST_SEED, "63 bits")

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the points."""

    @abstractmethod
    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the points of rows [start, stop): (stop - start, D), C-contiguous."""

    @abstractmethod
    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return one label, or the value along the manifold, for each of rows [start, stop)."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.n_points, self.n_features

    @property
    def description(self) -> str:
        """What the points are, for a log or a report."""
        return f"{self.name}, {self.n_points:,} points, seed {self.seed}"

    @property
    def preferred_rows(self) -> int | None:
        """Rows by which reading is quickest; None where it makes no difference."""
        return None

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the points of rows [start, stop), as every source of points does."""
        return self.block(start, stop)

    def uniform(self, quantity: str, start: int, stop: int, per_row: int = 1) -> np.ndarray:
        """Return uniform draws in (0, 1) of one quantity for rows [start, stop): (rows, per_row) float64."""
        words = row_words(self.seed, f"{self.name}/{quantity}", start * per_row, stop * per_row)
        return (((words >> DISCARDED_BITS) + 0.5) * UNIFORM_STEP).reshape(-1, per_row)
