"""Kernel principal components by landmarks: the reduced kernel, centred, then Z times the landmarks' scores.

A pass over W certifies the scores: with u a column of them at unit length, |J K J u - lambda u| tells how far u and
lambda are from exact eigenpairs of the centred kernel.
"""

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory.files import Table
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import FOLLOWING_VECTORS, Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.spectral.accuracy import certified_pairs
from scalemani.kernels.spectral.linear import kernel_components
from scalemani.methods.kernel_pca.kernels import centered_kernel, centered_vectors, kernel_means
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import CERTIFY_ALONE, StoredLandmarkCoordinates, combined_rows, component_values
from scalemani.stages.arrays.landmarks import StoredReduced
from scalemani.stages.shared.moments import TILES_TOGETHER, gram_memory, summed_gram
from scalemani.stages.shared.output import embedding_memory, over_landmarks, write_over_landmarks, write_solution
from scalemani.stages.shared.tiles import fold_tiles, tiles_one_by_one
from scalemani.store.invariants.spectral import SQUARES_ARE_EIGENVALUES
from scalemani.store.invariants.values import DESCENDING, POSITIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredKernelComponents(StoredLandmarkCoordinates, stage="kernel_components"):
    """Kernel principal components of points that are combinations of landmarks."""

    embedding = combined_rows(SQUARES_ARE_EIGENVALUES)
    eigenvalues = component_values("the leading eigenvalues of the centred kernel, descending", POSITIVE, DESCENDING)
    vectors = Whole("landmark component", "float64", "the scores of the landmarks").of_any_numbers(
        "the embedding that is made of them is checked"
    )
    ritz_values = Whole("ritz_vector", "float64", "the same eigenvalues, and those that follow").with_invariants(
        DESCENDING
    )
    ritz_vectors = Whole("landmark ritz_vector", "float64", "their scores at unit length, centred").of_any_numbers(
        CERTIFY_ALONE
    )
    ritz_means = Whole("ritz_vector", "float64", "the means over all points of the kernel times these").of_any_numbers(
        CERTIFY_ALONE
    )


ROWS_REACHED = 32  # vectors that the neighbours of a tile have, for each row of the tile, without any structure


def memory(sizes: Sizes) -> Memory:
    """Return what the sums take, the reduced problem, certified vectors, and the embedding in both orders."""
    n_landmarks, n_points = sizes.params.n_landmarks, sizes.dimensions.n_points
    vectors, reached = sizes.params.n_components + FOLLOWING_VECTORS, min(n_points, ROWS_REACHED * TILE_ROWS)
    # The kernel, centred, whitened, with Z' Z, its factor, and eigenvectors.
    solving = Memory({"reduced kernel": 8 * array("float64", n_landmarks, n_landmarks)})
    residuals = {
        # As read, decoded, its columns sorted and numbered.
        "a block of W": 5 * entries(sizes.block_nonzeros, "float32"),
        "vectors of a tile and of its neighbours": array("float64", reached, vectors),
    }
    return (
        gram_memory(sizes)
        + embedding_memory(sizes)
        + Memory(
            points={"vectors that are certified": array("float64", n_points, vectors)},
            steps={"solving": solving, "residuals": Memory(task=residuals)},
        )
    )


def run(context: StageContext) -> dict[str, Any]:
    """Solve the reduced problem; certify how far the kernel is from having no eigenvalue below zero."""
    task, output = context.task, StoredKernelComponents(context.task.output)
    reduced, gram = task.stored(StoredReduced), summed_gram(context)
    kernel = centered_kernel(reduced.read_matrix(reduced.LAPLACIAN), reduced.read_matrix(reduced.MASS), gram)
    n_components = task.params.n_components
    solution, pairs, least = kernel_components(kernel, gram, n_components, FOLLOWING_VECTORS)
    centered = centered_vectors(pairs.vectors, gram)
    further = {
        StoredKernelComponents.ritz_values: pairs.values,
        StoredKernelComponents.ritz_vectors: centered,
        StoredKernelComponents.ritz_means: kernel_means(reduced.read_matrix(reduced.MASS), gram, centered),
    }
    write_solution(output, solution.eigenvalues, solution.vectors, further)
    if -least > solution.eigenvalues[-1]:
        context.warn(
            f"kernel_components: the kernel is not positive semidefinite, its least eigenvalue on the landmarks is "
            f"{least:.3g}, farther from zero than the last of the components, {solution.eigenvalues[-1]:.3g}: raise "
            "neighbors.n_neighbors or lower affinities.sigma"
        )
    write_over_landmarks(context, output)
    residuals = np.sqrt(fold_tiles(context, residuals_of_tiles, np.add, TILES_TOGETHER, "residuals"))
    return {
        "least_eigenvalue": least,
        **certified_pairs(pairs.values, residuals, n_components, float(pairs.values[0])),
    }


def residuals_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return the squares (m,) of J K J u - lambda u of the certified vectors, summed over consecutive tiles."""
    output, graph, table = StoredKernelComponents(task.output), affinity_graph(task.inputs), task.once(certified_table)
    values, means = output.ritz_values.read_once(), output.ritz_means.read_once()
    squares = np.zeros(len(values))
    for block, parts in itertools.groupby(tiles_one_by_one(task, tiles), operator.itemgetter(0)):
        affinities, first = graph.read_matrix(block, task.dimensions.n_points), task.dimensions.rows(block)[0]
        for _, part in parts:
            reached, rows = graph.on_reached(affinities[part])
            scores = table[slice(first + part.start, first + part.stop)]
            squares += np.square(scores + rows @ table[reached] - means - values * scores).sum(axis=0)
    return squares


def certified_table(task: StageTask) -> Table:
    """Return the certified vectors u: (N, m) float64, in work order."""
    return over_landmarks(task, StoredKernelComponents(task.output).ritz_vectors.read(), task.table)


def most_components(survey: "Survey") -> int:
    """Return how many components points have: one less than points."""
    return survey.dimensions.n_points - 1
