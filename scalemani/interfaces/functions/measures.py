"""Measures of graphs, embeddings and clusterings, as `scalemani.measures`: with error bars where points are sampled."""

from typing import Any

import numpy as np

from scalemani.config.choices import CoordinateMetric, Seed
from scalemani.config.validation import check_count, check_seed
from scalemani.errors import DataError
from scalemani.interfaces.functions.validation import (
    check_alike,
    check_both,
    check_clusterings,
    check_labels,
    checked_neighbors,
    distances_of_pairs,
    labelled_points,
    measured_rows,
    sampled,
)
from scalemani.io.sources import points_in_memory
from scalemani.kernels import measures
from scalemani.kernels.measures import Measure, mean_of

SAMPLED_POINTS = 1000  # distances from each to all points are computed
SAMPLED_LABELS = 10_000  # a search tree answers for each
SAMPLED_PAIRS = 10_000  # each is compared with ten others of the sample
SAMPLED_CLASSES = 4000  # each is compared with all others of the sample

__all__ = [
    "Measure",
    "adjusted_rand_index",
    "center_triplet_accuracy",
    "clustering_error",
    "continuity",
    "density_correlation",
    "distance_correlation",
    "knn_accuracy",
    "neighbor_preservation",
    "normalized_mutual_information",
    "procrustes_error",
    "recall",
    "silhouette",
    "subspace_angle",
    "triplet_accuracy",
    "trustworthiness",
]


