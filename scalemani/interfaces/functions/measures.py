"""Measures of graphs, embeddings and clusterings, as `scalemani.measures`, and of finished runs: `measure_run`."""

from typing import Any

import numpy as np

from scalemani.config.validation import check_count, check_seed
from scalemani.interfaces.functions.validation import (
    check_alike,
    check_both,
    check_clusterings,
    check_labels,
    check_neighbors,
    measured_rows,
    sampled,
)
from scalemani.io.sources import open_labels, points_in_memory
from scalemani.kernels import measures
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.measures import (
    PAIRS_AT_ONCE,
    Measure,
    closer_counts,
    mean_of,
    nearest_others,
    squared_differences,
    trust_of_counts,
)
from scalemani.kernels.rows.metrics import EUCLIDEAN
from scalemani.runs.input_order import InputOrder
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints, StoredWorkPoints

SAMPLED_POINTS = 1000  # distances from each to all points are computed
SAMPLED_LABELS = 10_000  # a search tree answers for each

__all__ = [
    "Measure",
    "adjusted_rand_index",
    "clustering_error",
    "knn_accuracy",
    "neighbor_preservation",
    "normalized_mutual_information",
    "procrustes_error",
    "recall",
    "subspace_angle",
    "trustworthiness",
]


def recall(
    indices: Any,
    points: Any,
    *,
    metric: str = EUCLIDEAN,
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Any = 0,
) -> Measure:
    """Return the share of true nearest neighbours that a neighbour graph holds.

    Parameters
    ----------
    indices : (N, k) integers, rows of each point's neighbours, itself excluded: `graph.indices`
    points : (N, D), as `knn_graph` takes them, but read into memory; sparse ones stay so
    metric : how points are compared, as in `knn_graph`: one by which the graph was not made gives another truth
    n_sampled : how many points are looked at, drawn by `random_state`; None looks at all. Each takes N distances
    random_state : a seed, None, or a generator to draw one

    Returns
    -------
    Measure : a neighbour counts that is no farther than the true k-th one, whichever of equally far points it is

    Raises
    ------
    ConfigError
        For a number of points or a seed out of range, and unknown metrics.
    DataError
        For points that are not a finite table, and indices that are not N rows of k distinct other points.

    Examples
    --------
    >>> recall([[1], [0], [1]], [[0.0], [1.0], [5.0]])
    Measure(value=1.0, error=0.0, n_sampled=3)
    >>> recall([[1], [0], [0]], [[0.0], [1.0], [5.0]]).value
    0.6666666666666666
    """
    table = measured_rows(points, metric)
    neighbors = check_neighbors(indices, table.shape[0])
    rows = sampled(table.shape[0], n_sampled, random_state, "recall")
    return mean_of(measures.neighbor_shares(table, neighbors[rows], rows), table.shape[0])


def trustworthiness(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: str = EUCLIDEAN,
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Any = 0,
) -> Measure:
    """Return how far neighbours in an embedding are neighbours in the data.

    1 - 2 / (N k (2N - 3k - 1)) sum over points and their k nearest in the embedding of max(0, rank in the data - k).

    Parameters
    ----------
    points : (N, D) data, read into memory; sparse ones stay so
    embedding : (N, d) finite numbers
    n_neighbors : k, below N / 2
    metric, n_sampled, random_state : as in `recall`; an embedding is always Euclidean

    Returns
    -------
    Measure : 1 where all neighbours in the embedding are among the k nearest in the data

    Raises
    ------
    ConfigError
        For numbers or a seed out of range, and unknown metrics.
    DataError
        For points or an embedding that are not finite tables of N rows.

    References
    ----------
    Venna and Kaski, Neighborhood preservation in nonlinear projection methods: an experimental study, ICANN 2001.

    Examples
    --------
    >>> points = [[0.0], [1.0], [3.0], [6.0], [10.0]]
    >>> trustworthiness(points, points, n_neighbors=2).value
    1.0
    """
    table, positions = check_both(points, embedding, metric)
    most = (table.shape[0] - 1) // 2
    k = check_count(n_neighbors, "n_neighbors", 1, most, "less than half of the points")
    rows = sampled(table.shape[0], n_sampled, random_state, "trustworthiness")
    found = measures.nearest_others(positions, rows, k)
    return mean_of(measures.trust(table, found, rows), table.shape[0])


def neighbor_preservation(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: str = EUCLIDEAN,
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Any = 0,
) -> Measure:
    """Return the mean share of the k nearest neighbours in an embedding that are among the k nearest in the data.

    Parameters
    ----------
    points : (N, D) data, read into memory; sparse ones stay so
    embedding : (N, d) finite numbers
    n_neighbors : k, below N
    metric, n_sampled, random_state : as in `recall`; an embedding is always Euclidean

    Returns
    -------
    Measure : equally far points count as one another

    Raises
    ------
    ConfigError
        For numbers or a seed out of range, and unknown metrics.
    DataError
        For points or an embedding that are not finite tables of N rows.

    Examples
    --------
    >>> neighbor_preservation([[0.0], [1.0], [3.0]], [[0.0], [1.0], [-2.0]], n_neighbors=1).value
    0.6666666666666666
    """
    table, positions = check_both(points, embedding, metric)
    k = check_count(n_neighbors, "n_neighbors", 1, table.shape[0] - 1, "the number of other points")
    rows = sampled(table.shape[0], n_sampled, random_state, "neighbor preservation")
    found = measures.nearest_others(positions, rows, k)
    return mean_of(measures.neighbor_shares(table, found, rows), table.shape[0])


