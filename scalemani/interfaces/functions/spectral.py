"""The spectral route on arrays in memory: affinities of a neighbour graph, W, the reduced eigenproblem."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.choices import BandwidthOrder, BandwidthSolver, Seed
from scalemani.config.params import Parameters
from scalemani.config.params.parameters import PERPLEXITY
from scalemani.config.validation import check_count, check_seed, check_squares
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.validation import (
    SYMMETRY_TOLERANCE,
    checked_affinities,
    checked_distances,
    checked_neighbors,
    checked_sparse,
    checked_values,
    checked_weights,
)
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources.labels import open_labels
from scalemani.io.sources.side_data import Labels, check_classes, check_weights
from scalemani.kernels.affinities import bandwidths, entropic
from scalemani.kernels.affinities.entropic import (
    GRAPH_ORDERS,
    Multiplicities,
    copies_of_neighbors,
    loops,
    repeated_affinities,
    summed_over_copies,
)
from scalemani.kernels.affinities.entropy import brackets, entropy_problem
from scalemani.kernels.affinities.reweighting import lowered_between_classes
from scalemani.kernels.graph.symmetric import incoming_edges, loop_edges, row_sums, symmetric_rows
from scalemani.kernels.spectral import eigenproblem
from scalemani.kernels.spectral.reduced import (
    ROWS_PER_PRODUCT,
    diagonal_product,
    reduced_laplacian,
    symmetric_part,
    weighted_product,
)


@dataclass(frozen=True)
class Affinities:
    """Affinities of n points to their k neighbours.

    Attributes
    ----------
    values : (n, k) float64, p; each row sums to one, columns are in the order of the distances
    beta : (n,) float64, 1 / (2 sigma^2); the largest float64 where saturated
    iterations : (n,) int32, steps of the root finder
    saturated : (n,) bool, whether at least `perplexity` neighbours tie at the smallest distance; uniform over those
    residuals : (n,) float64, entropy minus log perplexity, in nats; within `tol` unless saturated
    twins : (n,) float64, with weights w alone, else None: the affinity of a copy of the point to each of its w - 1
        other copies. `values` are then those to one copy of each neighbour, and w times them and w - 1 times `twins`
        sum to one
    bounds : (n, 2) float64, between which `beta` lies by theorem 2.2.2 of the thesis, from the first, second and last
        distance alone; the largest float64 where saturated. None with weights
    """

    values: np.ndarray
    beta: np.ndarray
    iterations: np.ndarray
    saturated: np.ndarray
    residuals: np.ndarray
    twins: np.ndarray | None = None
    bounds: np.ndarray | None = None


@names_arguments(solver="affinities.solver", order="affinities.order", tol="affinities.tolerance")
def entropic_affinities(  # noqa: PLR0913 - what a run takes of affinities, and a graph in memory
    distances: np.ndarray,
    perplexity: float = PERPLEXITY,
    *,
    solver: BandwidthSolver = "halley",
    order: BandwidthOrder = "density",
    tol: float = 1e-10,
    indices: np.ndarray | None = None,
    random_state: Seed = 0,
    sample_weight: Any = None,
) -> Affinities:
    """Return Gaussian affinities of which every row has the requested perplexity.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, distances (not squared) to the k >= 2 nearest neighbours, ascending,
        self excluded; squared in float64. Rows may be data points or queries. With a column of zeros before them the
        first column of the values is that of a point to itself, and with N - 1 others nothing is left out. Of distances
        ** (p / 2) affinities are those of the kernel exp(-(d / sigma)^p), such as Laplace's, p = 1
    perplexity : K, the effective number of neighbours, 1 < K < k. The papers use k = 3 K to 5 K
    solver : "halley", "newton", "euler", "bisection", "brent" or "ridder"; all find the same root
    order : what each point starts from: "density", "bounds", "mst", "path" (these two need `indices`), "raster",
        "random", "oracle". Changes the number of steps, not the result
    tol : largest |entropy - log K| in nats
    indices : (n, k) int, rows of the neighbours, for "mst", "path" and `sample_weight`
    random_state : seed of "random" and "path"; None or a generator to draw one
    sample_weight : (n,) real numbers of at least one, how many equal points each stands for; None: one. Affinities are
        then those of the set in which each point is repeated, whose copies have the others at distance zero. Rows are
        data points, k counts distinct neighbours, and K has to be below the neighbours of every row with all copies

    Returns
    -------
    Affinities

    Raises
    ------
    ConfigError
        For a perplexity, solver, order, tolerance or seed that cannot be used, and an order or weights without their
        `indices`.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table, indices of another shape, and
        weights that are not one finite number of at least one a row.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, chapter 2.

    Examples
    --------
    >>> affinities = entropic_affinities([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]], perplexity=2)
    >>> affinities.values.sum(axis=1), affinities.saturated
    (array([1., 1.]), array([False,  True]))
    """
    table = checked_distances(distances)
    n_points, k = table.shape
    names = {"kind": "entropic", "perplexity": perplexity, "solver": solver, "order": order, "tolerance": tol}
    requested = Parameters().with_values({"affinities": names}).resolved("laplacian-eigenmaps").affinities
    seed = check_seed(random_state)
    if indices is None and (order in GRAPH_ORDERS or sample_weight is not None):
        raise ConfigError(f"order {order!r} or sample_weight follows the graph: give indices=graph.indices")
    lists = None if indices is None else np.asarray(indices)
    if order in GRAPH_ORDERS and lists is not None and (lists.shape != table.shape or lists.dtype.kind not in "iu"):
        raise DataError(
            f"indices must be integers of the distances' shape {table.shape}, got {lists.dtype} {lists.shape}"
        )
    squares = np.square(table.astype(np.float64))
    search: Any = {"solver": solver, "order": order, "tol": tol, "rows": entropic.RowsOfData(lists, 0, seed)}
    if sample_weight is None:
        requested.check_reach(k)
        solved = entropic.entropic_affinities(squares, requested.perplexity, **search)
        return Affinities(*solved, bounds=brackets(squares, entropy_problem(k, requested.perplexity, tol)))
    weights = check_weights(sample_weight, n_points)
    counts = Multiplicities.of_rows(weights, 0, checked_neighbors(indices, n_points, k))
    requested.check_reach(k, float(copies_of_neighbors(counts).min(initial=np.inf)))
    rows, twins = repeated_affinities(squares, requested.perplexity, counts, **search)
    return Affinities(*rows, twins=twins)


@names_arguments(sigma="affinities.sigma")
def gaussian_affinities(
    distances: np.ndarray, sigma: float | None = None, *, neighbor: int = 7, random_state: Seed = 0
) -> np.ndarray:
    """Return the weights w = exp(-d^2 / (2 sigma^2)) with one sigma for all points, those of a run with as many points.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, distances (not squared) to the k nearest neighbours, ascending, self
        excluded; squared in float64
    sigma : above zero, in the unit of the distances. None: the median distance of points to their `neighbor`-th
        neighbour, over 10,000 points where there are more; a point whose neighbours are all duplicates does not count
    neighbor : from 1 to k, read where `sigma` is None
    random_state : seed of the 10,000 points; None or a generator to draw one

    Returns
    -------
    (n, k) float64, not normalised, none below 1.2e-38, so that every edge keeps a weight; a run stores them as float32

    Raises
    ------
    ConfigError
        For a sigma that is not above zero, a neighbour that rows do not have, and a seed that cannot be used.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.8.1.

    Examples
    --------
    >>> gaussian_affinities([[0.0, 1.0], [1.0, 2.0]], sigma=1.0).round(3)
    array([[1.   , 0.607],
           [0.607, 0.135]])
    >>> gaussian_affinities([[1.0, 2.0], [1.0, 4.0]], neighbor=2).round(3)  # sigma is 3
    array([[0.946, 0.801],
           [0.946, 0.411]])
    """
    squares = np.square(checked_distances(distances, least_neighbors=1).astype(np.float64))
    (chosen,) = checked_values(affinities__sigma=sigma)
    if chosen is None:
        nth = check_count(neighbor, "neighbor", 1, squares.shape[1], "the number of neighbours that a row has")
        sampled = bandwidths.rows_to_choose_by(check_seed(random_state), len(squares))
        chosen = bandwidths.typical_bandwidth(squares[sampled], nth)
    return bandwidths.gaussian_affinities(squares, chosen)


def self_tuning_affinities(distances: np.ndarray, neighbor: int = 7, *, indices: Any = None) -> np.ndarray:
    """Return the weights w = exp(-d^2 / (2 sigma_n^2)), sigma_n each point's distance to its `neighbor`-th neighbour.

    With `indices` those of Zelnik-Manor and Perona, exp(-d^2 / (sigma_n sigma_m)), the same from both ends of an edge.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, as in `gaussian_affinities`
    neighbor : from 1 (the nearest) to k; the first beyond it that is no duplicate where this one is
    indices : (n, k) int, the neighbours, rows among the n; None: the bandwidth of the row alone

    Returns
    -------
    (n, k) float64, not normalised, none below 1.2e-38; a run stores them as float32

    Raises
    ------
    ConfigError
        For a neighbour that rows do not have.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table, and indices that do not fit them.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 2.1 and 4.5.
    Zelnik-Manor and Perona, Self-tuning spectral clustering, 2004, who take 7.

    Examples
    --------
    >>> self_tuning_affinities([[1.0, 2.0], [0.0, 4.0]], neighbor=1).round(3)
    array([[0.607, 0.135],
           [1.   , 0.607]])
    """
    squares = np.square(checked_distances(distances, least_neighbors=1).astype(np.float64))
    nth = check_count(neighbor, "neighbor", 1, squares.shape[1], "the number of neighbours that a row has")
    lists = None if indices is None else checked_neighbors(indices, *squares.shape)
    return bandwidths.self_tuning_affinities(squares, nth, lists)


SUM_TOLERANCE = 1e-9  # rows of Z must sum to one this closely: what is missing shows up as rows of A that do not vanish


@names_arguments(target_weight="symmetric_affinities.target_weight")
def symmetric_affinities(
    indices: Any,
    values: Any,
    *,
    sample_weight: Any = None,
    twins: Any = None,
    labels: Any = None,
    target_weight: float = 0.0,
) -> sp.csr_matrix:
    """Return W = (P + P^T) / 2 of a neighbour graph with affinities.

    With weights it is that of the set in which each point is repeated, summed over the copies at both ends: its
    eigenvectors are those of the repeated points, and `objective` takes it with the same weights.

    Parameters
    ----------
    indices : (N, k) array-like of int, the neighbours of each point, self excluded
    values : (N, k) array-like of float, their affinities; zeros are no edges
    sample_weight : (N,) real numbers of at least one, how many equal points each stands for; None: one
    twins : (N,), with weights: the affinity of a copy of a point to each of its others, as `entropic_affinities`
        returns it
    labels : (N,) integers or strings, the class of each point; -1, NaN and empty strings for none
    target_weight : float in [0, 1), with labels: entries between points of different classes are multiplied by
        1 - target_weight

    Returns
    -------
    (N, N) CSR matrix in the dtype of `values` (float32, otherwise float64), symmetric bit for bit, columns ascending.
    With weights a point's diagonal entry holds the affinities between its copies

    Raises
    ------
    ConfigError
        For weights without twins, twins without weights, labels without a target weight, a target weight without
        labels, and one out of range.
    DataError
        For tables of different shapes, neighbours out of range, a point among its neighbours, affinities that
        are negative or not finite, weights that are not one finite number of at least one a point, and labels that are
        not one class a point.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 2.1.

    Examples
    --------
    >>> symmetric_affinities([[1], [0], [1]], [[1.0], [1.0], [1.0]]).toarray()
    array([[0. , 1. , 0. ],
           [1. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """
    lists = checked_neighbors(indices, len(indices))
    checked = checked_weights(values, "values", lists.shape)
    n_points, extra = len(lists), None
    neighbors = np.ascontiguousarray(lists, np.int32 if n_points < 2**31 else np.int64)
    weights = np.ascontiguousarray(checked, np.float32 if checked.dtype == np.float32 else np.float64)
    if (sample_weight is None) != (twins is None):
        raise ConfigError(
            "sample_weight and twins go together, got one of them: give both, twins as sm.entropic_affinities(..., "
            "sample_weight=) returns them, zeros for points whose copies do not attract each other"
        )
    if sample_weight is not None:
        counts = Multiplicities.of_rows(check_weights(sample_weight, n_points), 0, neighbors)
        weights = summed_over_copies(weights, counts)
        of_copies = checked_weights(twins, "twins", (n_points,)).astype(np.float64)
        extra = loop_edges(loops(of_copies, counts.points), 0)
    checked_values(symmetric_affinities__target_weight=target_weight)
    if (labels is None) != (target_weight == 0):
        raise ConfigError(f"labels and a target_weight above 0 go together, got {target_weight:g}: give both or none")
    (incoming,) = incoming_edges(neighbors, weights, 0, n_points, [0])
    rows = symmetric_rows(neighbors, weights, 0, incoming, extra)
    entries = rows.values
    if labels is not None:
        codes = check_classes(Labels.of(open_labels(labels, n_points), True)).codes
        entries = lowered_between_classes(rows.indptr, entries, codes, codes[rows.indices], float(target_weight))
    return sp.csr_matrix((entries, rows.indices, rows.indptr), shape=(n_points, n_points))


def reduce_laplacian(W: Any, Z: Any) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the reduced problem A~ = Z^T (D - W) Z and B~ = Z^T D Z of Laplacian eigenmaps.

    Parameters
    ----------
    W : (N, N) sparse, symmetric affinities (`symmetric_affinities`)
    Z : (N, L) sparse, points as combinations of landmarks, rows sum to one (`landmark_weights`)

    Returns
    -------
    A, B : (L, L) CSR float64, symmetric bit for bit; rows of A sum to zero

    Raises
    ------
    DataError
        For shapes that do not fit, a W that is not symmetric, negative or not finite, a Z that is not finite or whose
        rows do not sum to one.
    DisconnectedGraphError
        For a point without any affinity.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.3.

    Examples
    --------
    >>> A, B = reduce_laplacian([[0.0, 2.0], [2.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]])
    >>> A.toarray(), B.toarray()
    (array([[ 0.5, -0.5],
           [-0.5,  0.5]]), array([[2.5, 0.5],
           [0.5, 0.5]]))
    """
    weights = checked_sparse(Z, "Z")
    affinities = checked_affinities(W, weights.shape[0], "rows of Z")
    sums = np.asarray(weights.sum(axis=1)).ravel()
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > SUM_TOLERANCE:
        raise DataError(f"rows of Z must sum to one, row {worst} sums to {sums[worst]:.9g}: divide each row by its sum")
    degrees = row_sums(affinities.data, affinities.indptr)
    affinity_parts, degree_parts = [], []
    for first in range(0, weights.shape[0], ROWS_PER_PRODUCT):
        rows = slice(first, first + ROWS_PER_PRODUCT)
        affinity_parts.append(weighted_product(weights[rows], affinities[rows], weights))
        degree_parts.append(diagonal_product(weights[rows], degrees[rows]))
    reduced = reduced_laplacian(affinity_parts, degree_parts)
    return reduced.laplacian, reduced.mass


def solve_reduced(A: Any, B: Any, n_components: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest eigenvalues and vectors of A v = lambda B v, the constant vector left out.

    Parameters
    ----------
    A, B : (L, L) sparse or dense, symmetric; rows of A sum to zero (`reduce_laplacian`)
    n_components : d, from 1 to L - 1

    Returns
    -------
    eigenvalues : (d,) float64, ascending, in [0, 2]
    vectors : (L, d) float64, V^T B V = I; the largest absolute entry of each column is positive; rows of landmarks that
        no point uses are zero

    Raises
    ------
    DataError
        For matrices that do not fit, are not finite or not symmetric.
    DisconnectedGraphError
        For an eigenvalue zero other than the constant vector's: vectors of a null space are one basis of many.
    RankError
        For a B that is singular beyond unused landmarks, and fewer landmarks than components.
    NumericalError, ConvergenceError
        For rows of A that do not sum to zero; for residuals that stay large.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.3.

    Examples
    --------
    >>> eigenvalues, vectors = solve_reduced([[1.0, -1.0], [-1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], n_components=1)
    >>> eigenvalues.round(6), vectors.ravel().round(6)
    (array([2.]), array([ 0.707107, -0.707107]))
    """
    a, b = checked_sparse(A, "A"), checked_sparse(B, "B")
    if a.shape != b.shape or a.shape[0] != a.shape[1]:
        raise DataError(f"A and B must both be (L, L), got {a.shape} and {b.shape}")
    for matrix, name in ((a, "A"), (b, "B")):
        largest = float(abs(matrix).max())
        check_squares(largest, name)
        if abs(matrix - matrix.T).max() > SYMMETRY_TOLERANCE * largest:
            raise DataError(f"{name} must be symmetric: pass ({name} + {name}.T) / 2 if it is up to rounding")
    n_wanted = check_count(n_components, "n_components", 1, a.shape[0] - 1, "the number of landmarks less one")
    solution = eigenproblem.solve_reduced(symmetric_part(a), symmetric_part(b), n_wanted)
    eigenproblem.refuse_null_space(solution.n_zero)
    return eigenproblem.within_range(solution.eigenvalues), solution.vectors