def recall(
    indices: Any,
    points: Any,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Seed = 0,
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
    neighbors = checked_neighbors(indices, table.shape[0])
    if (np.diff(np.sort(neighbors, axis=1), axis=1) == 0).any():
        raise DataError("indices must name k different points in each row: leave repeated neighbours out")
    rows = sampled(table.shape[0], n_sampled, random_state, "recall")
    return mean_of(measures.neighbor_shares(table, neighbors[rows], rows), table.shape[0])


def trustworthiness(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Seed = 0,
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
    neighbors = measures.nearest_others(positions, rows, k)
    return mean_of(measures.trust(table, neighbors, rows), table.shape[0])


def neighbor_preservation(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Seed = 0,
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
    neighbors = measures.nearest_others(positions, rows, k)
    return mean_of(measures.neighbor_shares(table, neighbors, rows), table.shape[0])


def continuity(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Seed = 0,
) -> Measure:
    """Return how far neighbours in the data are neighbours in an embedding: `trustworthiness` with the two exchanged.

    Parameters
    ----------
    points, embedding, n_neighbors, metric, n_sampled, random_state : as in `trustworthiness`

    Returns
    -------
    Measure : low where an embedding tears, 1 at best; what shares a place there is nearest to it, and NaN if all do

    Raises
    ------
    ConfigError, DataError
        As `trustworthiness` does.

    References
    ----------
    Venna and Kaski, Neighborhood preservation in nonlinear projection methods: an experimental study, ICANN 2001.

    Examples
    --------
    >>> points, embedding = [[0.0], [1.0], [3.3], [7.0], [12.0]], [[0.0], [1.0], [3.3], [7.0], [0.4]]
    >>> round(continuity(points, embedding, n_neighbors=2).value, 4)
    0.5333
    """
    table, positions = check_both(points, embedding, metric)
    most = (table.shape[0] - 1) // 2
    k = check_count(n_neighbors, "n_neighbors", 1, most, "less than half of the points")
    rows = sampled(table.shape[0], n_sampled, random_state, "continuity")
    neighbors, _ = measures.nearest_in(table, rows, k)
    return measures.continuity(positions, neighbors, rows)


def density_correlation(
    points: Any,
    embedding: Any,
    n_neighbors: int = 15,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_POINTS,
    random_state: Seed = 0,
) -> Measure:
    """Return Spearman's correlation of local radii, the mean distance of the k nearest, in data and embedding.

    Parameters
    ----------
    points, embedding, metric, n_sampled, random_state : as in `trustworthiness`
    n_neighbors : k, below N

    Returns
    -------
    Measure : in [-1, 1]; 1 where what is dense in the data is dense in the embedding, 0 where density says nothing

    Raises
    ------
    ConfigError, DataError
        As `neighbor_preservation` does.

    References
    ----------
    Narayan, Berger and Cho, Nature Biotechnology 2021: there the correlation of logarithms.

    Examples
    --------
    >>> points = [[0.0], [1.0], [3.0], [7.0]]
    >>> density_correlation(points, points, n_neighbors=1).value
    1.0
    """
    table, positions = check_both(points, embedding, metric)
    k = check_count(n_neighbors, "n_neighbors", 1, table.shape[0] - 1, "the number of other points")
    rows = sampled(table.shape[0], n_sampled, random_state, "density")
    _, distances = measures.nearest_in(table, rows, k)
    neighbors = measures.nearest_others(positions, rows, k)
    in_map = measures.mean_distances(positions, neighbors, rows)
    return measures.density_correlation(distances.mean(axis=1), in_map, len(positions))


def triplet_accuracy(
    points: Any,
    embedding: Any,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_PAIRS,
    random_state: Seed = 0,
) -> Measure:
    """Return the share of random triplets of which the embedding tells which of two points is nearer to the third.

    Parameters
    ----------
    points, embedding, metric : as in `trustworthiness`
    n_sampled : points looked at, in a random order: each with the ten that follow it, in 45 triplets. None: all
    random_state : a seed, None, or a generator to draw one

    Returns
    -------
    Measure : 1 where the order of all distances is that in the data, 0.5 by chance; equal distances count half

    Raises
    ------
    ConfigError, DataError
        As `trustworthiness` does.

    References
    ----------
    Wang, Huang, Rudin and Shaposhnik, Understanding how dimension reduction tools work, JMLR 2021.

    Examples
    --------
    >>> triplet_accuracy([[0.0], [1.0], [3.0]], [[0.0], [1.0], [-1.5]]).value
    0.6666666666666666
    """
    pairs = distances_of_pairs(points, embedding, metric, n_sampled, random_state)
    return measures.of_pairs(measures.triplet_share, *pairs)


def distance_correlation(
    points: Any,
    embedding: Any,
    *,
    metric: CoordinateMetric = "euclidean",
    n_sampled: int | None = SAMPLED_PAIRS,
    random_state: Seed = 0,
) -> Measure:
    """Return Spearman's correlation of the distances of random pairs of points in data and embedding.

    Parameters
    ----------
    points, embedding, metric, n_sampled, random_state : as in `triplet_accuracy`

    Returns
    -------
    Measure : in [-1, 1]; 1 where distances have the same order, 0 where those in the embedding say nothing

    Raises
    ------
    ConfigError, DataError
        As `trustworthiness` does.

    References
    ----------
    Kobak and Berens, The art of using t-SNE for single-cell transcriptomics, Nature Communications 2019.

    Examples
    --------
    >>> points = [[0.0], [1.0], [3.0], [7.0]]
    >>> round(distance_correlation(points, points).value, 12)
    1.0
    """
    return measures.of_pairs(
        measures.rank_correlation, *distances_of_pairs(points, embedding, metric, n_sampled, random_state)
    )


def center_triplet_accuracy(
    points: Any, embedding: Any, labels: Any, *, n_sampled: int | None = SAMPLED_PAIRS, random_state: Seed = 0
) -> Measure:
    """Return the share of triplets of class centres of which the embedding tells which of two is nearer to the third.

    Parameters
    ----------
    points, embedding : as in `trustworthiness`; distances are Euclidean
    labels : (N,) classes, as in `knn_accuracy`; of more than 100 those with most of the sampled points
    n_sampled, random_state : points whose means the centres are, as in `recall`

    Returns
    -------
    Measure : 1 where classes are arranged as in the data, 0.5 by chance; NaN below three classes

    Raises
    ------
    ConfigError, DataError
        As `trustworthiness` and `knn_accuracy` do.

    References
    ----------
    Wang, Huang, Rudin and Shaposhnik, Understanding how dimension reduction tools work, JMLR 2021.

    Examples
    --------
    >>> center_triplet_accuracy([[0.0], [1.0], [3.0]], [[0.0], [1.0], [-1.5]], ["a", "b", "c"]).value
    0.6666666666666666
    """
    table, positions = check_both(points, embedding, "euclidean")
    classes = check_labels(labels, "labels", len(positions))
    labelled = labelled_points(classes, least=2)
    drawn = sampled(len(labelled), n_sampled, random_state, "centers")
    rows = labelled[measures.shuffled(drawn, check_seed(random_state))]
    of_classes = np.unique(classes[labelled], return_inverse=True)[1][np.searchsorted(labelled, rows)]
    return measures.center_triplets(table[rows], positions[rows], of_classes, len(labelled))


def silhouette(
    embedding: Any, labels: Any, *, n_sampled: int | None = SAMPLED_CLASSES, random_state: Seed = 0
) -> Measure:
    """Return the mean silhouette of classes in an embedding: how far apart they are for their width.

    Parameters
    ----------
    embedding : (N, d) finite numbers
    labels : (N,) classes, as in `knn_accuracy`
    n_sampled, random_state : as in `recall`; sampled points are compared with each other, a draw the error leaves out

    Returns
    -------
    Measure : in [-1, 1]; 1 for far islands of one class each, 0 for classes that overlap; NaN of one class

    Raises
    ------
    ConfigError, DataError
        As `knn_accuracy` does.

    References
    ----------
    Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis, 1987.

    Examples
    --------
    >>> round(silhouette([[0.0], [1.0], [9.0], [10.0]], ["a", "a", "b", "b"]).value, 6)
    0.888545
    """
    positions = points_in_memory(embedding, "embedding")
    classes = check_labels(labels, "labels", len(positions))
    labelled = labelled_points(classes, least=2)
    rows = labelled[sampled(len(labelled), n_sampled, random_state, "silhouette")]
    codes = np.unique(classes[rows], return_inverse=True)[1]
    return mean_of(measures.silhouettes(positions[rows], codes), len(labelled))


def knn_accuracy(
    embedding: Any,
    labels: Any,
    n_neighbors: int = 1,
    *,
    n_sampled: int | None = SAMPLED_LABELS,
    random_state: Seed = 0,
) -> Measure:
    """Return the share of points whose label wins among their nearest others in an embedding.

    Parameters
    ----------
    embedding : (N, d) finite numbers
    labels : (N,) classes of any type; points without one, None, NaN, NA or an empty text, are left out, with a warning
    n_neighbors : k, below the number of points with a label; of labels that win equally often the first in sorted order
        counts
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
    labelled = labelled_points(classes, least=2)
    positions, classes = positions[labelled], classes[labelled]
    k = check_count(n_neighbors, "n_neighbors", 1, len(positions) - 1, "the number of other points with a label")
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
    labels, reference : (N,) classes of any type; their numbers may differ. Points without one are left out, as in
        `knn_accuracy`

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
    labels, reference : (N,) classes of any type; their numbers may differ. Points without one are left out, as in
        `knn_accuracy`

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
    labels, reference : (N,) classes of any type; their numbers may differ. Points without one are left out, as in
        `knn_accuracy`

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
