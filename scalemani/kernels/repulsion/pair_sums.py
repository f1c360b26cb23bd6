"""What all ways to sum a kernel over pairs of points share: the kernels by name, one interface, checks of arguments.

Everything that a nonlinear embedding needs of its repulsion is one field (thesis section 5.3, equation (5.8)):
S(y) = sum_m q_m K(|y - x_m|^2) and its gradient, since sum_m q_m (y - x_m) K'(|y - x_m|^2) = grad S / 2.
Callers name a kernel; compiled code takes its number in `KERNELS`.
"""

from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from scalemani.errors import ConfigError, nearest_name

STUDENT, GAUSSIAN, EPANECHNIKOV = 0, 1, 2
KERNELS = {"student": STUDENT, "gaussian": GAUSSIAN, "epanechnikov": EPANECHNIKOV}
LEAST_SUM = 1e-300  # a sum that underflows, or that an approximation leaves below zero, counts as this where it divides


class Field(NamedTuple):
    """The field at targets: S (M,) and its gradient (M, d), float64."""

    sums: np.ndarray
    gradients: np.ndarray


def empty_field(targets: np.ndarray) -> Field:
    """Return room for the field at targets (M, d)."""
    return Field(np.empty(len(targets)), np.empty(targets.shape))


class Potential(Protocol):
    """The field of sources that stay where they are."""

    def field(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return S (M,) and its gradient (M, d) at targets (M, d) that lie inside."""

    def inside(self, targets: np.ndarray) -> np.ndarray:
        """Return at which targets (M, d) the field is known: (M,) bool."""


class PairSums(Protocol):
    """A way to sum a kernel over pairs; `kernel` is its name, `exact` whether sums err by rounding alone."""

    kernel: str
    exact: ClassVar[bool] = False

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S(y) = sum_m q_m K(|y - x_m|^2) at the targets, and its gradient with respect to y.

        Parameters
        ----------
        sources : (N, d) finite points x_m, any real dtype, computed with as float64
        targets : (M, d) finite points y, or None: the sources, and then no point meets itself (its coincident
            neighbours do count)
        charges : (N,) q_m of either sign, or None: all one

        Returns
        -------
        sums : S (M,) float64
        gradients : grad S (M, d) float64
        """
        ...

    def potential(self, sources: np.ndarray, margin: float, charges: np.ndarray | None = None) -> Potential:
        """Return the field of sources (N, d) and their charges (N,), for targets within `margin` of their box.

        Charges of None are all one.
        """
        return SummedPotential(self, sources, charges)


class SummedPotential(NamedTuple):
    """A field that is summed over all sources (N, d) on each call, at targets anywhere."""

    sums: PairSums
    sources: np.ndarray
    charges: np.ndarray | None = None

    def field(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return S (M,) and its gradient (M, d) at targets (M, d)."""
        return self.sums.field(self.sources, targets, self.charges)

    def inside(self, targets: np.ndarray) -> np.ndarray:
        """Return True for each of the targets: (M,) bool."""
        return np.ones(len(targets), bool)


def kernel_number(kernel: str, allowed: Iterable[str] = tuple(KERNELS)) -> int:
    """Return the number by which compiled code knows a kernel; raise ConfigError for one that is not `allowed`."""
    if kernel not in allowed:
        raise ConfigError(f"kernel {kernel!r} cannot be summed by this method: {nearest_name(kernel, allowed)}")
    return KERNELS[kernel]


def checked_tolerance(tolerance: float) -> float:
    """Return the allowed relative error of the gradient; raise ConfigError for anything but a number above zero."""
    if not tolerance > 0.0:
        raise ConfigError(f"tolerance must be > 0 (relative error of the gradient), not {tolerance}")
    return float(tolerance)


def pair_arguments(
    sources: np.ndarray, targets: np.ndarray | None, charges: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sources (N, d), targets (M, d), charges (N,) in float64; raise ConfigError where they do not fit."""
    points = np.ascontiguousarray(sources, dtype=np.float64)
    at = points if targets is None else np.ascontiguousarray(targets, dtype=np.float64)
    weights = np.ones(len(points)) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
    if points.ndim != 2 or at.ndim != 2 or at.shape[1] != points.shape[1] or weights.shape != (len(points),):
        raise ConfigError(
            f"sources {points.shape}, targets {at.shape} and charges {weights.shape} do not fit: (N, d), (M, d), (N,)"
        )
    return points, at, weights
