"""Kernel discriminants by landmarks: sums over the rows of K Z, K = I + W, centred afterwards, then a projection.

Directions are P = Z P~ in the span of the kernel, and coordinates J K J Z P~ with J = I - 1 1^T / N. Source: [LLL]
4.6.4; Baudat and Anouar, Generalized discriminant analysis using a kernel approach, Neural Computation 2000.

Over all points the problem is S_b a = lambda S_t a with S_b = J K J P J K J, P the projection on classes, and
S_t = (J K J)^2 + rho I, rho the ridge. Of a = Z p~ with coordinates x = J K J a the residual is
r = J K J (P x - lambda x) - lambda rho a: one more pass over W. In the norm of the inverse of S_t it is |r| / sqrt(rho)
at most, and an exact lambda lies that near.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.graph import parts_held
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.reading import Whole
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.columns import column_squares
from scalemani.methods.kernel_lda.parameters import KernelDiscriminantsParams
from scalemani.methods.kernel_pca.kernels import centered_sums
from scalemani.methods.lda.kernels import discriminants
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows
from scalemani.stages.arrays.landmarks import StoredLandmarkWeights
from scalemani.stages.arrays.points import StoredClasses
from scalemani.stages.shared.landmark_maps import warn_of_unseen_components, weights_at
from scalemani.stages.shared.output import write_embedding
from scalemani.stages.shared.tiles import added
from scalemani.store.invariants.spectral import CENTRED
from scalemani.store.invariants.values import A_SHARE, DESCENDING, NOT_NEGATIVE

if TYPE_CHECKING:
    from scalemani.runs.survey import Survey


class StoredKernelDiscriminants(StoredReduction, stage="kernel_discriminants"):
    """Kernel discriminants of classes, in the span of the kernel's columns that landmarks combine."""

    embedding = embedding_rows("[K Z, K 1] times `directions` less `mean`, rows in input order", CENTRED)
    eigenvalues = component_values(
        "the share of the regularised scatter of each component that lies between classes, descending",
        A_SHARE,
        DESCENDING,
    )
    directions = Whole("landmark_bound component", "float64", "what rows of [K Z, K 1] take").of_any_numbers(
        "[K Z, K 1] is not stored; the embedding that is made of it is checked"
    )
    mean = Whole("component", "float64", "the mean of the coordinates before it is taken off").of_any_numbers(
        "the embedding is checked to be centred by it"
    )
    ridge = Whole("", "float64", "what is added to the scatter in every direction").with_invariants(NOT_NEGATIVE)


PARTS_AT_ONCE = 3  # of a task: its own, the one that is added, and one on its way
LANDMARKS_REACHED = 0.9  # of the neighbours of a point times the landmarks of each, those that differ, at most


class KernelSums(NamedTuple):
    """Sums over rows R = [K Z, K 1] (N, L + 1): R^T R, those of each class (C, L + 1), its points, and Z^T Z."""

    products: sp.csr_matrix
    sums: np.ndarray
    counts: np.ndarray
    gram: sp.csr_matrix


def memory(sizes: Sizes) -> Memory:
    """Return what Z takes, the rows of K Z in a block and their products, and the reduced problem."""
    params, n_points, width = sizes.params, sizes.dimensions.n_points, sizes.params.landmark_neighbors
    row = min(params.n_landmarks, int(LANDMARKS_REACHED * params.n_neighbors * width) + 1)
    square = array("float64", params.n_landmarks, params.n_landmarks)
    return Memory(
        process={
            # In sum, centred, with its eigenvectors and what LAPACK works in.
            "reduced problem": 6 * square,
            "products of rows of K Z on the way up the tree": 1.5 * square * parts_held(sizes.dimensions.n_blocks),
            "classes of the points": array("int32", n_points),
        },
        task={
            "W in a block": PARTS_AT_ONCE * array("float64", sizes.block_nonzeros, 2),
            "rows of K Z in a block": 2 * entries(sizes.dimensions.block_rows * row),
            "products of rows of K Z": 1.5 * PARTS_AT_ONCE * square,
        },
        points={
            "Z": entries(n_points * width),
            "embedding and rows, in work and in input order": 2 * array("float64", n_points, params.n_components + 1),
            "residuals, and what they are made of": 3 * array("float64", n_points, params.n_components),
        },
    )


