"""The fast Gauss transform in the plane and in space, with an error bound (thesis section 5.2.2).

Points are sorted into boxes of side sqrt(2) r, r = 1/2; a box acts on boxes up to `reach` away (the thesis' K). Where
they hold many points, sources become moments, moments are translated axis by axis into Taylor coefficients of the
boxes of targets, and those are evaluated; where they hold few, pairs are summed.

The thesis has four cases by whether a box of sources and one of targets hold at least 5 points, two of which evaluate
Hermite functions at single points (their conditions are printed the wrong way round). Separable translations made
once for all sources cost less than those two ever save, so a box of targets is treated as a whole: summed where it
meets fewer than 5 pairs per box in reach, and expanded otherwise.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.validation import check_count
from scalemani.errors import ConfigError
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.pair_sums import (
    GAUSSIAN,
    SLOPE,
    ApproximateSums,
    checked_tolerance,
    empty_field,
    kernel_number,
    moment,
    pair_arguments,
    square_distances,
    weigh,
)
from scalemani.methods.fast_gauss.kernels.boxes import (
    AXES,
    Boxed,
    Grid,
    grid_over,
    largest_offset,
    near_ranges,
    neighbors_along,
    sort_into_boxes,
    spread,
)
from scalemani.methods.fast_gauss.kernels.expansions import (
    CHUNK,
    WORK_ROWS,
    axis_errors,
    box_moments,
    evaluate,
    translate,
    translations,
    worst_errors,
)

HELD = 256  # points held before they are summed: with their distances they stay in the first-level cache


class Held(NamedTuple):
    """Up to HELD points: `columns` (d, HELD) and `charges` (HELD,)."""

    columns: np.ndarray
    charges: np.ndarray


@compiled
def empty_held(n_dims: int) -> Held:
    """Return room for HELD points in d dimensions."""
    return Held(np.zeros((n_dims, HELD)), np.zeros(HELD))


@compiled
def add_points(kind: int, held: Held, n_held: int, targets: np.ndarray, field: np.ndarray) -> int:
    """Add the field of the points that are held at some targets, and hold none.

    Parameters
    ----------
    held, n_held : the points, of which the first `n_held` count
    targets : (g, d) float64
    field : (g, d + 1) float64; gradient and S are added to it

    Returns
    -------
    0, how many points are held afterwards
    """
    n_dims = len(held.columns)
    squared, slopes = np.empty(HELD), np.empty(HELD)
    for i in range(len(targets)):
        square_distances(held.columns, targets[i], 0, n_held, squared)
        field[i, n_dims] += weigh(kind, squared, held.charges[:n_held], slopes)
        for k in range(n_dims):
            field[i, k] += SLOPE * moment(held.columns[k, :n_held], targets[i, k], slopes)
    return 0


@compiled
def add_mutual_field(kind: int, held: Held, targets: np.ndarray, charges: np.ndarray, field: np.ndarray) -> None:
    """Add the field of targets at each other: to itself, a point has no charge.

    Parameters
    ----------
    targets : (g, d) float64
    charges : (g,) float64
    field : (g, d + 1) float64; gradient and S are added to it
    """
    for first in range(0, len(targets), HELD):
        n_held = min(HELD, len(targets) - first)
        for j in range(n_held):
            for k in range(targets.shape[1]):
                held.columns[k, j] = targets[first + j, k]
            held.charges[j] = charges[first + j]
        for i in range(len(targets)):
            place = i - first if first <= i < first + n_held else n_held
            if place < n_held:
                held.charges[place] = 0.0
            add_points(kind, held, n_held, targets[i : i + 1], field[i : i + 1])
            if place < n_held:
                held.charges[place] = charges[i]


@compiled
def sum_boxes(  # noqa: PLR0913 - how LLVM associates sums depends on the functions that call them
    boxed: Boxed,
    charges: np.ndarray,
    target_boxed: Boxed,
    boxes: np.ndarray,
    ranges: np.ndarray,
    at_points: bool,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Write the field at the targets in some boxes as sums over pairs.

    Parameters
    ----------
    charges : (N,) float64, in that order
    boxes : (n,) int64, numbers of boxes of targets
    ranges : (n, rows, 2) int64, the points that are summed for each box: first, and the one behind the last
    sums : (M,) float64, S, of which the rows of these targets are written
    gradients : (M, d) float64, likewise
    """
    n_dims = gradients.shape[1]
    held, n_held = empty_held(n_dims), 0
    for b in range(len(boxes)):
        begin, end = target_boxed.starts[boxes[b]], target_boxed.starts[boxes[b] + 1]
        targets = target_boxed.points[begin:end]
        field = np.zeros((end - begin, n_dims + 1))
        for row in range(ranges.shape[1]):
            for j in range(ranges[b, row, 0], ranges[b, row, 1]):
                if at_points and begin <= j < end:
                    continue
                for k in range(n_dims):
                    held.columns[k, n_held] = boxed.points[j, k]
                held.charges[n_held] = charges[j]
                n_held += 1
                if n_held == HELD:
                    n_held = add_points(GAUSSIAN, held, n_held, targets, field)
        n_held = add_points(GAUSSIAN, held, n_held, targets, field)
        if at_points:
            add_mutual_field(GAUSSIAN, held, targets, charges[begin:end], field)
        for i in range(begin, end):
            row_of = target_boxed.order[i]
            sums[row_of] = field[i - begin, n_dims]
            for k in range(n_dims):
                gradients[row_of, k] = field[i - begin, k]


