"""Landmarks that are added where they are lacking, until their embedding is as near to the exact one as wanted."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.choices import Seed
from scalemani.config.validation import check_count, check_seed
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.validation import checked_affinities
from scalemani.io.sources import points_in_memory
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.weights import local_weights
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral import eigenproblem
from scalemani.kernels.spectral.reduced import diagonal_product, reduced_laplacian, weighted_product


class GrownLandmarks(NamedTuple):
    """Landmarks, the embedding by them, and how they grew.

    Attributes
    ----------
    rows : (L,) int64, rows of the points, in the order in which they were added
    embedding : (N, d) float64, Z times the solution of the reduced problem
    sizes, angles : (steps,), the landmarks of each step, and the largest angle to the reference, in radians
    renewed : (steps,) int64, rows of Z that were computed; the others were kept
    reached : whether the last angle is at most the one wanted
    """

    rows: np.ndarray
    embedding: np.ndarray
    sizes: np.ndarray
    angles: np.ndarray
    renewed: np.ndarray
    reached: bool


def grow_landmarks(  # noqa: PLR0913 - each has a default but the data
    points: Any,
    W: Any,
    reference: Any,
    *,
    angle: float = 0.1,
    batch: int = 100,
    most: int | None = None,
    n_neighbors: int = 5,
    random_state: Seed = 0,
) -> GrownLandmarks:
    """Add landmarks in batches until Laplacian eigenmaps by them are within an angle of a reference.

    The first batch is drawn at random; a further one among the points in proportion to the squared residual of the full
    problem there, |D^-1/2 (L - lambda D) u|^2. Rows of Z are computed anew only where a new landmark is among a point's
    nearest.

    Parameters
    ----------
    points : (N, D) array-like of real numbers
    W : (N, N) sparse, symmetric affinities (`symmetric_affinities`, or `affinities` of a run)
    reference : (N, d) array-like, columns that span the embedding that is wanted, as `embedding_` of
        `LaplacianEigenmaps` by "refine" or "exact" with the same W
    angle : between the spans, weighted by degrees, in radians, above 0
    batch : landmarks added at once, more than d
    most : landmarks at most; None: N
    n_neighbors : K_Z, at most `batch`
    random_state : seed; None draws one

    Returns
    -------
    GrownLandmarks

    Raises
    ------
    ConfigError
        For numbers out of range.
    DataError
        For a reference of another number of rows, and arrays that `reduce_laplacian` does not take.
    DisconnectedGraphError, RankError
        As in `solve_reduced`.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.4, for the question.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.linspace(0, 1, 60)[:, None]
    >>> W = np.exp(-50 * (points - points.T) ** 2) - np.eye(60)
    >>> grow_landmarks(points, W, np.cos(np.pi * points), angle=0.5, batch=10, n_neighbors=2).reached
    True
    """
    table = points_in_memory(points)
    affinities, wanted = checked_affinities(W, len(table), "points"), np.asarray(reference, np.float64)
    if wanted.ndim != 2 or len(wanted) != len(table) or not np.isfinite(wanted).all():
        raise DataError(f"reference must be finite, (N, d) with N = {len(table)}, got {wanted.shape}: give embedding_")
    if not angle > 0:
        raise ConfigError(f"angle must be above 0, got {angle}: give radians, 0.1 for instance")
    n_components = wanted.shape[1]
    n_added = check_count(batch, "batch", n_components + 1, len(table), "the number of points")
    n_most = check_count(len(table) if most is None else most, "most", n_added, len(table), "the number of points")
    width = check_count(n_neighbors, "n_neighbors", 1, n_added, "the landmarks of a batch")
    degrees = row_sums(affinities.data, affinities.indptr)
    random, roots = generator(check_seed(random_state), "grown landmarks"), np.sqrt(degrees)[:, np.newaxis]
    rows = random.choice(len(table), n_added, replace=False)
    indices, squares = nearest_landmarks(table, table[rows], width)
    values, changed, steps = np.empty(indices.shape), np.arange(len(table)), []
    while True:
        values[changed] = local_weights(table[changed], table[rows], indices[changed])
        weights = sparse_rows(indices, values, len(rows))
        eigenvalues, embedding = embedded(affinities, degrees, weights, n_components)
        found = subspace_angle(roots * embedding, roots * wanted)
        steps.append((len(rows), found, len(changed)))
        if found <= angle or len(rows) == n_most:
            sizes, angles, renewed = (np.array(column) for column in zip(*steps, strict=True))
            return GrownLandmarks(rows, embedding, sizes, angles, renewed, bool(found <= angle))
        residuals = roots * embedding * (1 - eigenvalues) - affinities @ embedding / roots
        shares = np.square(residuals).sum(axis=1) + np.finfo(np.float64).tiny
        shares[rows] = 0.0
        added = random.choice(len(table), min(n_added, n_most - len(rows)), replace=False, p=shares / shares.sum())
        nearer, their_squares = nearest_landmarks(table, table[added], min(width, len(added)))
        both = np.concatenate([indices, nearer + len(rows)], axis=1)
        all_squares = np.concatenate([squares, their_squares], axis=1)
        order = np.lexsort((both, all_squares), axis=1)[:, :width]
        changed = np.flatnonzero((np.take_along_axis(both, order, axis=1) >= len(rows)).any(axis=1))
        indices, squares = (np.take_along_axis(one, order, axis=1) for one in (both, all_squares))
        rows = np.concatenate([rows, added])


def sparse_rows(indices: np.ndarray, values: np.ndarray, n_landmarks: int) -> sp.csr_matrix:
    """Return Z (N, L) of landmarks and weights (N, K_Z) of each point."""
    bounds = np.arange(0, indices.size + 1, indices.shape[1])
    # Copied: columns are sorted in place, and rows are kept for the next step as they are.
    weights = sp.csr_matrix((values.ravel(), indices.ravel(), bounds), (len(indices), n_landmarks), copy=True)
    weights.sort_indices()
    return weights


def embedded(
    affinities: sp.csr_matrix, degrees: np.ndarray, weights: sp.csr_matrix, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (d,) and the embedding (N, d) by Z (N, L)."""
    reduced = reduced_laplacian([weighted_product(weights, affinities, weights)], [diagonal_product(weights, degrees)])
    solution = eigenproblem.solve_reduced(reduced.laplacian, reduced.mass, n_components)
    eigenproblem.refuse_null_space(solution.n_zero)
    return solution.eigenvalues, weights @ solution.vectors
