"""Locally linear embedding by landmarks: what neighbours leave of the rows of Z, summed, then Z times the solution."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.needs import CACHE, EACH_PROCESS, EACH_TASK, LOOKED_UP, Held
from scalemani.engine.reading import RowsOfArray, Whole
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageTask, StageWork
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.spectral.reduced import TreeSum, diagonal_product, symmetric_part
from scalemani.methods.lle.kernels import locally_linear_components, neighbor_weights
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.embeddings import StoredLandmarkScores, component_values
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.landmark_maps import components_held, tell_of_unseen_components, weights_at
from scalemani.stages.shared.moments import PARTS_AT_ONCE, TILES_TOGETHER, tiles_of
from scalemani.stages.shared.output import embedding_held, write_over_landmarks, write_scores
from scalemani.stages.shared.tiles import added, fold_tiles

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredLocalReconstruction(StoredLandmarkScores, stage="local_reconstruction"):
    """The locally linear embedding of points that are combinations of landmarks."""

    eigenvalues = component_values(
        "the sum of the squares that neighbours leave of each coordinate, whose squares sum to one; ascending"
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks")


POINTS_TOGETHER = 256  # whose neighbours are read at once: a tile of wide points has too many of them
COPIES_OF_REACHED = 3  # as decoded, as read, and as they are compared
COPIES_OF_ROWS = 3  # those that are reached, R Z and Z - R Z
COPIES_OF_PROBLEM = 6  # both matrices dense, the factor, whitened, reflected, and what LAPACK works in
LANDMARKS_REACHED = 0.9  # of the neighbours of a point times the landmarks of each, those that differ, at most


class LocalSums(NamedTuple):
    """Sums over points: Z^T M Z and Z^T Z (L, L)."""

    errors: sp.csr_matrix
    gram: sp.csr_matrix


def memory(sizes: Sizes) -> list[Held]:
    """List Z, the neighbours of some points, the sums, and the reduced problem."""
    dimensions, params = sizes.dimensions, sizes.params
    n_points, n_landmarks = dimensions.n_points, params.n_landmarks
    k, width = params.n_neighbors, params.landmark_neighbors
    row = min(n_landmarks, int(LANDMARKS_REACHED * (k + 1) * width) + 1)
    reached = min(n_points, POINTS_TOGETHER * (k + 1))
    entries = min(n_landmarks**2, TILES_TOGETHER * TILE_ROWS * row**2)
    return [
        Held("Z", LOOKED_UP, n_points, 1.5 * width),
        Held("points of all blocks", CACHE, n_points, *dimensions.kept_row),
        Held("points of a block", EACH_TASK, dimensions.block_rows, *dimensions.kept_row, 2),
        Held("neighbours of a block", EACH_TASK, dimensions.block_rows, k, "int32"),
        Held("neighbours of some points", EACH_TASK, reached, dimensions.n_features, copies=COPIES_OF_REACHED),
        Held("their rows of Z", EACH_TASK, reached, 1.5 * width),
        Held("rows of Z - R Z", EACH_TASK, TILE_ROWS, 1.5 * row, copies=COPIES_OF_ROWS),
        Held("sums of a run of tiles", EACH_TASK, entries, 1.5, copies=2 * PARTS_AT_ONCE),
        Held("reduced problem", EACH_PROCESS, n_landmarks, n_landmarks, copies=COPIES_OF_PROBLEM, step="solving"),
        embedding_held(sizes),
        components_held(sizes),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Sum, solve and embed; certify how many eigenvalues are zero to rounding."""
    task, output = work.task, StoredLocalReconstruction(work.task.output)
    tell_of_unseen_components(work)
    found: LocalSums = fold_tiles(work, sums_of_tiles, added, TILES_TOGETHER)
    solution, n_zero = locally_linear_components(
        symmetric_part(found.errors), symmetric_part(found.gram), task.params.n_components
    )
    write_scores(output, solution.eigenvalues, solution.vectors)
    if n_zero:
        work.warn(
            f"{task.stage}: {n_zero} of {task.params.n_components} eigenvalues are zero to rounding, and their vectors "
            "one basis of many: raise local_reconstruction.reg or neighbors.n_neighbors"
        )
    write_over_landmarks(work, output)
    return {"zero_eigenvalues": n_zero}


def sums_of_tiles(task: StageTask, tiles: range) -> LocalSums:
    """Return what consecutive tiles of points add: by tile in work order, so that bits do not depend on blocks."""
    graph, errors, gram = task.stored(StoredNeighbors), TreeSum(), TreeSum()
    neighbors = graph.indices(graph.final_step)
    for tile, block, part in tiles_of(task, tiles):
        first = task.dimensions.rows(block)[0] + part.start
        rows = np.arange(first, first + len(tile))
        indices = neighbors.gather(rows, task.cache_bytes)
        parts = [
            rows_left(task, rows[some], tile[some], lists)
            for some, lists in neighbors_with_bridges(rows, indices, task.once(other_ends))
        ]
        errors.add(diagonal_product(sp.vstack(parts, format="csr"), np.ones(len(rows))))
        gram.add(diagonal_product(weights_at(task, rows), np.ones(len(rows))))
    return LocalSums(errors.total(), gram.total())


def other_ends(task: StageTask) -> dict[int, list[int]]:
    """Return the work rows to which bridges between components lead, by the work row from which they do."""
    found: dict[int, list[int]] = {}
    for one, other in task.stored(StoredComponents).bridge_rows.read().tolist():
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return found


def neighbors_with_bridges(
    rows: np.ndarray, indices: np.ndarray, bridges: Mapping[int, Sequence[int]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions (m,) among some points, and their neighbours (m, k'): those across a bridge are further ones.

    Parameters
    ----------
    rows : (n,) int, work rows of the points
    indices : (n, k) int32, work rows of their neighbours
    """
    joined = np.array([row in bridges for row in rows.tolist()])
    alone = np.flatnonzero(~joined)
    for some in slices(len(alone), POINTS_TOGETHER):
        yield alone[some], indices[alone[some]]
    for position in np.flatnonzero(joined).tolist():
        further = np.array(bridges[int(rows[position])], indices.dtype)
        yield np.array([position]), np.concatenate([indices[position], further])[np.newaxis]


def rows_left(task: StageTask, rows: np.ndarray, points: np.ndarray, indices: np.ndarray) -> sp.csr_matrix:
    """Return the rows (n, L) of Z - R Z of some points.

    Parameters
    ----------
    rows : (n,) int, their work rows
    points : (n, D)
    indices : (n, k) int32, work rows of their neighbours
    """
    reached, places = np.unique(indices, return_inverse=True)
    places = places.reshape(indices.shape)
    stored = task.stored(StoredWorkPoints).points
    others = RowsOfArray(stored, task.dimensions.n_points, task.cache_bytes)[reached]
    values = neighbor_weights(points, others, places, task.params.value("local_reconstruction.reg"))
    bounds = np.arange(0, values.size + 1, values.shape[1])
    taken = sp.csr_matrix((values.ravel(), places.ravel(), bounds), shape=(len(rows), len(reached)))
    return weights_at(task, rows) - taken @ weights_at(task, reached)


def most_components(found: "Survey") -> int:
    """Return how many components points have: one less than points."""
    return found.dimensions.n_points - 1
