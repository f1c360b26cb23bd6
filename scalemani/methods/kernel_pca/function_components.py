"""Principal components of a kernel k(x, y) between all points, which are combinations of landmarks.

Scores are Z v sqrt(lambda), Z^T J K J Z v = lambda Z^T Z v with J = I - 1 1^T / N: the best that combinations of
landmarks can say of kernel components of all points. K is computed by rows, twice, and never held: the second pass
certifies the scores. With u a column of them at unit length, |J K J u - lambda u| tells how far u and lambda are from
exact eigenpairs. Source: [LLL] 4.6.4.
"""

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import FOLLOWING_VECTORS, Sizes
from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.kernels.spectral.accuracy import certified_pairs
from scalemani.kernels.spectral.linear import centered_products, kernel_components
from scalemani.methods.kernel_pca.kernels import (
    PairKernel,
    centered_vectors,
    gaussian_kernel,
    kernel_by_function,
    kernel_values,
)
from scalemani.methods.kernel_pca.parameters import GAUSSIAN, FunctionComponentsParams
from scalemani.stages.arrays.embeddings import CERTIFY_ALONE, StoredLandmarkCoordinates, combined_rows, component_values
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import points_in_order
from scalemani.stages.shared.landmark_maps import weights_at
from scalemani.stages.shared.moments import gram_memory, summed_gram
from scalemani.stages.shared.output import embedding_memory, over_landmarks, write_over_landmarks, write_solution
from scalemani.stages.shared.tiles import fold_tiles, sums_held
from scalemani.store.invariants.spectral import SQUARES_ARE_EIGENVALUES
from scalemani.store.invariants.values import DESCENDING, POSITIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey

TOGETHER = 64  # rows of the kernel that a task holds: another number would change the last bits of sums
INDEFINITE = 1e-8  # of the largest eigenvalue on the landmarks: one that is farther below zero is no rounding
ASYMMETRIC = 1e-8  # of the largest value on the landmarks


class StoredFunctionComponents(StoredLandmarkCoordinates, stage="function_components"):
    """Principal components of a kernel between all points, of points that are combinations of landmarks."""

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


def memory(sizes: Sizes) -> Memory:
    """Return what the points take, rows of the kernel, sums of the landmarks, and the reduced problem."""
    n_points, n_landmarks, features = sizes.dimensions.n_points, sizes.params.n_landmarks, sizes.dimensions.n_features
    square, vectors = array("float64", n_landmarks, n_landmarks), sizes.params.n_components + FOLLOWING_VECTORS
    return (
        gram_memory(sizes)
        + embedding_memory(sizes)
        + Memory(
            process={
                # As read, dense, and in float64.
                "points": n_points * sizes.dimensions.row_bytes + 2 * array("float64", n_points, features),
                "landmarks": 2 * array("float64", n_landmarks, features),
                "products on the way up the tree": sums_held(n_points, 1) * square,
                "Z": 2 * array("float64", n_points, 2 * sizes.params.landmark_neighbors),
            },
            task={
                "rows of the kernel": 3 * array("float64", TOGETHER, n_points),
                "rows of the kernel times Z, and their products": array("float64", TILE_ROWS, n_landmarks) + 3 * square,
                "residuals of a tile": 3 * array("float64", TILE_ROWS, vectors),
            },
            points={"vectors that are certified": array("float64", n_points, vectors)},
            # As summed and centred, with Z' Z, its factor, whitened, and what LAPACK works in.
            steps={"solving": Memory({"reduced problem": 8 * square})},
        )
    )


def run(context: StageContext) -> dict[str, Any]:
    """Sum over the kernel, solve and embed; certify the kernel on the landmarks, and the scores over all points."""
    task, output = context.task, StoredFunctionComponents(context.task.output)
    n_components, kernel = task.params.n_components, task.once(kernel_of)
    least = least_of_landmarks(kernel, landmarks_of(task))
    gram = summed_gram(context)
    products = fold_tiles(context, products_of_tiles, operator.add, 1, "kernel")
    products = 0.5 * (products + products.T)
    centered = centered_products(products, gram)
    solution, pairs, _ = kernel_components(centered, gram, n_components, FOLLOWING_VECTORS)
    vectors = centered_vectors(pairs.vectors, gram)
    further = {
        StoredFunctionComponents.ritz_values: pairs.values,
        StoredFunctionComponents.ritz_vectors: vectors,
        StoredFunctionComponents.ritz_means: products.sum(axis=0) @ vectors / task.dimensions.n_points,
    }
    write_solution(output, solution.eigenvalues, solution.vectors, further)
    write_over_landmarks(context, output)
    residuals = np.sqrt(fold_tiles(context, residuals_of_tiles, np.add, 1, "residuals"))
    return {
        **({} if kernel.sigma is None else {"sigma": kernel.sigma}),
        "least_share": least,
        **certified_pairs(pairs.values, residuals, n_components, float(pairs.values[0])),
    }


