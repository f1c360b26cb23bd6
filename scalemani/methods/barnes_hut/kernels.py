"""The method of Barnes and Hut in the plane and in space: far cells act as one point (thesis section 5.2.1).

A cell of size l at distance D acts through its charge at its centre of mass where l < theta D. One walk over the tree
serves a group of neighbouring targets, with D counted from the nearest point of the box around them, so every target
sees at least what a separate walk would give; what the walk collects is summed with vector instructions.

Trees are flat arrays in preorder: no recursion, no pointers but the one that skips a subtree. Points are in Morton
order, a curve through the cells of all levels at once, so that every cell is a range of rows.

A cell with charge Q and second moments M about its centre of charge c has, with r = y - c and s = |r|^2,
S = Q K(s) + tr(M) K'(s) + 2 (r^T M r) K''(s) up to its third moments: there is no first moment about c. Its gradient is
(2 Q K' + 2 tr(M) K'' + 4 (r^T M r) K^(3)) r + 4 K'' M r. For K = exp(-s) every derivative is +-K; for K = 1 / (1 + s)
they are -K^2, 2 K^3 and -6 K^4.

The loops run over the targets, always all lanes of a group: no remainders, and nothing to add up across lanes. Targets
and results are parts of one array at fixed places, so that the compiler sees that they do not overlap. There are
always three axes: a plane lies at zero along the third.

References
----------
G. M. Morton. A computer oriented geodetic data base and a new technique in file sequencing. IBM, 1966.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.coordinates import extremes
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled, inlined_sums, square_of
from scalemani.kernels.machine.vector_math import exp_nonpositive
from scalemani.kernels.repulsion.pair_sums import (
    GAUSSIAN,
    STUDENT,
    ApproximateSums,
    checked_tolerance,
    kernel_number,
    pair_arguments,
)

LEVELS = {2: 31, 3: 21}  # halvings of the root cell that fit into the 63 bits of a key


def morton_order(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort points along the Morton curve of the smallest cube that holds them.

    Parameters
    ----------
    points : (N, d) float64, C-contiguous, finite, d = 2 or 3

    Returns
    -------
    keys : (N,) uint64, ascending; points in one cell of the last level share a key
    rows : (N,) int64, the rows of the points in that order
    """
    if not len(points):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    low, high = extremes(points)
    keys = np.empty(len(points), np.uint64)
    _write_keys(points, low, float((high - low).max()), LEVELS[points.shape[1]], keys)
    order = np.argsort(keys)
    return keys[order], order


@compiled
def _write_keys(points: np.ndarray, low: np.ndarray, side: float, levels: int, keys: np.ndarray) -> None:
    cells, n_dims = 2.0**levels, points.shape[1]
    for i in range(len(points)):
        key = np.uint64(0)
        for k in range(n_dims):
            share = (points[i, k] - low[k]) / side if side > 0.0 else 0.0
            cell = np.uint64(min(share * cells, cells - 1.0))
            for level in range(levels):
                key |= ((cell >> np.uint64(level)) & np.uint64(1)) << np.uint64(level * n_dims + k)
        keys[i] = key


BITS = 64
HIGHEST_DIGIT = np.uint64(60)  # the place in a key of a point's cell on the first level, with two axes or three
MERGED = 4
CACHE_LINE = 8  # float64 numbers
AXES = 3  # of cells: a plane lies at zero along the third
CHARGE, SIZE = 0, 1  # the columns of `totals`


class CellTree(NamedTuple):
    """Points in Morton order, and the cells over them, n of them, each before its children.

    A cell with one occupied child is left out for that child, so there are fewer cells than points and no more levels
    than a Morton key has. A leaf holds at most `leaf_points` points, or points that share a key.

    Attributes
    ----------
    order : (N,) row of the input that each point is.
    columns : (d, N) coordinates.
    charges : (N,) of one sign.
    centers : (n, 3) of charge.
    totals : (n, 2): the sum of the charges, and the size: the longest side of the box around the points.
    moments : (n, 6): sum q (x - c)_k (x - c)_l for k >= l, row by row.
    first, last : (n,) its points are columns[:, first:last].
    skip : (n,) the next cell in preorder that does not lie in this one; node + 1 for a leaf.
    """

    order: np.ndarray
    columns: np.ndarray
    charges: np.ndarray
    centers: np.ndarray
    totals: np.ndarray
    moments: np.ndarray
    first: np.ndarray
    last: np.ndarray
    skip: np.ndarray


