"""Principal components by landmarks: the reduced problem from sums over all points, then Z times landmarks' scores.

A second pass over the points certifies the scores: with u a column of them at unit length and Y the centred points,
|Y Y^T u - lambda u| tells how far u and lambda are from exact principal components.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import FOLLOWING_VECTORS, Sizes, written
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.spectral.accuracy import certified_pairs
from scalemani.methods.pca.kernels import principal_components
from scalemani.stages.arrays.embeddings import CERTIFY_ALONE, StoredLandmarkCoordinates, combined_rows, component_values
from scalemani.stages.arrays.landmarks import StoredLandmarkWeights
from scalemani.stages.shared.moments import TILES_TOGETHER, center_of, moments_memory, summed_moments, tiles_of
from scalemani.stages.shared.output import embedding_memory, write_over_landmarks, write_solution
from scalemani.stages.shared.tiles import fold_tiles
from scalemani.store.invariants.spectral import VARIANCES_ARE_EIGENVALUES
from scalemani.store.invariants.values import DESCENDING, NOT_NEGATIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredPrincipalComponents(StoredLandmarkCoordinates, stage="principal_components"):
    """Principal components of points that are combinations of landmarks."""

    embedding = combined_rows(VARIANCES_ARE_EIGENVALUES)
    eigenvalues = component_values("the variance along each component, descending", NOT_NEGATIVE, DESCENDING)
    vectors = Whole("landmark component", "float64", "the scores of the landmarks", "as given").of_any_numbers(
        "the embedding that is made of them is checked"
    )
    mean = Whole("feature", "float64", "the points' mean", "as given").of_any_numbers(CERTIFY_ALONE)
    ritz_vectors = Whole(
        "landmark ritz_vector", "float64", "the same scores, and those that follow, at unit length"
    ).of_any_numbers(CERTIFY_ALONE)
    axes = Whole(
        "feature ritz_vector", "float64", "the centred points, transposed, times these", "as given"
    ).of_any_numbers(CERTIFY_ALONE)


def memory(sizes: Sizes) -> Memory:
    """Return what the sums take, the reduced problem, and the embedding in both orders."""
    n_landmarks, features, vectors = sizes.params.n_landmarks, sizes.dimensions.n_features, n_vectors(sizes)
    solving = {
        "Z' Z dense, its factor, and what it solves": 3 * array("float64", n_landmarks, n_landmarks),
        "moments, centred, whitened, and singular vectors": 4 * array("float64", n_landmarks, features),
    }
    return (
        moments_memory(sizes)
        + embedding_memory(sizes)
        + Memory(
            process={"axes and scores at unit length": 2 * array("float64", n_landmarks + features, vectors)},
            task={"residuals of a tile": 3 * array("float64", TILE_ROWS, vectors)},
            steps={"solving": Memory(solving)},
        )
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: vectors that are certified are no more than features and landmarks."""
    return Disk(written(StoredPrincipalComponents.ARRAYS, sizes, ritz_vector=n_vectors(sizes)))


def n_vectors(sizes: Sizes) -> int:
    """Return how many vectors are certified, at most."""
    most = min(sizes.dimensions.n_features, sizes.params.n_landmarks)
    return min(sizes.params.n_components + FOLLOWING_VECTORS, most)


def run(context: StageContext) -> dict[str, Any]:
    """Solve the reduced problem; certify the share of the scatter that components hold, and how exact they are."""
    task, output = context.task, StoredPrincipalComponents(context.task.output)
    sums, n_components, n_free = summed_moments(context), task.params.n_components, task.dimensions.n_points - 1
    moments = sums.centered()
    solution, pairs = principal_components(sums.gram, moments, n_components, FOLLOWING_VECTORS)
    further = {
        StoredPrincipalComponents.mean: center_of(task) + sums.shift,
        StoredPrincipalComponents.ritz_vectors: pairs.vectors,
        StoredPrincipalComponents.axes: moments.T @ pairs.vectors,
    }
    write_solution(output, solution.eigenvalues / n_free, solution.vectors, further)
    write_over_landmarks(context, output)
    values, total = pairs.values, sums.total_scatter
    residuals = np.sqrt(fold_tiles(context, residuals_of_tiles, np.add, TILES_TOGETHER, "residuals"))
    residuals *= largest_square(further[StoredPrincipalComponents.axes])
    # No eigenvalue is farther above its Ritz value than what all Ritz values leave of the trace.
    largest = values[n_components - 1] + max(0.0, total - float(values.sum()))
    if len(values) == task.dimensions.n_features == n_components:  # zero follows: there are no more features
        values, residuals = np.append(values, 0.0), np.append(residuals, 0.0)
    scale = float(values[0] / n_free) or 1.0
    return {
        "explained_share": float(solution.eigenvalues.sum() / total) if total > 0 else 1.0,
        **certified_pairs(values / n_free, residuals / n_free, n_components, scale, largest / n_free),
    }


def residuals_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return the squares (m,) of Y Y^T u - lambda u of the certified vectors, summed over consecutive tiles.

    In units of `largest_square`: fourth powers of coordinates may leave float64.
    """
    output, weights = StoredPrincipalComponents(task.output), task.stored(StoredLandmarkWeights)
    mean, axes, vectors = (one.read_once() for one in (output.mean, output.axes, output.ritz_vectors))
    values, squares, unit = np.einsum("ij,ij->j", axes, axes), np.zeros(axes.shape[1]), largest_square(axes)
    for tile, block, part in tiles_of(task, tiles):
        scores = weights.read_matrix(block, task.params.n_landmarks)[part] @ vectors
        squares += np.square(((tile - mean) @ axes - values * scores) / unit).sum(axis=0)
    return squares


def largest_square(axes: np.ndarray) -> float:
    """Return the largest squared length of some axes (D, m), 1 where all are zero."""
    return float(np.einsum("ij,ij->j", axes, axes).max(initial=0.0)) or 1.0


def most_components(survey: "Survey") -> int:
    """Return how many components points have: their features."""
    return survey.dimensions.n_features
