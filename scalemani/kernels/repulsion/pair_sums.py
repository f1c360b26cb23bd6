"""Sums of a kernel over pairs of points: what all ways to sum share, and exact sums in any number of dimensions.

Everything that a nonlinear embedding needs of its repulsion is one field (thesis section 5.3, equation (5.8)):
S(y) = sum_m q_m K(|y - x_m|^2) and its gradient, since sum_m q_m (y - x_m) K'(|y - x_m|^2) = grad S / 2.
Callers name a kernel, or give the degrees of freedom of Student's, (1 + d^2 / dof)^-dof as openTSNE has it; compiled
code takes its number in `KERNELS`. A new kernel has a number there and a branch in `respond`, `derivatives` and
`weigh`, whose last branch is Epanechnikov's. Exact sums then know it; the particle mesh knows those of `MESH_KERNELS`
alone.
"""

from collections.abc import Callable, Collection
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from scalemani.config.limits import LEAST_DOF, MOST_DOF
from scalemani.errors import ConfigError, nearest_name
from scalemani.kernels.arrays.tiles import Mapper, row_panels, run, slices
from scalemani.kernels.machine.compile import compiled, inlined, inlined_sums, square_of
from scalemani.kernels.machine.vector_math import exp_nonpositive, log_positive

# Degrees of freedom of Student's kernel, whose limit is the Gaussian; and none. Any other positive number is Student's.
STUDENT, GAUSSIAN, EPANECHNIKOV = 1.0, np.inf, 0.0
KERNELS = {"student": STUDENT, "gaussian": GAUSSIAN, "epanechnikov": EPANECHNIKOV}
LEAST_SUM = 1e-300  # a sum that underflows, or that an approximation leaves below zero, counts as this where it divides

SOURCE_TILE = 512  # sources looked at together: with their distances and slopes they stay in the first-level cache
TARGET_PANEL = 1024
LEAST_SOURCES = 8192  # that a thread takes at a time where there is one panel of targets
FUSED_DIMENSIONS = 3  # up to here a pair is met in one loop, which keeps all of it in registers
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
    """A way to sum a kernel over pairs; `kernel` names it, `exact` says whether sums err by rounding alone."""

    kernel: str | float
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


class ApproximateSums(PairSums, Protocol):
    """Sums over pairs that a method adds, made for a tolerance or by a separate number."""

    @classmethod
    def for_tolerance(cls, kernel: str | float, tolerance: float, over: Mapper = map) -> PairSums:
        """Return sums whose gradient has a relative error of at most a tolerance."""
        ...

    @classmethod
    def by_number(cls, kernel: str | float, number: Any, tolerance: float) -> PairSums:
        """Return sums that a number decides, or raise ConfigError for what is no such number."""
        ...


def kernel_number(kernel: str | float, allowed: Collection[str] = tuple(KERNELS), of_any_dof: bool = False) -> float:
    """Return the number by which compiled code knows a kernel; raise ConfigError for one that is not `allowed`.

    `of_any_dof` says whether Student's kernel is summed with other degrees of freedom than one.
    """
    if isinstance(kernel, str) and kernel in allowed:
        return KERNELS[kernel]
    if isinstance(kernel, str) or not of_any_dof:
        raise ConfigError(f"kernel {kernel!r} cannot be summed by this method: {nearest_name(kernel, allowed)}")
    if not LEAST_DOF <= kernel <= MOST_DOF:
        raise ConfigError(f"degrees of freedom must be in [{LEAST_DOF}, {MOST_DOF:g}], got {kernel}")
    return float(kernel)


