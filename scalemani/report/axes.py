"""Axes of charts: where values lie on them, and round numbers to mark."""

import math
from dataclasses import dataclass

import numpy as np

MARKS = 5
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, both finite, by the logarithm where `log`."""

    low: float
    high: float
    log: bool = False

    def place(self, values: np.ndarray | float) -> np.ndarray:
        """Return where values lie: 0 at `low`, 1 at `high`."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return np.asarray((self._scaled(values) - low) / (high - low) if high > low else np.full_like(values, 0.5))

    def edges(self, n_bins: int) -> np.ndarray:
        """Return the edges (n + 1,) of bins of equal width on the axis."""
        edges = np.linspace(self._scaled(self.low), self._scaled(self.high), n_bins + 1)
        return np.asarray(10**edges if self.log else edges)

    def marks(self) -> list[tuple[float, str]]:
        """Return the places of a few round values, with their texts."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last - first >= 1:
                step = -(-(last - first + 1) // MARKS)
                values = [10.0**power for power in range(first, last + 1, step)]
                return [(float(self.place(value)), f"{value:g}") for value in values]
        return [(float(self.place(value)), f"{value:.6g}") for value in round_values(self.low, self.high)]

    def _scaled(self, values: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.log10(values) if self.log else values, np.float64)


def round_values(low: float, high: float) -> list[float]:
    """Return a few round numbers between two, at most MARKS + 1."""
    if not high > low:
        return [low]
    rough = (high - low) / MARKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in ROUND_STEPS if power * factor >= rough * (1 - 1e-9))
    return [0.0 if abs(k * step) < step / 2 else k * step for k in range(math.ceil(low / step), int(high // step) + 1)]


def fitting_axis(values: np.ndarray, log: bool = False) -> Axis:
    """Return the axis from the least to the largest finite value (positive ones where `log`)."""
    kept = values[np.isfinite(values) & ((values > 0) | (not log))]
    return Axis(float(kept.min()), float(kept.max()), log) if kept.size else Axis(0.0, 1.0)