def kernel_of(task: StageTask) -> PairKernel:
    """Return the kernel of a task."""
    params = task.params.part(FunctionComponentsParams)
    if params.kernel != GAUSSIAN:
        return kernel_by_function(params.kernel)
    return gaussian_kernel(params.sigma, landmarks_of(task))


def landmarks_of(task: StageTask) -> np.ndarray:
    """Return the landmarks (L, D) float64."""
    return np.ascontiguousarray(task.stored(StoredLandmarks).points.read_once(), np.float64)


def least_of_landmarks(kernel: PairKernel, landmarks: np.ndarray) -> float:
    """Return the least eigenvalue of the kernel between landmarks, as a share of the largest.

    Raises ConfigError where the kernel is not symmetric, or not positive semidefinite.
    """
    values = finite_values(kernel, landmarks, landmarks)
    off = float(np.abs(values - values.T).max())
    if off > ASYMMETRIC * float(np.abs(values).max()):
        raise ConfigError(
            f"function_components.kernel={kernel.name} is not symmetric: k(x, y) and k(y, x) of two landmarks differ "
            f"by {off:.3g}; take a function that does not depend on the order of its rows"
        )
    spectrum = scipy.linalg.eigvalsh(0.5 * (values + values.T), check_finite=False)
    least, largest = float(spectrum[0]), float(spectrum[-1])
    if largest <= 0 or least < -INDEFINITE * largest:
        raise ConfigError(
            f"function_components.kernel={kernel.name} is not positive semidefinite: its eigenvalues between "
            f"{len(landmarks)} landmarks lie between {least:.3g} and {largest:.3g}; take a kernel that is a product of "
            "features, k(x, y) = f(x) f(y), or a sum of such"
        )
    return least / largest


def finite_values(kernel: PairKernel, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the kernel (m, n) between rows; raise DataError where it is no number."""
    values = kernel_values(kernel, some, others)
    if not np.isfinite(values).all():
        row, other = np.argwhere(~np.isfinite(values))[0]
        raise DataError(
            f"function_components.kernel={kernel.name} is {values[row, other]} between two rows that begin with "
            f"{some[row, :3].tolist()} and {others[other, :3].tolist()}: a kernel has a finite value for any two"
        )
    return values


def rows_of_kernel(task: StageTask, tile: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield consecutive rows of a tile, and the kernel (m, N) between them and all points."""
    points, kernel = task.once(all_points), task.once(kernel_of)
    stop = min((tile + 1) * TILE_ROWS, task.dimensions.n_points)
    for first in range(tile * TILE_ROWS, stop, TOGETHER):
        rows = slice(first, min(first + TOGETHER, stop))
        yield rows, finite_values(kernel, points[rows], points)


def products_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return what consecutive tiles of points add to Z^T K Z (L, L)."""
    weights, total = task.once(all_weights), np.zeros((task.params.n_landmarks,) * 2)
    for tile in tiles:
        images = np.concatenate([values @ weights for _, values in rows_of_kernel(task, tile)])
        total += weights[tile * TILE_ROWS : (tile + 1) * TILE_ROWS].T @ images
    return total


def residuals_of_tiles(task: StageTask, tiles: range) -> np.ndarray:
    """Return the squares (m,) of J K J u - lambda u of the certified vectors, summed over consecutive tiles."""
    output, vectors = StoredFunctionComponents(task.output), task.once(certified_vectors)
    ritz_values, means = output.ritz_values.read_once(), output.ritz_means.read_once()
    squares = np.zeros(len(ritz_values))
    for tile in tiles:
        for rows, values in rows_of_kernel(task, tile):
            squares += np.square(values @ vectors - means - ritz_values * vectors[rows]).sum(axis=0)
    return squares


def all_points(task: StageTask) -> np.ndarray:
    """Return the points (N, D) float64, dense, which a process shares."""
    return np.ascontiguousarray(dense_rows(points_in_order(task.inputs).points.read()), np.float64)


def all_weights(task: StageTask) -> Any:
    """Return Z (N, L), which a process shares."""
    return weights_at(task, np.arange(task.dimensions.n_points))


def certified_vectors(task: StageTask) -> np.ndarray:
    """Return the vectors u (N, m) float64, which a process shares."""
    return over_landmarks(task, StoredFunctionComponents(task.output).ritz_vectors.read(), np.empty)


def most_components(survey: "Survey") -> int:
    """Return how many components points have: one less than points."""
    return survey.dimensions.n_points - 1