def family_of(kernel: str | float) -> str:
    """Return the name of a kernel, whatever its degrees of freedom."""
    return kernel if isinstance(kernel, str) else "student"


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

    The kernel is "student", 1 / (1 + d^2), "gaussian", exp(-d^2), "epanechnikov", max(1 - d^2, 0), or a number dof,
    (1 + d^2 / dof)^-dof; a ConfigError is raised for another one. Where the map function `over` runs side by side,
    panels of 1,024 targets do, and of fewer targets parts of the sources.
    """

    exact: ClassVar[bool] = True

    def __init__(self, kernel: str | float, over: Mapper = map) -> None:
        self.kernel, self.over = kernel, over
        self._kind = kernel_number(kernel, of_any_dof=True)

    def field(
        self,
        sources: np.ndarray,
        targets: np.ndarray | None = None,
        charges: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S and its gradient as `PairSums.field` does, with the same bits for any map function.

        `rows` (M,) of the sources may be the targets, in place of `targets`; each is left out of its sum. Shapes
        that do not fit, and both targets and rows, are a ConfigError. The sums of a target do not depend on others.
        """
        if rows is not None and targets is not None:
            raise ConfigError("field takes targets or rows of the sources, got both: leave one of them out")
        points, at, charges = pair_arguments(sources, targets, charges)
        if rows is not None:
            left_out = np.asarray(rows, np.int64)
            at = points[left_out]
        else:
            left_out = np.arange(len(at)) if targets is None else np.full(len(at), len(points))
        sums = self._summed(points, charges, at, left_out)
        return sums[:, 0].copy(), sums[:, 1:].copy()

    def _summed(self, points: np.ndarray, charges: np.ndarray, at: np.ndarray, left_out: np.ndarray) -> np.ndarray:
        """Return sums and gradients (M, 1 + d): those of parts of the sources, added in order."""
        parts, panels = row_panels(len(points), LEAST_SOURCES), slices(len(at), TARGET_PANEL)
        sums = np.zeros((len(at), 1 + points.shape[1]))

        def of_part(part: slice, panel: slice) -> np.ndarray:
            part_sums = np.empty_like(sums[panel])
            _exact_part(self._kind, points[part], charges[part], at[panel], left_out[panel] - part.start, part_sums)
            return part_sums

        def fill(panel: slice) -> None:
            for part in parts:
                sums[panel] += of_part(part, panel)

        if len(panels) > 1:
            run(self.over(fill, panels))
        else:
            for partial in self.over(lambda part: of_part(part, slice(None)), parts):
                sums += partial
        return sums