def knn_accuracy(
    embedding: Any,
    labels: Any,
    n_neighbors: int = 1,
    *,
    n_sampled: int | None = SAMPLED_LABELS,
    random_state: Any = 0,
) -> Measure:
    """Return the share of points whose label wins among their nearest others in an embedding.

    Parameters
    ----------
    embedding : (N, d) finite numbers
    labels : (N,) classes of any type
    n_neighbors : k, below N; of labels that win equally often the first in sorted order counts
    n_sampled, random_state : as in `recall`

    Returns
    -------
    Measure

    Raises
    ------
    ConfigError
        For numbers or a seed out of range.
    DataError
        For an embedding that is not a finite table, other than N labels, and labels that are no classes.

    Examples
    --------
    >>> knn_accuracy([[0.0], [0.1], [5.0], [5.1], [9.0]], ["a", "a", "b", "b", "a"]).value
    0.8
    """
    positions = points_in_memory(embedding, "embedding")
    classes = check_labels(labels, "labels", len(positions))
    k = check_count(n_neighbors, "n_neighbors", 1, len(positions) - 1, "the number of other points")
    rows = sampled(len(positions), n_sampled, random_state, "knn accuracy")
    return mean_of(measures.label_hits(positions, classes, k, rows), len(positions))


def procrustes_error(embedding: Any, reference: Any) -> float:
    """Return |X - R| / |R| after the best translation, rotation, reflection and scale of an embedding X.

    Parameters
    ----------
    embedding, reference : (N, d) finite numbers X and R; R is centred first

    Returns
    -------
    float : in [0, 1], 0 for equal shapes; not squared

    Raises
    ------
    DataError
        For anything but two finite tables of one shape.

    References
    ----------
    Cox and Cox, Multidimensional Scaling, 1994, chapter 5.

    Examples
    --------
    >>> procrustes_error([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]]) < 1e-7
    True
    """
    return measures.procrustes_error(*check_alike(embedding, reference))


def subspace_angle(vectors: Any, reference: Any) -> float:
    """Return the largest principal angle between what the columns of two tables span, in radians.

    Parameters
    ----------
    vectors, reference : (N, d) finite numbers, d linearly independent columns each, such as two spectral embeddings

    Returns
    -------
    float : in [0, pi / 2]; small angles keep their relative accuracy

    Raises
    ------
    DataError
        For anything but two finite tables of one shape.

    References
    ----------
    Knyazev and Argentati, Principal angles between subspaces in an A-based scalar product, SIAM J. Sci. Comput. 2002.

    Examples
    --------
    >>> round(subspace_angle([[1.0], [0.0]], [[1.0], [1.0]]), 6)
    0.785398
    """
    return measures.subspace_angle(*check_alike(vectors, reference))


def clustering_error(labels: Any, reference: Any) -> float:
    """Return the share of points in the wrong cluster, after the best one-to-one matching of clusters.

    Parameters
    ----------
    labels, reference : (N,) classes of any type; their numbers may differ

    Returns
    -------
    float : in [0, 1)

    Raises
    ------
    DataError
        For anything but two lists of N classes.

    Examples
    --------
    >>> clustering_error([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.25
    """
    return measures.clustering_error(*check_clusterings(labels, reference))


def normalized_mutual_information(labels: Any, reference: Any) -> float:
    """Return the mutual information of two clusterings over the mean of their entropies.

    Parameters
    ----------
    labels, reference : (N,) classes of any type; their numbers may differ

    Returns
    -------
    float : in [0, 1]; 1 where both part the points alike

    Raises
    ------
    DataError
        For anything but two lists of N classes.

    References
    ----------
    Vinh, Epps and Bailey, Information theoretic measures for clusterings comparison, JMLR 2010.

    Examples
    --------
    >>> round(normalized_mutual_information([0, 0, 1, 1], ["b", "b", "a", "a"]), 6)
    1.0
    """
    return measures.normalized_mutual_information(*check_clusterings(labels, reference))


def adjusted_rand_index(labels: Any, reference: Any) -> float:
    """Return the share of pairs of points on which two clusterings agree, adjusted for chance.

    Parameters
    ----------
    labels, reference : (N,) classes of any type; their numbers may differ

    Returns
    -------
    float : at most 1, for equal clusterings; about 0 for unrelated ones

    Raises
    ------
    DataError
        For anything but two lists of N classes.

    References
    ----------
    Hubert and Arabie, Comparing partitions, Journal of Classification 1985.

    Examples
    --------
    >>> round(adjusted_rand_index([0, 0, 1, 2], ["b", "b", "a", "a"]), 6)
    0.571429
    """
    return measures.adjusted_rand_index(*check_clusterings(labels, reference))


