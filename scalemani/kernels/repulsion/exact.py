"""Sums of a kernel over all pairs of points, and their gradients: exact, in any dimension, the judge of faster methods.

Everything that a nonlinear embedding needs of its repulsion is one field (thesis section 5.3, equation (5.8)):
S(y) = sum_m q_m K(|y - x_m|^2) and its gradient, since sum_m q_m (y - x_m) K'(|y - x_m|^2) = grad S / 2. The classes
`ExactSums`, `BarnesHut` and `FastGauss` answer the same question with the same call.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.machine.vector_exp import exp_nonpositive

STUDENT, GAUSSIAN, EPANECHNIKOV = 0, 1, 2
KERNELS = {"student": STUDENT, "gaussian": GAUSSIAN, "epanechnikov": EPANECHNIKOV}
SOURCE_TILE = 512  # sources looked at together: with their distances and slopes they stay in the first-level cache
TARGET_PANEL = 1024
LEAST_SUM = 1e-300  # a sum that underflows, or that an approximation leaves below zero, counts as this where it divides
SLOPE = 2.0  # d/dy K(|y - x|^2) = 2 K' (y - x)


class PairSums(Protocol):
    """A method that sums a kernel over pairs."""

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S at the targets and its gradient, see `ExactSums.field`."""
        ...


class ExactSums:
    """Sums over all pairs, O(N M d), float64: relative rounding of a few 1e-16 times the sum of |q_m| K.

    Args:
        kernel: "student" 1 / (1 + d^2), "gaussian" exp(-d^2) or "epanechnikov" max(1 - d^2, 0).
        over: a map function with the signature of the builtin; panels of 1,024 targets run side by side where it does.

    Raises:
        ConfigError: another kernel.
    """

    def __init__(self, kernel: str, over: Mapper = map) -> None:
        self.kernel, self.over = kernel, over
        self._kind = kernel_number(kernel)

    @classmethod
    def for_tolerance(cls, kernel: str, tolerance: float, over: Mapper = map) -> "ExactSums":
        """Return the sums: they meet every tolerance that float64 can; raises ConfigError where it is not positive."""
        checked_tolerance(tolerance)
        return cls(kernel, over)

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S(y) = sum_m q_m K(|y - x_m|^2) at the targets, and its gradient with respect to y.

        Args:
            sources: (N, d) finite points x_m, any real dtype, computed with as float64.
            targets: (M, d) finite points y, or None: the sources, and then no point meets itself (its coincident
                neighbours do count).
            charges: (N,) q_m of either sign, or None: all one.

        Returns:
            S (M,) float64 and grad S (M, d) float64, bit for bit the same whatever `over` is.
        """
        points, at, charges = pair_arguments(sources, targets, charges)
        columns, others = np.ascontiguousarray(points.T), targets is None
        sums, gradients = np.empty(len(at)), np.empty(at.shape)

        def part(panel: slice) -> None:
            own = panel.start if others else -1
            _exact_panel(self._kind, columns, charges, at[panel], own, sums[panel], gradients[panel])

        run(self.over(part, slices(len(at), TARGET_PANEL)))
        return sums, gradients


def kernel_number(kernel: str, allowed: Iterable[str] = tuple(KERNELS)) -> int:
    """Return the number by which compiled code knows a kernel; raises ConfigError where it is not one of `allowed`."""
    if kernel not in allowed:
        raise ConfigError(f"kernel {kernel!r} cannot be summed by this method: {nearest_name(kernel, allowed)}")
    return KERNELS[kernel]


def checked_tolerance(tolerance: float) -> float:
    """Return the tolerance; raises ConfigError where it is not a positive number."""
    if not tolerance > 0.0:
        raise ConfigError(f"tolerance must be > 0 (relative error of the gradient), not {tolerance}")
    return float(tolerance)


def pair_arguments(
    sources: np.ndarray, targets: np.ndarray | None, charges: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sources (N, d), targets (M, d) and charges (N,), all contiguous float64."""
    points = np.ascontiguousarray(sources, dtype=np.float64)
    at = points if targets is None else np.ascontiguousarray(targets, dtype=np.float64)
    weights = np.ones(len(points)) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
    if points.ndim != 2 or at.ndim != 2 or at.shape[1] != points.shape[1] or weights.shape != (len(points),):
        raise ConfigError(
            f"sources {points.shape}, targets {at.shape} and charges {weights.shape} do not fit: (N, d), (M, d), (N,)"
        )
    return points, at, weights


@compiled
def _exact_panel(
    kind: int,
    columns: np.ndarray,
    charges: np.ndarray,
    targets: np.ndarray,
    own: int,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Fill sums (m,) and gradients (m, d); target i leaves out source own + i where own is not negative."""
    n_dims, n_sources = columns.shape
    squared, slopes = np.empty(SOURCE_TILE), np.empty(SOURCE_TILE)
    sums[:], gradients[:] = 0.0, 0.0
    for first in range(0, n_sources, SOURCE_TILE):
        stop = min(first + SOURCE_TILE, n_sources)
        for i in range(len(targets)):
            left_out = own + i if own >= 0 else n_sources
            for part in range(2):  # before and after the source that is left out; most tiles are all in one part
                begin = first if part == 0 else max(first, left_out + 1)
                end = min(stop, left_out) if part == 0 else stop
                if begin >= end:
                    continue
                square_distances(columns, targets[i], begin, end, squared)
                sums[i] += weigh(kind, squared, charges[begin:end], slopes)
                for k in range(n_dims):
                    gradients[i, k] += SLOPE * moment(columns[k, begin:end], targets[i, k], slopes)


@compiled_sums
def square_distances(columns: np.ndarray, target: np.ndarray, begin: int, end: int, squared: np.ndarray) -> None:
    """Write |y - x_j|^2 to the points x_j = columns[:, begin:end] of `columns` (d, N) into `squared`."""
    for k in range(len(columns)):
        column, y = columns[k, begin:end], target[k]
        for j in range(np.uint64(len(column))):
            squared[j] = (squared[j] if k > 0 else 0.0) + (y - column[j]) ** 2


@compiled_sums
def weigh(kind: int, squared: np.ndarray, charges: np.ndarray, slopes: np.ndarray) -> float:
    """Return sum_j q_j K(s_j) over the charges, s = `squared`, and write q_j K'(s_j) into `slopes`."""
    total = 0.0
    if kind == STUDENT:
        for j in range(np.uint64(len(charges))):
            response = 1.0 / (1.0 + squared[j])
            slopes[j] = -charges[j] * response * response
            total += charges[j] * response
    elif kind == GAUSSIAN:
        for j in range(np.uint64(len(charges))):
            response = charges[j] * exp_nonpositive(-squared[j])
            slopes[j] = -response
            total += response
    else:
        for j in range(np.uint64(len(charges))):
            inside = 1.0 if squared[j] < 1.0 else 0.0
            slopes[j] = -charges[j] * inside
            total += charges[j] * inside * (1.0 - squared[j])
    return total


@compiled_sums
def moment(column: np.ndarray, y: float, slopes: np.ndarray) -> float:
    """Return sum_j slopes_j (y - x_j) over one coordinate of the points."""
    total = 0.0
    for j in range(np.uint64(len(column))):
        total += slopes[j] * (y - column[j])
    return total
