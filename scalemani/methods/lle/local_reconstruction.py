"""Locally linear embedding by landmarks: what neighbours leave of the rows of Z, summed, then Z times the solution.

With u a column of the embedding, |M u - lambda u| tells how far it is from that of a problem of all points.
"""

import itertools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import FOLLOWING_VECTORS, Sizes
from scalemani.kernels.arrays.columns import residuals_into
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.spectral.accuracy import certified_pairs
from scalemani.kernels.spectral.linear import RitzPairs
from scalemani.kernels.spectral.reduced import TreeSum, diagonal_product, symmetric_part
from scalemani.methods.lle.kernels import locally_linear_components, subtract_transposed
from scalemani.methods.lle.reconstruction_weights import StoredReconstructionWeights
from scalemani.stages.arrays.embeddings import StoredLandmarkCoordinates, combined_rows, component_values
from scalemani.stages.shared.landmark_maps import warn_of_unseen_components, weights_at
from scalemani.stages.shared.moments import PARTS_AT_ONCE, TILES_TOGETHER
from scalemani.stages.shared.output import embedding_memory, over_landmarks, write_over_landmarks, write_solution
from scalemani.stages.shared.tiles import added, fold_tiles, sums_held, tiles_one_by_one
from scalemani.store.invariants.spectral import CENTRED_ORTHONORMAL
from scalemani.store.invariants.values import ASCENDING, NOT_NEGATIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredLocalReconstruction(StoredLandmarkCoordinates, stage="local_reconstruction"):
    """The locally linear embedding of points that are combinations of landmarks."""

    embedding = combined_rows(CENTRED_ORTHONORMAL)
    eigenvalues = component_values(
        "the sum of the squares that neighbours leave of each coordinate, whose squares sum to one; ascending",
        NOT_NEGATIVE,
        ASCENDING,
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks").of_any_numbers(
        "the embedding that is made of them is checked"
    )


LANDMARKS_REACHED = 0.9  # of the neighbours of a point times the landmarks of each, those that differ, at most


class LocalSums(NamedTuple):
    """Sums over points: Z^T M Z and Z^T Z (L, L)."""

    errors: sp.csr_matrix
    gram: sp.csr_matrix


def memory(sizes: Sizes) -> Memory:
    """Return what Z takes, what some points take of their neighbours, the sums, the reduced problem, and vectors."""
    n_points, params, rows = sizes.dimensions.n_points, sizes.params, sizes.dimensions.block_rows
    k, width, n_landmarks = params.n_neighbors, params.landmark_neighbors, params.n_landmarks
    row = min(n_landmarks, int(LANDMARKS_REACHED * (k + 1) * width) + 1)
    summed = min(n_landmarks**2, TILES_TOGETHER * TILE_ROWS * row**2)
    certified = 3 * array("float64", n_points, params.n_components + FOLLOWING_VECTORS)
    residuals = {"vectors, what neighbours leave of them, and M times them": certified}
    # Both matrices dense, the factor, whitened, reflected, and what LAPACK works in.
    solving = Memory({"reduced problem": 6 * array("float64", n_landmarks, n_landmarks)})
    return embedding_memory(sizes) + Memory(
        {"sums on the way up the tree": 2 * sums_held(n_points, TILES_TOGETHER) * entries(summed)},
        task={
            "rows of R in a block: as read, decoded, and numbered": 3 * entries(rows * k),
            "rows of Z of a tile and its neighbours": entries(min(n_points, TILE_ROWS * (k + 1)) * width),
            "rows that are reached, of R Z and of Z - R Z": 3 * entries(TILE_ROWS * row),
            "sums of a run of tiles": 2 * PARTS_AT_ONCE * entries(summed),
        },
        points={"Z": entries(n_points * width)},
        steps={"solving": solving, "residuals": Memory(points=residuals)},
    )


def run(context: StageContext) -> dict[str, Any]:
    """Sum, solve and embed; certify how exact coordinates are, and how many eigenvalues are zero to rounding."""
    task, output = context.task, StoredLocalReconstruction(context.task.output)
    warn_of_unseen_components(context)
    sums: LocalSums = fold_tiles(context, sums_of_tiles, added, TILES_TOGETHER)
    n_components = task.params.n_components
    solution, pairs, n_zero = locally_linear_components(
        symmetric_part(sums.errors), symmetric_part(sums.gram), n_components, FOLLOWING_VECTORS
    )
    write_solution(output, solution.eigenvalues, solution.vectors)
    if n_zero:
        context.warn(
            f"{task.stage}: {n_zero} of {n_components} eigenvalues are zero to rounding, and their vectors "
            "one basis of many: raise local_reconstruction.reg or neighbors.n_neighbors"
        )
    write_over_landmarks(context, output)
    # M has no eigenvalue below zero.
    certified = certified_pairs(-pairs.values, residuals_of(context, pairs), n_components, largest=0.0)
    return {"zero_eigenvalues": n_zero, **certified}


def sums_of_tiles(task: StageTask, tiles: range) -> LocalSums:
    """Return what consecutive tiles of points add: by tile in work order, so that bits do not depend on blocks."""
    stored, errors, gram = task.stored(StoredReconstructionWeights), TreeSum(), TreeSum()
    for block, parts in itertools.groupby(tiles_one_by_one(task, tiles), operator.itemgetter(0)):
        taken, first = stored.read_matrix(block, task.dimensions.n_points), task.dimensions.rows(block)[0]
        for _, part in parts:
            weights = weights_at(task, np.arange(first + part.start, first + part.stop))
            errors.add(diagonal_product(weights - over_neighbors(task, taken[part]), np.ones(weights.shape[0])))
            gram.add(diagonal_product(weights, np.ones(weights.shape[0])))
    return LocalSums(errors.total(), gram.total())


def over_neighbors(task: StageTask, taken: sp.csr_matrix) -> sp.csr_matrix:
    """Return the rows (n, L) of R Z of rows (n, N) of R."""
    reached, places = np.unique(taken.indices, return_inverse=True)
    renumbered = sp.csr_matrix((taken.data, places, taken.indptr), shape=(taken.shape[0], len(reached)))
    return renumbered @ weights_at(task, reached)


def residuals_of(context: StageContext, pairs: RitzPairs) -> np.ndarray:
    """Return |M u - lambda u| (m,) of u = Z v, M = (I - R)^T (I - R): R is read twice, a block at a time."""
    task, empty = context.task, context.workspace.empty
    stored, dimensions = task.stored(StoredReconstructionWeights), context.task.dimensions
    unit = over_landmarks(task, pairs.vectors, empty)
    errors, images = (empty(unit.shape, np.float64) for _ in range(2))
    context.executor.progress.start(task.stage, 2 * dimensions.n_blocks, "residuals")
    for block in range(dimensions.n_blocks):
        rows = slice(*dimensions.rows(block))
        errors[rows] = unit[rows] - stored.read_matrix(block, dimensions.n_points) @ unit
        images[rows] = errors[rows]
        context.executor.progress.advance()
    for block in range(dimensions.n_blocks):
        taken = stored.read_matrix(block, dimensions.n_points)
        subtract_transposed(taken.indptr, taken.indices, taken.data, errors[slice(*dimensions.rows(block))], images)
        context.executor.progress.advance()
    return residuals_into(None, unit, images, pairs.values)


def most_components(survey: "Survey") -> int:
    """Return how many components points have: one less than points."""
    return survey.dimensions.n_points - 1
