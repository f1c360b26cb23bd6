"""The method of Barnes and Hut in the plane and in space: far cells act as one point (thesis section 5.2.1).

A cell of size l at distance D acts through its charge at its centre of mass where l < theta D. One walk over the tree
serves a group of neighbouring targets, with D counted from the nearest point of the box around them, so every target
sees at least what a walk of its own would give; what the walk collects is summed with vector instructions.

The field of one point or one cell at a group of targets: what a tree walk adds, with vector instructions.

A cell with charge Q and second moments M about its centre of charge c has, with r = y - c and s = |r|^2,
S = Q K(s) + tr(M) K'(s) + 2 (r^T M r) K''(s) up to its third moments: there is no first moment about c. Its gradient is
(2 Q K' + 2 tr(M) K'' + 4 (r^T M r) K^(3)) r + 4 K'' M r. For K = exp(-s) every derivative is +-K; for K = 1 / (1 + s)
they are -K^2, 2 K^3 and -6 K^4.

The loops run over the targets, always all lanes of a group: no remainders, and nothing to add up across lanes. Targets
and results are parts of one array at fixed places, so that the compiler sees that they do not overlap. There are
always three axes: a plane lies at zero along the third.
"""

from numbers import Real
from typing import Any

import numpy as np

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled, inlined_sums, square_of
from scalemani.kernels.machine.vector_math import exp_nonpositive
from scalemani.kernels.repulsion.pair_sums import (
    GAUSSIAN,
    STUDENT,
    PairSums,
    checked_tolerance,
    kernel_number,
    pair_arguments,
)
from scalemani.methods.barnes_hut.kernels.cell_tree import AXES, CHARGE, SIZE, CellTree, build_tree, cover

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


class BarnesHut(PairSums):
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

    def __init__(self, kernel: str, theta: float, over: Mapper = map) -> None:
        self.kernel, self.theta, self.over = kernel, float(theta), over
        self._kind = kernel_number(kernel, tuple(THETA_ERRORS))
        if not 0.0 <= theta <= 2.0:
            raise ConfigError(f"theta must be in [0, 2] (size of a cell over its distance), not {theta}")

    @classmethod
    def for_tolerance(cls, kernel: str, tolerance: float, over: Mapper = map) -> "BarnesHut":
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
        wanted, (thetas, errors) = checked_tolerance(tolerance) / MARGIN, np.transpose(THETA_ERRORS[kernel])
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
        self, points: np.ndarray, at: np.ndarray, charges: np.ndarray, own: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        tree = build_tree(points, charges, LEAF_POINTS)
        target_tree = tree if own else build_tree(at, np.ones(len(at)), GROUP_POINTS)
        groups = cover(target_tree, GROUP_POINTS)
        sums, gradients = np.empty(len(at)), np.empty(at.shape)

        def part(panel: slice) -> None:
            _sum_groups(self._kind, self.theta, tree, target_tree, groups[panel], own, sums, gradients)

        run(self.over(part, slices(len(groups), GROUPS_PER_PANEL)))
        return sums, gradients


@compiled
def _sum_groups(  # noqa: PLR0913 - how LLVM associates sums depends on the functions that call them
    kind: int,
    theta: float,
    tree: CellTree,
    target_tree: CellTree,
    groups: np.ndarray,
    own: bool,
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
        excluded = (begin, end) if own else (0, 0)
        _walk(kind, theta, tree, box, excluded, state)
        if own:
            _add_own(kind, tree, excluded, state)
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
    own: tuple[int, int],
    state: np.ndarray,
) -> None:
    """Add the field of the tree but for its points `own` to the state of targets that lie in `box` (2, 3)."""
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
        meets_own = first < own[1] and last > own[0]
        if squared > square_of(reach + size * np.sqrt(n_dims)):
            node = tree.skip[node]
        elif size == 0.0:  # coincident points, however many, act as one without an error
            if meets_own:
                charge -= tree.charges[max(first, own[0]) : min(last, own[1])].sum()
            add_point(kind, tree.centers[node], charge, state)
            node = tree.skip[node]
        elif size * size < theta * theta * squared and not meets_own:
            add_cell(kind, tree.centers[node], charge, tree.moments[node], state)
            node = tree.skip[node]
        elif tree.skip[node] > node + 1:
            node += 1
        else:
            for i in range(first, last):
                if i < own[0] or i >= own[1]:
                    for k in range(n_dims):
                        place[k] = tree.columns[k, i]
                    add_point(kind, place, tree.charges[i], state)
            node += 1


@compiled
def _add_own(kind: int, tree: CellTree, own: tuple[int, int], state: np.ndarray) -> None:
    """Add the field of the targets at each other; what a point would be to itself is undone bit for bit."""
    place, lanes = np.zeros(AXES), np.arange(GRADIENT, SUM + 1, GROUP_POINTS)
    for i in range(own[0], own[1]):
        for k in range(len(tree.columns)):
            place[k] = tree.columns[k, i]
        before = state[lanes + i - own[0]]
        add_point(kind, place, tree.charges[i], state)
        state[lanes + i - own[0]] = before


def tree_sums(kernel: str, theta: Any, tolerance: float) -> BarnesHut:
    """Return the sums of a kernel that open cells of an extent above `theta` times their distance."""
    if isinstance(theta, bool) or not isinstance(theta, Real):
        raise ConfigError(f"theta must be a number in [0, 2], got {theta!r}")
    return BarnesHut(kernel, float(theta))
