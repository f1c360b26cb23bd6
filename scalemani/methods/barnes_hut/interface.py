"""Sums over a tree by the angle at which cells are opened."""

from numbers import Real
from typing import Any

from scalemani.errors import ConfigError
from scalemani.methods.barnes_hut.kernels.barnes_hut import BarnesHut


def tree_sums(kernel: str, theta: Any, tolerance: float) -> BarnesHut:
    """Return the sums of a kernel that open cells of an extent above `theta` times their distance."""
    if isinstance(theta, bool) or not isinstance(theta, Real):
        raise ConfigError(f"theta must be a number in [0, 2], got {theta!r}")
    return BarnesHut(kernel, float(theta))
