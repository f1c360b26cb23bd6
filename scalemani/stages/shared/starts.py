"""Where descents start: at the spectral embedding, at principal components, or at random; rows in input order."""

import numpy as np
from scipy.special import ndtri

from scalemani.config.stages import SPECTRAL_START
from scalemani.engine.task import StageTask
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.spectral.pieces import side_by_side
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints, sketches_of

UNIFORM_BITS = 52  # of a word; half a step more is exact in float64, and neither 0 nor 1
RANDOM_START = "random"
WHOLE_MAP = "layout start"  # what random starts are drawn by


def start_of(task: StageTask, init: str, order: np.ndarray, draws: str = WHOLE_MAP) -> np.ndarray:
    """Return a start (N, d) by its name, a random one by draws of a name; `order` (N,) are input rows of work rows."""
    if init == RANDOM_START:
        return random_start(task, draws)
    return spectral_start(task) if init == SPECTRAL_START else principal_start(task, order)


def spectral_start(task: StageTask) -> np.ndarray:
    """Return the spectral embedding, the pieces of a graph side by side."""
    stored = task.stored(StoredEmbedding)
    positions = stored.embedding.read()
    return side_by_side(positions, stored.pieces.read()) if stored.in_pieces else positions


def principal_start(task: StageTask, order: np.ndarray) -> np.ndarray:
    """Return the first principal components of the points: their sketches have them."""
    sketches = sketches_of(task.stored(StoredWorkPoints), task.stored(StoredPartition).basis)
    positions = np.empty((task.dimensions.n_points, task.params.n_components))
    for block in range(task.dimensions.n_blocks):
        positions[order[slice(*task.dimensions.rows(block))]] = sketches.read_block(block)[:, : positions.shape[1]]
    return positions


def random_start(task: StageTask, draws: str = WHOLE_MAP) -> np.ndarray:
    """Return normal draws of a name."""
    n_points, n_dims = task.dimensions.n_points, task.params.n_components
    words = row_words(task.params.seed, draws, 0, n_points * n_dims).reshape(n_points, n_dims)
    return ndtri(((words >> np.uint64(64 - UNIFORM_BITS)) + 0.5) / 2.0**UNIFORM_BITS)


def noise(task: StageTask) -> np.ndarray:
    """Return uniform numbers (N, d) in [-1, 1)."""
    shape = task.dimensions.n_points, task.params.n_components
    return row_words(task.params.seed, "layout", 0, shape[0] * shape[1]).reshape(shape) / 2.0**63 - 1.0


def standardized(positions: np.ndarray, masses: np.ndarray | None = None) -> np.ndarray:
    """Return positions (n, d) about their mean, each column at deviation one, by masses (n,) where there are any."""
    if masses is None:
        centered = positions - positions.mean(axis=0)
        deviations = centered.std(axis=0)
    else:
        centered = positions - np.average(positions, axis=0, weights=masses)
        deviations = np.sqrt(np.average(centered**2, axis=0, weights=masses))
    return np.asarray(centered / np.where(deviations > 0, deviations, 1.0))
