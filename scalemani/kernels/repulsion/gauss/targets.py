"""Two ways for the targets in a box of the fast Gauss transform to get their field: all pairs, or a polynomial."""

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.gauss.boxes import AXES, Boxed
from scalemani.kernels.repulsion.gauss.expansions import CHUNK, WORK_ROWS, evaluate
from scalemani.kernels.repulsion.gauss.scattered_pairs import HELD, add_own, add_points, empty_held
from scalemani.kernels.repulsion.pair_sums import GAUSSIAN


@compiled
def sum_boxes(  # noqa: PLR0913 - how LLVM associates sums depends on the functions that call them
    boxed: Boxed,
    charges: np.ndarray,
    target_boxed: Boxed,
    boxes: np.ndarray,
    ranges: np.ndarray,
    own: bool,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Write the field at the targets in some boxes as sums over pairs.

    Parameters
    ----------
    boxed : the points by box
    charges : (N,) float64, in that order
    target_boxed : the targets by box
    boxes : (n,) int64, numbers of boxes of targets
    ranges : (n, rows, 2) int64, the points that are summed for each box: first, and the one behind the last
    own : whether the targets are the points: none has a charge to itself
    sums : (M,) float64, S, of which the rows of these targets are written
    gradients : (M, d) float64, likewise
    """
    n_dims = gradients.shape[1]
    held, n_held = empty_held(n_dims), 0
    for b in range(len(boxes)):
        begin, end = target_boxed.starts[boxes[b]], target_boxed.starts[boxes[b] + 1]
        targets = target_boxed.points[begin:end]
        found = np.zeros((end - begin, n_dims + 1))
        for row in range(ranges.shape[1]):
            for j in range(ranges[b, row, 0], ranges[b, row, 1]):
                if own and begin <= j < end:
                    continue
                for k in range(n_dims):
                    held.columns[k, n_held] = boxed.points[j, k]
                held.charges[n_held] = charges[j]
                n_held += 1
                if n_held == HELD:
                    n_held = add_points(GAUSSIAN, held, n_held, targets, found)
        n_held = add_points(GAUSSIAN, held, n_held, targets, found)
        if own:
            add_own(GAUSSIAN, held, targets, charges[begin:end], found)
        for i in range(begin, end):
            row_of = target_boxed.order[i]
            sums[row_of] = found[i - begin, n_dims]
            for k in range(n_dims):
                gradients[row_of, k] = found[i - begin, k]


@compiled
def evaluate_boxes(
    target_boxed: Boxed,
    boxes: np.ndarray,
    coefficients: np.ndarray,
    charges: np.ndarray,
    own: bool,
    sums: np.ndarray,
    gradients: np.ndarray,
) -> None:
    """Write the field at the targets in some boxes from Taylor coefficients.

    Parameters
    ----------
    target_boxed : the targets by box
    boxes : (n,) int64, numbers of boxes of targets
    coefficients : (n, n0, n1, n2) float64, of each of these
    charges : (M,) float64, in the order of the boxes
    own : whether the targets are the points: what a point is to itself, its charge, is taken away
    sums, gradients : those of `sum_boxes`
    """
    n_dims = gradients.shape[1]
    found = np.empty((WORK_ROWS, CHUNK))
    for b in range(len(boxes)):
        end, center = target_boxed.starts[boxes[b] + 1], target_boxed.centers[boxes[b]]
        for begin in range(target_boxed.starts[boxes[b]], end, CHUNK):
            stop = min(begin + CHUNK, end)
            evaluate(coefficients[b], target_boxed.points, np.uint64(begin), np.uint64(stop - begin), center, found)
            for i in range(begin, stop):
                row = target_boxed.order[i]
                sums[row] = found[AXES, i - begin] - (charges[i] if own else 0.0)
                for k in range(n_dims):
                    gradients[row, k] = found[AXES - n_dims + k, i - begin]