def run(context: StageContext) -> dict[str, Any]:
    """Find the directions and project the points; certify how far apart they hold the classes, how exactly."""
    task, output = context.task, StoredKernelDiscriminants(context.task.output)
    warn_of_unseen_components(context)
    if not task.output.committed(output.SOLVED):
        totals: KernelSums = context.fold_blocks(sums_of_block, added)
        products, centring = centered_sums(totals.products, totals.sums.sum(axis=0), totals.gram)
        ridge = task.params.part(KernelDiscriminantsParams).ridge * np.trace(products) / totals.gram.diagonal().sum()
        mean = totals.sums.sum(axis=0) / task.dimensions.n_points
        means = (totals.sums / totals.counts[:, np.newaxis] - mean) @ centring
        scatter = products + ridge * totals.gram.toarray()
        solution = discriminants(scatter, means, totals.counts, task.params.n_components)
        directions = centring @ solution.vectors
        arrays = {
            StoredKernelDiscriminants.eigenvalues: solution.eigenvalues,
            StoredKernelDiscriminants.directions: directions,
            StoredKernelDiscriminants.mean: mean @ directions,
            StoredKernelDiscriminants.ridge: np.array(ridge),
        }
        task.output.write_whole(arrays, output.SOLVED)
    empty = context.workspace.empty
    positions = empty((task.dimensions.n_points, task.params.n_components), np.float64)
    directions, mean = output.directions.read(), output.mean.read()

    def project_block(block: int) -> None:
        positions[slice(*task.dimensions.rows(block))] = rows_of_kernel(task, block) @ directions - mean

    context.executor.over(project_block, list(range(task.dimensions.n_blocks)))
    write_embedding(context, StoredKernelDiscriminants.embedding, positions, empty)
    shares = output.eigenvalues.read()
    # P x - lambda x has that length before the kernel shortens it.
    residuals = np.minimum(residuals_of(context, positions, shares), np.sqrt(shares * (1.0 - shares)))
    return {
        "between_shares": shares.tolist(),
        "residual": float(residuals.max()),
        "share_error_bound": float(np.minimum(residuals, 1.0 - shares).max()),  # no share is above one
    }


def residuals_of(context: StageContext, positions: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return |r| / sqrt(rho) (d,) of the directions whose coordinates are positions (N, d), of unit length by S_t."""
    task, empty = context.task, context.workspace.empty
    output, dimensions = StoredKernelDiscriminants(task.output), task.dimensions
    ridge, directions = float(output.ridge.read()), output.directions.read()[:-1]
    stored = task.stored(StoredClasses)
    codes, counts = stored.codes.read(), stored.counts.read()
    sums = np.column_stack([np.bincount(codes, column, len(counts)) for column in positions.T])
    means = sums / counts[:, np.newaxis]
    left, missed, points = (empty(positions.shape, np.float64) for _ in range(3))
    left[:] = means[codes] - positions * shares

    def of_block(block: int) -> None:
        rows, graph = slice(*dimensions.rows(block)), affinity_graph(task.inputs)
        affinities = graph.read_matrix(block, dimensions.n_points)
        weights = task.stored(StoredLandmarkWeights).read_matrix(block, task.params.n_landmarks)
        missed[rows], points[rows] = left[rows] + affinities.astype(np.float64) @ left, weights @ directions

    context.executor.over(of_block, list(range(dimensions.n_blocks)))
    missed -= missed.mean(axis=0)
    missed -= points * (ridge * shares)
    lengths = column_squares(positions) + ridge * column_squares(points)
    return np.sqrt(column_squares(missed) / (ridge * lengths))


def rows_of_kernel(task: StageTask, block: int) -> sp.csr_matrix:
    """Return the rows of [K Z, K 1] of one block: (n, L + 1)."""
    n_landmarks, graph = task.params.n_landmarks, affinity_graph(task.inputs)
    affinities, degrees = graph.read_matrix(block, task.dimensions.n_points), graph.degrees(block)
    reached, renumbered = graph.on_reached(affinities.astype(np.float64))
    spread = renumbered @ weights_at(task, reached) + task.stored(StoredLandmarkWeights).read_matrix(block, n_landmarks)
    return sp.hstack([spread, sp.csr_matrix(1 + degrees).T], format="csr")


def sums_of_block(task: StageTask, block: int) -> KernelSums:
    """Return what one block adds to the sums."""
    rows = rows_of_kernel(task, block)
    weights = task.stored(StoredLandmarkWeights).read_matrix(block, task.params.n_landmarks)
    stored = task.stored(StoredClasses)
    codes, n_classes = stored.codes.read_block(block), len(stored.counts.read_once())
    of_class = sp.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))), (n_classes, len(codes)))
    products, gram = rows.T.tocsr() @ rows, weights.T.tocsr() @ weights
    return KernelSums(products, (of_class @ rows).toarray(), np.bincount(codes, minlength=n_classes), gram)


def most_components(survey: "Survey") -> int | None:
    """Return how many discriminants there are, by classes; None without labels."""
    return None if survey.side.labels is None else len(survey.side.labels.counts) - 1