def build_tree(points: np.ndarray, charges: np.ndarray, leaf_points: int) -> CellTree:
    """Return the tree over points (N, d), d = 2 or 3, with charges (N,) none of which differ in sign."""
    keys, order = morton_order(points)
    columns, charges = np.ascontiguousarray(points[order].T), charges[order]
    first, last = _split(keys, len(columns), leaf_points)
    nodes = np.zeros((len(first), CACHE_LINE))  # what a walk asks of a cell is in one place
    skip = np.searchsorted(first, last)  # cells in preorder begin where those before them do, or later
    moments = np.zeros((len(first), AXES * (AXES + 1) // 2))
    tree = CellTree(order, columns, charges, nodes[:, :AXES], nodes[:, AXES : AXES + 2], moments, first, last, skip)
    _weigh(tree)
    return tree


@compiled
def cover(tree: CellTree, most: int) -> np.ndarray:
    """Return ranges (g, 2) that hold every point once, at most `most` each.

    The largest cells of at most MERGED times that many points are cut into parts of equal length, which leaves fewer
    short ranges than the largest cells that are short enough.
    """
    ranges, n_ranges, node = np.empty((len(tree.order), 2), np.int64), 0, 0
    while node < len(tree.skip):
        first, count = tree.first[node], tree.last[node] - tree.first[node]
        if count > MERGED * most and tree.skip[node] > node + 1:
            node += 1
            continue
        n_parts = (count + most - 1) // most
        for part in range(n_parts):
            ranges[n_ranges, 0] = first + part * count // n_parts
            ranges[n_ranges, 1] = first + (part + 1) * count // n_parts
            n_ranges += 1
        node = tree.skip[node]
    return ranges[:n_ranges].copy()


@compiled
def _split(keys: np.ndarray, n_dims: int, leaf_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first point of each cell and the one behind its last, in preorder."""
    capacity = 2 * len(keys)
    first, last = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    stack = np.empty((BITS << n_dims, 2), np.int64)
    stack[0] = 0, len(keys)
    n_nodes, n_open = 0, 1 if len(keys) else 0
    while n_open:
        n_open -= 1
        begin, end = stack[n_open]
        first[n_nodes], last[n_nodes] = begin, end
        n_nodes += 1
        if end - begin <= leaf_points or keys[begin] == keys[end - 1]:
            continue
        shift = HIGHEST_DIGIT
        while keys[begin] >> shift == keys[end - 1] >> shift:
            shift -= np.uint64(n_dims)
        stop = end
        while stop > begin:  # the last child first: the first one is then popped first
            start = begin + np.searchsorted(keys[begin:stop], (keys[stop - 1] >> shift) << shift)
            stack[n_open] = start, stop
            n_open += 1
            stop = start
    return first[:n_nodes].copy(), last[:n_nodes].copy()


@compiled
def _weigh(tree: CellTree) -> None:
    """Write `centers`, `totals` and `moments` of each cell, from its points.

    A cell without any charge has the middle of its box as its centre.
    """
    columns, charges, n_dims = tree.columns, tree.charges, len(tree.columns)
    for node in range(len(tree.first)):
        points, center, moments = range(tree.first[node], tree.last[node]), tree.centers[node], tree.moments[node]
        total, size, entry = charges[tree.first[node] : tree.last[node]].sum(), 0.0, 0
        for k in range(n_dims):
            low, high, weighted = np.inf, -np.inf, 0.0
            for i in points:
                low, high = min(low, columns[k, i]), max(high, columns[k, i])
                weighted += charges[i] * columns[k, i]
            middle = weighted / total if total != 0.0 else 0.5 * (low + high)
            center[k], size = min(max(middle, low), high), max(size, high - low)
            for l in range(k + 1):
                for i in points:
                    moments[entry] += charges[i] * (columns[k, i] - center[k]) * (columns[l, i] - center[l])
                entry += 1
        tree.totals[node, CHARGE], tree.totals[node, SIZE] = total, size


GROUP_POINTS = 32  # targets of a group
STATE_SIZE = 7 * GROUP_POINTS  # three coordinates of the targets, three of the gradient, and S
GRADIENT, SUM = 3 * GROUP_POINTS, 6 * GROUP_POINTS
_LANES = np.uint64(GROUP_POINTS)
_X, _Y, _Z, _G0, _G1, _G2, _S = (np.uint64(i * GROUP_POINTS) for i in range(7))


@inlined_sums
def add_point(kind: int, place: np.ndarray, charge: float, state: np.ndarray) -> None:
    """Add the field of a point to the state of a group.

    Parameters
    ----------
    place : (3,) float64
    state : (STATE_SIZE,) float64, coordinates of the targets, gradient and S
    """
    x, y, z = place[0], place[1], place[2]
    for j in range(_LANES):
        u, v, w = state[_X + j] - x, state[_Y + j] - y, state[_Z + j] - z
        squared = u * u + v * v + w * w
        response = 1.0 / (1.0 + squared) if kind == STUDENT else exp_nonpositive(-squared)
        strength = charge * response
        slope = -2.0 * strength * (response if kind == STUDENT else 1.0)
        state[_G0 + j] += slope * u
        state[_G1 + j] += slope * v
        state[_G2 + j] += slope * w
        state[_S + j] += strength


@inlined_sums
def add_cell(kind: int, center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    """Add the field of a cell to the state of a group.

    Parameters
    ----------
    kind, charge, state : those of `add_point`, of all points in the cell together
    center : (3,) float64, of the charge
    moments : (6,) float64, second moments about it, row by row of the lower triangle
    """
    x, y, z = center[0], center[1], center[2]
    m00, m01, m11, m02, m12, m22 = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    trace = m00 + m11 + m22
    net = charge - trace
    for j in range(_LANES):
        u, v, w = state[_X + j] - x, state[_Y + j] - y, state[_Z + j] - z
        p, q, r = m00 * u + m01 * v + m02 * w, m01 * u + m11 * v + m12 * w, m02 * u + m12 * v + m22 * w
        stretched, squared = 2.0 * (u * p + v * q + w * r), u * u + v * v + w * w
        if kind == STUDENT:
            response = 1.0 / (1.0 + squared)
            square, bend = response * response, 2.0 * response * stretched
            strength = charge * response - square * (trace - bend)
            radial = -2.0 * square * (charge - response * (2.0 * trace - 3.0 * bend))
            bent = 8.0 * square * response
        else:
            response = exp_nonpositive(-squared)
            strength = response * (net + stretched)
            radial, bent = -2.0 * strength, 4.0 * response
        state[_S + j] += strength
        state[_G0 + j] += radial * u + bent * p
        state[_G1 + j] += radial * v + bent * q
        state[_G2 + j] += radial * w + bent * r


LEAF_POINTS = 12
GROUPS_PER_PANEL = 128
NEGLIGIBLE = 30.0  # exp(-30) = 1e-13 of what a charge is worth nearby: beyond, cells are left out unless theta is 0
MARGIN = 2.0
THETA_ERRORS = {  # theta and the relative error of the gradient as measured for `for_tolerance`
    "student": (
        (0.12, 1.5e-5), (0.18, 6.6e-5), (0.25, 2e-4), (0.35, 7.2e-4), (0.5, 2.9e-3), (0.7, 9.6e-3), (1.0, 4.1e-2),
    ),
    "gaussian": (
        (0.12, 4.4e-5), (0.18, 2.7e-4), (0.25, 6.8e-4), (0.35, 2.3e-3), (0.5, 6.2e-3), (0.7, 3.1e-2), (1.0, 0.15),
    ),
}  # fmt: skip
DIMENSIONS = (2, 3)


class BarnesHut(ApproximateSums):
    """Sums over pairs by a tree, O(N log N).

    Parameters
    ----------
    kernel : "student" 1 / (1 + d^2) or "gaussian" exp(-d^2).
    theta : size over distance below which a cell acts as one point, in [0, 2]; 0 sums every pair.
    over : a map function with the signature of the builtin; groups of targets run side by side where it does.

    Raises
    ------
    ConfigError
        Another kernel or theta.
    """

    def __init__(self, kernel: str | float, theta: float, over: Mapper = map) -> None:
        self.kernel, self.theta, self.over = kernel, float(theta), over
        self._kind = kernel_number(kernel, tuple(THETA_ERRORS))
        if not 0.0 <= theta <= 2.0:
            raise ConfigError(f"theta must be in [0, 2] (size of a cell over its distance), not {theta}")

    @classmethod
    def by_number(cls, kernel: str | float, number: Any, tolerance: float) -> "BarnesHut":
        """Return the sums of a kernel that open cells of an extent above theta, the number, times their distance."""
        if isinstance(number, bool) or not isinstance(number, Real):
            raise ConfigError(f"theta must be a number in [0, 2], got {number!r}")
        return cls(kernel, float(number))

    @classmethod
    def for_tolerance(cls, kernel: str | float, tolerance: float, over: Mapper = map) -> "BarnesHut":
        """Return the sums whose gradient has a relative error of at most `tolerance` on embeddings.

        That is the norm of all errors over that of the gradient, by measurement and with a margin of 2: the largest
        error on maps (blobs, discs, squares, tight clusters) of 3,000 and 40,000 points, extents 1 to 300 (the
        Gaussian to 100), d = 2 and 3; between the angles measured it grows like a power of theta.

        Raises
        ------
        ConfigError
            Another kernel, or a tolerance that asks for so small a theta that the tree saves nothing.
        """
        kernel_number(kernel, tuple(THETA_ERRORS))
        wanted, (thetas, errors) = checked_tolerance(tolerance) / MARGIN, np.transpose(THETA_ERRORS[str(kernel)])
        if wanted < errors[0]:
            other = "'fgt' or 'exact'" if kernel == "gaussian" else "'grid' or 'exact'"
            least = MARGIN * errors[0]
            raise ConfigError(
                f"barnes-hut reaches a tolerance of {least:.0e} for the {kernel} kernel, not {tolerance:.3g}: "
                f"take the method {other}"
            )
        theta = np.exp(np.interp(np.log(wanted), np.log(errors), np.log(thetas)))
        return cls(kernel, float(theta), over)

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return S(y) and its gradient with the arguments and shapes of `ExactSums.field`, d = 2 or 3.

        Charges of both signs in one cell act as their sum, at the centre of their absolute values.

        Raises
        ------
        ConfigError
            Points in another number of dimensions.
        """
        points, at, charges = pair_arguments(sources, targets, charges)
        if points.shape[1] not in DIMENSIONS:
            raise ConfigError(f"barnes-hut sums in 2 or 3 dimensions, not {points.shape[1]}: take the method 'exact'")
        if np.any(charges > 0.0) and np.any(charges < 0.0):
            positive = self._of_one_sign(points, at, np.maximum(charges, 0.0), targets is None)
            negative = self._of_one_sign(points, at, np.maximum(-charges, 0.0), targets is None)
            return positive[0] - negative[0], positive[1] - negative[1]
        return self._of_one_sign(points, at, charges, targets is None)

    def _of_one_sign(
        self, points: np.ndarray, at: np.ndarray, charges: np.ndarray, at_points: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        tree = build_tree(points, charges, LEAF_POINTS)
        target_tree = tree if at_points else build_tree(at, np.ones(len(at)), GROUP_POINTS)
        groups = cover(target_tree, GROUP_POINTS)
        sums, gradients = np.empty(len(at)), np.empty(at.shape)

        def part(panel: slice) -> None:
            _sum_groups(self._kind, self.theta, tree, target_tree, groups[panel], at_points, sums, gradients)

        run(self.over(part, slices(len(groups), GROUPS_PER_PANEL)))
        return sums, gradients


@compiled
def _sum_groups(  # noqa: PLR0913 - how LLVM associates sums depends on the functions that call them
    kind: int,
    theta: float,
    tree: CellTree,
    target_tree: CellTree,
    groups: np.ndarray,
    at_points: bool,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Fill the rows of `sums` and `gradients` that belong to the targets of the groups (g, 2)."""
    n_dims = len(tree.columns)
    state, box = np.zeros(STATE_SIZE), np.zeros((2, AXES))
    for g in range(len(groups)):
        begin, end = groups[g]
        state[GRADIENT:] = 0.0
        for k in range(n_dims):
            members = target_tree.columns[k, begin:end]
            box[0, k], box[1, k] = members.min(), members.max()
            lane = k * GROUP_POINTS
            state[lane : lane + end - begin] = members
            state[lane + end - begin : lane + GROUP_POINTS] = members[0]
        excluded = (begin, end) if at_points else (0, 0)
        _walk(kind, theta, tree, box, excluded, state)
        if at_points:
            _add_mutual_field(kind, tree, excluded, state)
        for i in range(begin, end):
            row, lane = target_tree.order[i], i - begin
            sums[row] = state[SUM + lane]
            for k in range(n_dims):
                gradients[row, k] = state[GRADIENT + k * GROUP_POINTS + lane]


@compiled
def _walk(
    kind: int,
    theta: float,
    tree: CellTree,
    box: np.ndarray,
    excluded: tuple[int, int],
    state: np.ndarray,
) -> None:
    """Add the field of the tree but for its points `excluded` to the state of targets that lie in `box` (2, 3)."""
    n_dims, node = len(tree.columns), 0
    reach = np.sqrt(NEGLIGIBLE) if kind == GAUSSIAN and theta > 0.0 else np.inf
    place = np.zeros(AXES)
    while node < len(tree.skip):
        squared = 0.0
        for k in range(AXES):
            center = tree.centers[node, k]
            squared += square_of(max(box[0, k] - center, center - box[1, k], 0.0))
        charge, size, first, last = (
            tree.totals[node, CHARGE],
            tree.totals[node, SIZE],
            tree.first[node],
            tree.last[node],
        )
        meets_excluded = first < excluded[1] and last > excluded[0]
        if squared > square_of(reach + size * np.sqrt(n_dims)):
            node = tree.skip[node]
        elif size == 0.0:  # coincident points, however many, act as one without an error
            if meets_excluded:
                charge -= tree.charges[max(first, excluded[0]) : min(last, excluded[1])].sum()
            add_point(kind, tree.centers[node], charge, state)
            node = tree.skip[node]
        elif size * size < theta * theta * squared and not meets_excluded:
            add_cell(kind, tree.centers[node], charge, tree.moments[node], state)
            node = tree.skip[node]
        elif tree.skip[node] > node + 1:
            node += 1
        else:
            for i in range(first, last):
                if i < excluded[0] or i >= excluded[1]:
                    for k in range(n_dims):
                        place[k] = tree.columns[k, i]
                    add_point(kind, place, tree.charges[i], state)
            node += 1


@compiled
def _add_mutual_field(kind: int, tree: CellTree, group: tuple[int, int], state: np.ndarray) -> None:
    """Add the field of the targets at each other; what a point would be to itself is undone bit for bit."""
    place, lanes = np.zeros(AXES), np.arange(GRADIENT, SUM + 1, GROUP_POINTS)
    for i in range(group[0], group[1]):
        for k in range(len(tree.columns)):
            place[k] = tree.columns[k, i]
        before = state[lanes + i - group[0]]
        add_point(kind, place, tree.charges[i], state)
        state[lanes + i - group[0]] = before
