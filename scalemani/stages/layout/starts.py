"""Where a descent starts: the positions of all points in work order."""

import numpy as np
from scipy.special import ndtri

from scalemani.chunked.beside_points import given_beside, in_work_order
from scalemani.chunked.needs import EACH_PROCESS, Held
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageTask, StageWork
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.spreading import spread_to_neighbors
from scalemani.records.embeddings import StoredEmbedding
from scalemani.records.points import StoredWorkPoints
from scalemani.routes import GIVEN_START, SPECTRAL_START

UNIFORM_BITS = 52  # of a word; half a step more is exact in float64, and neither 0 nor 1
COPIES_OF_GIVEN = 4  # as given, in work order, filled in, and the means on their way


def given_held(sizes: Sizes) -> list[Held]:
    """List what a start that is given takes."""
    if sizes.params.layout.init != GIVEN_START:
        return []
    shape = sizes.dimensions.n_points, sizes.params.n_components
    return [Held("coordinates that are given", EACH_PROCESS, *shape, "float64", COPIES_OF_GIVEN)]


def start_positions(work: StageWork, rows: AffinityRows, masses: np.ndarray | None = None) -> np.ndarray:
    """Return the start (N, d) in work order; `rows` are those of W, `masses` (N,) what points weigh, None for one.

    Points that start where others do are parted by a little noise, drawn by input row.
    """
    task, asked = work.task, work.task.params.layout
    if asked.init == GIVEN_START:
        return continued_start(work, rows)
    order = StoredWorkPoints(task.inputs["work_points"]).input_rows.read()
    positions = STARTS[asked.init](task, order)
    if masses is None:
        positions -= positions.mean(axis=0)
        deviations = positions.std(axis=0)
    else:
        by_input = np.empty_like(masses)
        by_input[order] = masses
        positions -= np.average(positions, axis=0, weights=by_input)
        deviations = np.sqrt(np.average(positions**2, axis=0, weights=by_input))
    positions /= np.where(deviations > 0, deviations, 1.0)
    positions += asked.jitter * noise(task)
    positions *= asked.start_deviation or 1.0
    return np.ascontiguousarray(positions[order])


def continued_start(work: StageWork, rows: AffinityRows) -> np.ndarray:
    """Return the coordinates (N, d) that are given, in work order; points without any start among their neighbours.

    All are brought to the deviation asked for, if one is, by one factor: the shape stays.
    """
    task, asked = work.task, work.task.params.layout
    positions = given_start(work)
    filled = spread_to_neighbors(rows, positions)
    deviation = float(np.sqrt(positions.var(axis=0).mean()))
    order = StoredWorkPoints(task.inputs["work_points"]).input_rows.read()
    positions[filled] += asked.jitter * (deviation or 1.0) * noise(task)[order[filled]]
    if asked.start_deviation is not None and deviation > 0:
        positions = (positions - positions.mean(axis=0)) * (asked.start_deviation / deviation)
    return positions


def given_start(work: StageWork) -> np.ndarray:
    """Return a copy of the coordinates (N, d) that are given, in work order; NaN where there are none."""
    return in_work_order(work, given_beside(work, "init").coordinates)


def beside_still(given: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return positions (N, d) moved as a whole to where points that were kept still had been given, to the bit."""
    known = ~np.isnan(given[:, 0])
    return np.where(known[:, np.newaxis], given, positions + (given[known] - positions[known]).mean(axis=0))


def moved_share(given: np.ndarray, positions: np.ndarray) -> tuple[int, float]:
    """Return how many points had a position, and how far they are from it.

    That is the root mean square distance, as a share of that from their middle at the end; both maps are centred.
    """
    known = ~np.isnan(given[:, 0])
    before, after = given[known], positions[known]
    before -= before.mean(axis=0)
    after -= after.mean(axis=0)
    size = np.linalg.norm(after)
    return len(before), float(np.linalg.norm(after - before) / size) if size > 0 else 0.0


def noise(task: StageTask) -> np.ndarray:
    """Return uniform numbers (N, d) in [-1, 1), rows in input order."""
    shape = task.dimensions.n_points, task.params.n_components
    return np.asarray(row_words(task.params.seed, "layout", 0, shape[0] * shape[1]).reshape(shape) / 2.0**63 - 1.0)


def spectral_start(task: StageTask, _order: np.ndarray) -> np.ndarray:
    """Return the spectral embedding in input order."""
    return StoredEmbedding(task.inputs["embedding"]).embedding.read()


def principal_start(task: StageTask, order: np.ndarray) -> np.ndarray:
    """Return the first principal components of the points in input order: their sketches have them."""
    sketch = StoredWorkPoints(task.inputs["work_points"]).sketch
    positions = np.empty((task.dimensions.n_points, task.params.n_components))
    for block in range(task.dimensions.n_blocks):
        positions[order[slice(*task.dimensions.rows(block))]] = sketch.read_block(block)[:, : positions.shape[1]]
    return positions


def random_start(task: StageTask, _order: np.ndarray) -> np.ndarray:
    """Return normal draws by input row."""
    n_points, n_dims = task.dimensions.n_points, task.params.n_components
    words = row_words(task.params.seed, "layout start", 0, n_points * n_dims).reshape(n_points, n_dims)
    return np.asarray(ndtri(((words >> np.uint64(64 - UNIFORM_BITS)) + 0.5) / 2.0**UNIFORM_BITS))


STARTS = {SPECTRAL_START: spectral_start, "pca": principal_start, "random": random_start}
