"""The gradient of the attractive half where the repulsive half errs by more than float32: maps in whole numbers.

Coordinates are rounded to multiples of a step, 2^31 of them across the map: half the bytes of float64, and a gathering
of points is most of an iteration at a million of them. Differences of whole numbers are exact: near points, whose
coordinates in float32 would leave few digits of them, keep all. Terms and their sums over a row are float32.
"""

import numpy as np

from scalemani.kernels.arrays.coordinates import bounding_box
from scalemani.kernels.arrays.tiles import light_panels, row_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.graph.pull_instructions import sum_pulls
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.lane_instructions import ITEM_BYTES

MOST_STEPS = 2**30 - 1  # from the middle of a map: differences are int32 too
LONGEST_STEP = 1e-5  # of the width of Student's kernel: maps too wide for it are summed in float64
LEAST_STEP = 1e-150  # whose square is a number


@compiled
def _round(positions: np.ndarray, middle: np.ndarray, per_step: float, steps: np.ndarray) -> None:
    for n in range(positions.shape[0]):
        for d in range(positions.shape[1]):
            steps[n, d] = np.int32(np.rint((positions[n, d] - middle[d]) * per_step))


@compiled
def _gradient(rows: Rows, steps: np.ndarray, step: float, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    columns, weights, places = indices.ctypes.data, values.ctypes.data, steps.ctypes.data
    square = np.float32(step * step)
    for row in range(gradient.shape[0]):
        n = first + row
        start, count = indptr[n] * ITEM_BYTES, indptr[n + 1] - indptr[n]
        own = (steps[n, 0], steps[n, 1])
        sum_x, sum_y = sum_pulls(columns + start, weights + start, count, places, own, square)
        gradient[row, 0], gradient[row, 1] = 4.0 * step * np.float64(sum_x), 4.0 * step * np.float64(sum_y)


def rounded_attraction_gradient(
    rows: AffinityRows, positions: np.ndarray, kernel: str, out: np.ndarray, workspace: Workspace = IN_MEMORY
) -> np.ndarray:
    """Write the gradient of E+ into `out` and return it: with Student's kernel in two dimensions to 1e-5 of its terms.

    The others, affinities in float64, and maps more than 20,000 wide have it by `attraction_gradient`, whose arguments
    these are.
    """
    over, light = workspace.over, light_panels(rows.n_points)
    of_four_bytes = rows.indices.itemsize == rows.values.itemsize == ITEM_BYTES
    if kernel != "student" or positions.shape[1] != 2 or not light or not of_four_bytes:
        return attraction_gradient(rows, positions, kernel, out, over)
    low, high = bounding_box([positions[part] for part in light], over)
    step = float((high - low).max()) / (2 * MOST_STEPS)
    if not LEAST_STEP <= step <= LONGEST_STEP:
        return attraction_gradient(rows, positions, kernel, out, over)
    middle, steps, csr = (low + high) / 2, workspace.empty(positions.shape, np.int32), tuple(rows)
    run(over(lambda part: _round(positions[part], middle, 1 / step, steps[part]), light))
    run(over(lambda part: _gradient(csr, steps, step, part.start, out[part]), row_panels(rows.n_points)))
    return out