NEIGHBORS = 15  # of a point, where nothing is asked: as many as most embeddings are looked at by


def measure_run(
    run: Run,
    labels: Any = None,
    *,
    n_neighbors: int | None = None,
    n_sampled: int = SAMPLED_POINTS,
    random_state: Any = 0,
) -> dict[str, Measure | float]:
    """Return the measures of a finished run by their names.

    Parameters
    ----------
    run : a finished run
    labels : (N,) classes in input order, or a file of them; None: nothing that needs them is measured. Where equal rows
        are one point, that of the first of them counts, and each point once
    n_neighbors : k, below half of the points; None: 15, or fewer where the points are few
    n_sampled : how many points are looked at, drawn by `random_state`; ten times as many for labels
    random_state : a seed, None, or a generator to draw one

    Returns
    -------
    dict
        `recall` of the graph; `trustworthiness`, `neighbor_preservation` of the embedding; with labels `1-nn accuracy`
        and `k-nn accuracy`, and of a clustering `clustering_error`, `normalized_mutual_information` and
        `adjusted_rand_index`, which are numbers over all points

    Raises
    ------
    ConfigError, DataError
        For numbers out of range and labels that are not one class for each point.
    StoreError
        Where the run is not finished.
    """
    n_points, seed = run.dimensions.n_points, check_seed(random_state)
    most = (n_points - 1) // 2
    k = min(NEIGHBORS, most) if n_neighbors is None else n_neighbors
    check_count(k, "n_neighbors", 1, most, "less than half of the points")
    wanted = check_count(n_sampled, "n_sampled")
    classes = None
    if labels is not None:
        classes = check_labels(run.of_points(open_labels(labels, run.n_input_points)), "labels", n_points)
    rows = sample_rows(seed, "measures/run", n_points, min(wanted, n_points))
    positions = run.stored_embedding.read() if run.embeds else None
    found = against_points(run, positions, rows, k)
    if classes is not None and positions is not None:
        many = min(n_points, wanted * (SAMPLED_LABELS // SAMPLED_POINTS))
        for nearest in sorted({1, k}):
            found[f"{nearest}-nn accuracy"] = knn_accuracy(
                positions, classes, nearest, n_sampled=many, random_state=seed
            )
    if classes is not None and StoredClustering.STAGE in run.keys:
        clusters = np.asarray(run.labels[...])  # of points that are a row each: clustering takes no weights
        for measure in (
            clustering_error,
            normalized_mutual_information,
            adjusted_rand_index,
        ):
            found[measure.__name__] = measure(clusters, classes)
    return found


def against_points(run: Run, positions: np.ndarray | None, rows: np.ndarray, k: int) -> dict[str, Measure | float]:
    """Return the measures at rows (M,) of the points of a run: recall of its graph, and those of its embedding (N, d).

    The latter look at k neighbours in the embedding.
    """
    n_points, width = run.dimensions.n_points, 0
    tables = []
    if StoredNeighbors.STAGE in run.keys:
        tables.append(neighbors_of(run, rows))
        width = tables[0].shape[1]
    if positions is not None:
        tables.append(nearest_others(positions, rows, k))
    closer = count_closer(run, rows, np.hstack(tables))
    found: dict[str, Measure | float] = {}
    if width:
        found["recall"] = mean_of(np.mean(closer[:, :width] < width, axis=1), n_points)
    if positions is not None:
        ranks = closer[:, width:]
        found["trustworthiness"] = mean_of(trust_of_counts(ranks, n_points), n_points)
        found["neighbor_preservation"] = mean_of(np.mean(ranks < k, axis=1), n_points)
    return found


def neighbors_of(run: Run, rows: np.ndarray) -> np.ndarray:
    """Return the neighbours (M, k) of some rows in the graph of a run, all in input order."""
    order = InputOrder(StoredWorkPoints(run.group(StoredWorkPoints.STAGE)), run.rows)
    stored = StoredNeighbors(run.group(StoredNeighbors.STAGE))
    return order.input_rows[stored.indices(stored.final_step).gather(order.work_rows[rows])]


def count_closer(run: Run, rows: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return how many points are closer to each row (M,) than each of its neighbours (M, K): (M, K) int64."""
    points = StoredPoints(run.group(StoredPoints.STAGE)).points
    queries = points.gather(rows)
    limits, counts = np.empty(neighbors.shape), np.zeros(neighbors.shape, np.int64)
    for block in range(run.dimensions.n_blocks):
        start, stop = run.dimensions.rows(block)
        of_row, column = np.nonzero((neighbors >= start) & (neighbors < stop))
        table = points.read_block(block)
        for first in range(0, len(of_row), PAIRS_AT_ONCE):
            one, other = of_row[first : first + PAIRS_AT_ONCE], column[first : first + PAIRS_AT_ONCE]
            limits[one, other] = squared_differences(queries[one], table[neighbors[one, other] - start])
    for block in range(run.dimensions.n_blocks):
        counts += closer_counts(queries, rows - run.dimensions.rows(block)[0], limits, points.read_block(block))
    return counts