@compiled
def evaluate_boxes(
    target_boxed: Boxed,
    boxes: np.ndarray,
    coefficients: np.ndarray,
    charges: np.ndarray,
    at_points: bool,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Write the field at the targets in some boxes from Taylor coefficients.

    Parameters
    ----------
    boxes : (n,) int64, numbers of boxes of targets
    coefficients : (n, n0, n1, n2) float64, of each of these
    charges : (M,) float64, in the order of the boxes
    at_points : whether the targets are the points: what a point is to itself, its charge, is taken away
    sums, gradients : those of `sum_boxes`
    """
    n_dims = gradients.shape[1]
    field = np.empty((WORK_ROWS, CHUNK))
    for b in range(len(boxes)):
        end, center = target_boxed.starts[boxes[b] + 1], target_boxed.centers[boxes[b]]
        for begin in range(target_boxed.starts[boxes[b]], end, CHUNK):
            stop = min(begin + CHUNK, end)
            evaluate(coefficients[b], target_boxed.points, np.uint64(begin), np.uint64(stop - begin), center, field)
            for i in range(begin, stop):
                row = target_boxed.order[i]
                sums[row] = field[AXES, i - begin] - (charges[i] if at_points else 0.0)
                for k in range(n_dims):
                    gradients[row, k] = field[AXES - n_dims + k, i - begin]


BOX_RATIO = 0.5  # r
FEW_PAIRS = 5
ORDERS = range(1, 31)
REACHES = range(1, 13)
DIMENSIONS = (1, 2, 3)
BOXES_PER_PANEL = 512
BOUND_MARGIN = 4  # exp(-8^2 / 2) = 1e-14 is left beyond the boxes that the bound looks at, with a reach of 4
MARGIN = 2.0
ORDER_ERRORS = {
    2: 0.35, 3: 0.06, 4: 0.014, 5: 2.9e-3, 6: 3.8e-4, 7: 1e-4, 8: 9.3e-6, 9: 2.7e-6, 10: 2.1e-7,
    12: 4.1e-9, 14: 7.0e-11, 16: 1.1e-12,
}  # fmt: skip  # relative errors of the gradient as measured for `for_tolerance`, with a reach that adds nothing
REACH_ERROR = 1.8  # times exp(-reach^2 / 2): the same, of the reach
ROUNDING = 1e-13  # of the sum of |q|: what float64 may add to the errors of truncation


class FastGauss(ApproximateSums):
    """Sums of exp(-d^2) over pairs by the fast Gauss transform, O(N + M).

    Parameters
    ----------
    order : p, moments along each axis, 1 to 30; 1 to 10 in the thesis.
    reach : boxes on each side that a box acts on, the thesis' K. Beyond, exp(-reach^2 / 2) is left out: 3e-4 for 4.
    few_pairs : a box of targets with fewer pairs for each box in reach is summed pair by pair.
    over : a map function with the signature of the builtin; panels of boxes run side by side where it does.

    Raises
    ------
    ConfigError
        A number outside of these ranges.
    """

    def __init__(self, order: int, reach: int = 4, few_pairs: int = FEW_PAIRS, over: Mapper = map) -> None:
        if order not in ORDERS or reach not in REACHES or few_pairs < 0:
            raise ConfigError(
                f"fgt takes order 1 to {ORDERS[-1]}, reach 1 to {REACHES[-1]} and few_pairs >= 0, "
                f"not {order}, {reach} and {few_pairs}"
            )
        self.kernel, self.order, self.reach, self.few_pairs, self.over = "gaussian", order, reach, few_pairs, over

    @classmethod
    def by_number(cls, kernel: str | float, number: Any, tolerance: float) -> "FastGauss":
        """Return the transform of an order, the number, or of the one that a tolerance takes; it decides the reach."""
        chosen = cls.for_tolerance(kernel, tolerance)
        return chosen if number is None else cls(check_count(number, "order", 1, ORDERS[-1]), chosen.reach)

    @classmethod
    def for_tolerance(cls, kernel: str | float, tolerance: float, over: Mapper = map) -> "FastGauss":
        """Return the transform whose gradient has a relative error of at most `tolerance` on embeddings.

        That is the norm of all errors over that of the gradient, by measurement and with a margin of 2: the largest
        error on maps (clusters, strings, discs, blobs) of 3,000 and 40,000 points, extents 1e-4 to 100, d = 2 and 3.

        Raises
        ------
        ConfigError
            Another kernel than "gaussian", or a tolerance that cannot be reached.
        """
        kernel_number(kernel, ("gaussian",))
        wanted = checked_tolerance(tolerance) / MARGIN
        orders = [order for order, error in ORDER_ERRORS.items() if error <= wanted]
        if not orders:
            least = MARGIN * min(ORDER_ERRORS.values())
            raise ConfigError(f"fgt reaches a tolerance of {least:.0e}, not {tolerance:.3g}: take the method 'exact'")
        reach = next(reach for reach in REACHES if REACH_ERROR * math.exp(-0.5 * reach**2) <= wanted)
        return cls(orders[0], reach, over=over)

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S(y) and its gradient with the arguments and shapes of `ExactSums.field`, d <= 3.

        Raises
        ------
        ConfigError
            Points in more dimensions, or so far apart that their boxes cannot be numbered.
        """
        points, at, weights = pair_arguments(sources, targets, charges)
        at_points = targets is None
        grid, boxed, target_boxed = self._boxed(points, at, at_points, self.reach)
        weights = weights if charges is None else weights[boxed.order]
        field = empty_field(at)
        direct = self._direct(grid, boxed, target_boxed)
        summed, expanded = np.flatnonzero(direct), np.flatnonzero(~direct)

        def sum_pairs(panel: slice) -> None:
            ranges = self._ranges(grid, boxed, target_boxed.keys[summed[panel]])
            sum_boxes(boxed, weights, target_boxed, summed[panel], ranges, at_points, *field)

        run(self.over(sum_pairs, slices(len(summed), BOXES_PER_PANEL)))
        if len(expanded):
            coefficients = self._coefficients(grid, boxed, weights, target_boxed.keys[expanded])

            def part(panel: slice) -> None:
                evaluate_boxes(target_boxed, expanded[panel], coefficients[panel], weights, at_points, *field)

            run(self.over(part, slices(len(expanded), BOXES_PER_PANEL)))
        return field

    def bound(self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None) -> float:
        """Return a number that no |S - S_exact| of `field` exceeds, known before anything is summed."""
        return self.bounds(sources, targets, charges)[0]

    def bounds(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[float, float]:
        """Return numbers that no |S - S_exact| and no |grad S - grad S_exact| of `field` exceeds.

        Every box of targets is held against every box of sources up to `reach` + 4 boxes away, and all further
        sources count as just beyond; what float64 rounds is 1e-13 of the sum of |q| at most.
        """
        points, at, weights = pair_arguments(sources, targets, charges)
        if not len(points) or not len(at):
            return 0.0, 0.0
        grid, boxed, target_boxed = self._boxed(points, at, targets is None, self.reach)
        summed = self._direct(grid, boxed, target_boxed)
        wide = self.reach + BOUND_MARGIN
        grid, boxed, target_boxed = self._boxed(points, at, targets is None, wide)
        sizes = np.add.reduceat(np.abs(weights[boxed.order]), boxed.starts[:-1])
        worst = worst_errors(
            axis_errors(self.order, wide + 1, grid.side, max(map(largest_offset, (boxed, target_boxed)))),
            self.reach,
            target_boxed.keys,
            summed,
            boxed.keys,
            sizes,
            grid,
        )
        rounding = ROUNDING * float(sizes.sum())
        return worst[0] + rounding, worst[1] + rounding

    def _boxed(self, points: np.ndarray, at: np.ndarray, at_points: bool, reach: int) -> tuple[Grid, Boxed, Boxed]:
        if points.shape[1] not in DIMENSIONS:
            raise ConfigError(f"fgt sums in 1 to 3 dimensions, not {points.shape[1]}: take the method 'exact'")
        grid = grid_over([points, at], math.sqrt(2.0) * BOX_RATIO, reach)
        boxed = sort_into_boxes(points, grid)
        return grid, boxed, boxed if at_points else sort_into_boxes(at, grid)

    def _ranges(self, grid: Grid, boxed: Boxed, keys: np.ndarray) -> np.ndarray:
        return near_ranges(keys, boxed.keys, boxed.starts, grid.strides, grid.reaches)

    def _direct(self, grid: Grid, boxed: Boxed, target_boxed: Boxed) -> np.ndarray:
        """Return which boxes of targets meet too few pairs to be expanded."""
        keys, most = target_boxed.keys, self.few_pairs * np.prod(2 * grid.reaches + 1)
        direct = np.empty(len(keys), bool)

        def part(panel: slice) -> None:
            ranges = self._ranges(grid, boxed, keys[panel])
            reached = (ranges[:, :, 1] - ranges[:, :, 0]).sum(axis=1)
            direct[panel] = reached * np.diff(target_boxed.starts)[panel] < most

        run(self.over(part, slices(len(keys), BOXES_PER_PANEL)))
        return direct

    def _coefficients(self, grid: Grid, boxed: Boxed, weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the Taylor coefficients (n, n0, n1, n2) of the boxes of targets with these keys."""
        axes = np.flatnonzero(grid.reaches)
        wanted = [keys]
        for axis in axes[:-1]:
            wanted.append(spread(wanted[-1], grid.strides[axis], self.reach))
        factors = translations(self.order, grid.side, self.reach)
        sources = neighbors_along(wanted[-1], boxed.keys, 1, self.reach)
        used = np.zeros(len(boxed.keys), bool)
        used[sources[sources >= 0]] = True
        known, values = boxed.keys[used], self._moments(grid, boxed, weights, np.flatnonzero(used))
        for axis in axes[::-1]:
            sources = neighbors_along(wanted[-1], known, grid.strides[axis], self.reach)
            met = (sources >= 0).any(axis=1) | (len(wanted) == 1)
            known = wanted.pop()[met]
            values = self._translated(values, sources[met], factors)
        return values.reshape(len(values), *(self.order + 1 if reach else 1 for reach in grid.reaches))

    def _moments(self, grid: Grid, boxed: Boxed, weights: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        moments = np.empty((len(boxes), *(self.order if reach else 1 for reach in grid.reaches)))

        def part(panel: slice) -> None:
            box_moments(boxed, weights, boxes[panel], moments[panel])

        run(self.over(part, slices(len(boxes), BOXES_PER_PANEL)))
        return moments

    def _translated(self, moments: np.ndarray, sources: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return the moments (m, i, j, k) as coefficients (n, order + 1, i, j) of the boxes that see `sources`."""
        _, i, j, k = moments.shape
        parted, out = moments.reshape(len(moments), i * j, k), np.empty((len(sources), self.order + 1, i * j))

        def part(panel: slice) -> None:
            translate(parted, sources[panel], factors, out[panel])

        run(self.over(part, slices(len(sources), BOXES_PER_PANEL)))
        return out.reshape(len(sources), self.order + 1, i, j)
