"""Points that are read by row numbers, wherever they are."""

from typing import Protocol

import numpy as np


class PointsByRow(Protocol):
    """Points (N, D) that are read by row numbers: an array in memory, or what reads a store."""

    def __len__(self) -> int:
        """Return N."""

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """Return the points (m, D) at rows (m,) int64."""