@compiled
def _exact_part(
    kind: float,
    points: np.ndarray,
    charges: np.ndarray,
    targets: np.ndarray,
    left_out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Fill `sums` (m, 1 + d) with the sums and gradients at targets (m, d); the source `left_out` (m,) adds nothing.

    That may be no row of the points (n, d). A tile of these is copied to columns, which missing axes leave at zero.
    """
    n_dims = points.shape[1]
    tile = np.zeros((max(n_dims, FUSED_DIMENSIONS), SOURCE_TILE))
    squared, slopes = np.empty(SOURCE_TILE), np.empty(SOURCE_TILE)
    sums[:] = 0.0
    for first in range(0, len(points), SOURCE_TILE):
        width = min(SOURCE_TILE, len(points) - first)
        for j in range(width):
            for k in range(n_dims):
                tile[k, j] = points[first + j, k]
        for i in range(len(targets)):
            skipped = left_out[i] - first
            for part in range(2):  # before and after the source that is left out; most tiles are all in one part
                begin = 0 if part == 0 else max(0, skipped + 1)
                end = min(width, skipped) if part == 0 else width
                if begin >= end:
                    continue
                part_charges = charges[first + begin : first + end]
                if n_dims <= FUSED_DIMENSIONS:
                    y = targets[i, 0], targets[i, 1] if n_dims > 1 else 0.0, targets[i, 2] if n_dims > 2 else 0.0
                    columns = tile[0, begin:end], tile[1, begin:end], tile[2, begin:end]
                    met = meet(kind, columns, y, part_charges)
                    for k in range(n_dims + 1):
                        sums[i, k] += met[k]
                    continue
                square_distances(tile, targets[i], begin, end, squared)
                sums[i, 0] += weigh(kind, squared, part_charges, slopes)
                for k in range(n_dims):
                    sums[i, k + 1] += SLOPE * moment(tile[k, begin:end], targets[i, k], slopes)


@inlined
def respond(kind: float, square: float) -> tuple[float, float]:
    """Return K and K' at one squared distance."""
    if kind == EPANECHNIKOV:
        return (1.0 - square, -1.0) if square < 1.0 else (0.0, 0.0)
    if kind == GAUSSIAN:
        value = exp_nonpositive(-square)
        return value, -value
    if kind == STUDENT:
        value = 1.0 / (1.0 + square)
        return value, -value * value
    base = 1.0 + square / kind
    value = exp_nonpositive(-kind * log_positive(base))
    return value, -value / base


def responses(kernel: str | float, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return K and K' (m,) of a kernel at squared distances (m,)."""
    values, slopes = np.empty(len(squares)), np.empty(len(squares))
    _respond_each(kernel_number(kernel, of_any_dof=True), np.ascontiguousarray(squares, np.float64), values, slopes)
    return values, slopes


@compiled
def _respond_each(kind: float, squares: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> None:
    for i in range(len(squares)):
        values[i], slopes[i] = respond(kind, squares[i])


@inlined_sums
def meet(
    kind: float, columns: tuple[np.ndarray, ...], target: tuple[float, float, float], charges: np.ndarray
) -> tuple[float, float, float, float]:
    """Return S and its gradient at a target, of points in columns (3 of (n,)) and their charges (n,)."""
    if kind == STUDENT:  # the number of a kernel is known where the loop is compiled, which then has no branches
        return _meet(STUDENT, columns, target, charges)
    if kind == GAUSSIAN:
        return _meet(GAUSSIAN, columns, target, charges)
    if kind == EPANECHNIKOV:
        return _meet(EPANECHNIKOV, columns, target, charges)
    return _meet(kind, columns, target, charges)


@inlined_sums
def _meet(
    kind: float, columns: tuple[np.ndarray, ...], target: tuple[float, float, float], charges: np.ndarray
) -> tuple[float, float, float, float]:
    (xs, ys, zs), (x, y, z) = columns, target
    total, along_x, along_y, along_z = 0.0, 0.0, 0.0, 0.0
    for j in range(np.uint64(len(charges))):
        dx, dy, dz = x - xs[j], y - ys[j], z - zs[j]
        value, slope = respond(kind, dx * dx + dy * dy + dz * dz)
        total += charges[j] * value
        slope *= charges[j]
        along_x += slope * dx
        along_y += slope * dy
        along_z += slope * dz
    return total, SLOPE * along_x, SLOPE * along_y, SLOPE * along_z


@inlined_sums
def derivatives(kind: float, square: float) -> tuple[float, float]:
    """Return -K' and K'' at one squared distance, for directions that need the Hessian."""
    if kind == GAUSSIAN:
        value = exp_nonpositive(-square)
        return value, value
    if kind == STUDENT:
        value = 1.0 / (1.0 + square)
        return value * value, 2.0 * value * value * value
    if kind == EPANECHNIKOV:
        return (1.0 if square < 1.0 else 0.0), 0.0
    base = 1.0 + square / kind
    slope = exp_nonpositive(-kind * log_positive(base)) / base
    return slope, (1.0 + 1.0 / kind) * slope / base


@inlined_sums
def square_distances(columns: np.ndarray, target: np.ndarray, begin: int, end: int, squared: np.ndarray) -> None:
    """Write the squared distances of a target (d,) to points columns[:, begin:end], of columns (d, N), to `squared`."""
    for k in range(len(columns)):
        column, y = columns[k, begin:end], target[k]
        for j in range(np.uint64(len(column))):
            squared[j] = (squared[j] if k > 0 else 0.0) + square_of(y - column[j])


@inlined_sums
def weigh(kind: float, squared: np.ndarray, charges: np.ndarray, slopes: np.ndarray) -> float:
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
    elif kind == EPANECHNIKOV:
        for j in range(np.uint64(len(charges))):
            inside = 1.0 if squared[j] < 1.0 else 0.0
            slopes[j] = -charges[j] * inside
            total += charges[j] * inside * (1.0 - squared[j])
    else:
        for j in range(np.uint64(len(charges))):
            base = 1.0 + squared[j] / kind
            response = charges[j] * exp_nonpositive(-kind * log_positive(base))
            slopes[j] = -response / base
            total += response
    return total


@inlined_sums
def moment(column: np.ndarray, y: float, slopes: np.ndarray) -> float:
    """Return sum_j slopes_j (y - x_j) over one coordinate of the points."""
    total = 0.0
    for j in range(np.uint64(len(column))):
        total += slopes[j] * (y - column[j])
    return total
