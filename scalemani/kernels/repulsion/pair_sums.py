"""Sums of a kernel over pairs of points: what all ways to sum share, and exact sums in any number of dimensions.

Everything that a nonlinear embedding needs of its repulsion is one field (thesis section 5.3, equation (5.8)):
S(y) = sum_m q_m K(|y - x_m|^2) and its gradient, since sum_m q_m (y - x_m) K'(|y - x_m|^2) = grad S / 2.
Callers name a kernel; compiled code takes its number in `KERNELS`. A new kernel has a number there and a branch in
`respond`, `derivatives` and `weigh`, whose last branch is Epanechnikov's. Exact sums then know it; the particle mesh
knows those of `MESH_KERNELS` alone.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from scalemani.errors import ConfigError, nearest_name
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled, inlined_sums, square_of
from scalemani.kernels.machine.vector_math import exp_nonpositive

STUDENT, GAUSSIAN, EPANECHNIKOV = 0, 1, 2
KERNELS = {"student": STUDENT, "gaussian": GAUSSIAN, "epanechnikov": EPANECHNIKOV}
LEAST_SUM = 1e-300  # a sum that underflows, or that an approximation leaves below zero, counts as this where it divides

SOURCE_TILE = 512  # sources looked at together: with their distances and slopes they stay in the first-level cache
TARGET_PANEL = 1024
ROW_PANEL = 64  # requested rows are few: smaller panels still occupy all threads
SLOPE = 2.0  # d/dy K(|y - x|^2) = 2 K' (y - x)


class Field(NamedTuple):
    """The field at targets: S (M,) and its gradient (M, d), float64."""

    sums: np.ndarray
    gradients: np.ndarray


def empty_field(targets: np.ndarray) -> Field:
    """Return room for the field at targets (M, d)."""
    return Field(np.empty(len(targets)), np.empty(targets.shape))


class Potential(NamedTuple):
    """The field of sources that stay where they are.

    `field` returns S (M,) and its gradient (M, d) at targets (M, d) that lie inside, from `low` to `high` (d,).
    """

    field: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    low: np.ndarray
    high: np.ndarray

    def inside(self, targets: np.ndarray) -> np.ndarray:
        """Return at which targets (M, d) the field is known: (M,) bool."""
        return ((targets >= self.low) & (targets <= self.high)).all(axis=1)


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

        Charges of None are all one. By default all sources are summed on each call, at targets anywhere.
        """
        everywhere = np.full(sources.shape[1], np.inf)
        return Potential(lambda targets: self.field(sources, targets, charges), -everywhere, everywhere)


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


class ExactSums(PairSums):
    """Sums over all pairs, O(N M d), float64: relative rounding of a few 1e-16 times the sum of |q_m| K.

    The kernel is "student", 1 / (1 + d^2), "gaussian", exp(-d^2), or "epanechnikov", max(1 - d^2, 0); a ConfigError is
    raised for another one. Panels of 1,024 targets run side by side where the map function `over` does.
    """

    exact: ClassVar[bool] = True

    def __init__(self, kernel: str, over: Mapper = map) -> None:
        self.kernel, self.over = kernel, over
        self._kind = kernel_number(kernel)

    def field(
        self,
        sources: np.ndarray,
        targets: np.ndarray | None = None,
        charges: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S and its gradient as `PairSums.field` does, with the same bits for any map function.

        `rows` (M,) of the sources may be the targets, in place of `targets`; each is left out of its own sum. Shapes
        that do not fit, and both targets and rows, are a ConfigError.
        """
        if rows is not None and targets is not None:
            raise ConfigError("field takes targets or rows of the sources, got both: leave one of them out")
        points, at, charges = pair_arguments(sources, targets, charges)
        if rows is not None:
            return self._at_rows(points, charges, np.asarray(rows, np.int64))
        columns, others = np.ascontiguousarray(points.T), targets is None
        sums, gradients = np.empty(len(at)), np.empty(at.shape)

        def part(panel: slice) -> None:
            own = panel.start if others else -1
            _exact_panel(self._kind, columns, charges, at[panel], own, sums[panel], gradients[panel])

        run(self.over(part, slices(len(at), TARGET_PANEL)))
        return sums, gradients

    def _at_rows(self, points: np.ndarray, charges: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, gradients = np.empty(len(rows)), np.empty((len(rows), points.shape[1]))

        def part(panel: slice) -> None:
            _exact_rows(self._kind, points, charges, rows[panel], sums[panel], gradients[panel])

        run(self.over(part, slices(len(rows), ROW_PANEL)))
        return sums, gradients


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


@compiled
def _exact_rows(
    kind: int, points: np.ndarray, charges: np.ndarray, rows: np.ndarray, sums: np.ndarray, gradients: np.ndarray
) -> None:
    """Fill sums (m,) and gradients (m, d) at some rows of the points (N, d), source by source."""
    for i in range(len(rows)):
        n = rows[i]
        sums[i], gradients[i] = 0.0, 0.0
        for m in range(len(points)):
            if m == n:
                continue
            square = 0.0
            for k in range(points.shape[1]):
                square += square_of(points[n, k] - points[m, k])
            value, slope = respond(kind, square)
            sums[i] += charges[m] * value
            for k in range(points.shape[1]):
                gradients[i, k] += SLOPE * charges[m] * slope * (points[n, k] - points[m, k])


@compiled
def respond(kind: int, square: float) -> tuple[float, float]:
    """Return K and K' at one squared distance."""
    if kind == GAUSSIAN:
        value = exp_nonpositive(-square)
        return value, -value
    if kind == STUDENT:
        value = 1.0 / (1.0 + square)
        return value, -value * value
    return (1.0 - square, -1.0) if square < 1.0 else (0.0, 0.0)


@inlined_sums
def derivatives(kind: int, square: float) -> tuple[float, float]:
    """Return -K' and K'' at one squared distance, for directions that need the Hessian."""
    if kind == GAUSSIAN:
        value = exp_nonpositive(-square)
        return value, value
    if kind == STUDENT:
        value = 1.0 / (1.0 + square)
        return value * value, 2.0 * value * value * value
    return (1.0 if square < 1.0 else 0.0), 0.0


@inlined_sums
def square_distances(columns: np.ndarray, target: np.ndarray, begin: int, end: int, squared: np.ndarray) -> None:
    """Write the squared distances of a target (d,) to points columns[:, begin:end], of columns (d, N), to `squared`."""
    for k in range(len(columns)):
        column, y = columns[k, begin:end], target[k]
        for j in range(np.uint64(len(column))):
            squared[j] = (squared[j] if k > 0 else 0.0) + square_of(y - column[j])


@inlined_sums
def weigh(kind: int, squared: np.ndarray, charges: np.ndarray, slopes: np.ndarray) -> float:
    """Return sum_j q_j K(s_j) over charges q (n,) at squared distances s; q_j K'(s_j) is written to `slopes`."""
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


@inlined_sums
def moment(column: np.ndarray, y: float, slopes: np.ndarray) -> float:
    """Return sum_j slopes_j (y - x_j) over one coordinate of the points."""
    total = 0.0
    for j in range(np.uint64(len(column))):
        total += slopes[j] * (y - column[j])
    return total
