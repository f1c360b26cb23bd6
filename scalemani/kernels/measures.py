"""How good an embedding, a graph or a clustering is: against the data, against labels, against a reference.

Measures over points return one number a point, so that a caller who samples points knows how uncertain the mean is.
Source: [LLL] 4.8.1 for the Procrustes error and 4.8.4 for the clustering error.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.arrays.draws import row_words, sample_rows
from scalemani.kernels.arrays.grouping import repeated_in_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.plain import distances_in
from scalemani.kernels.rows.compressed import Points, about_center, dense_rows, jaccard_distances, jaccard_of_pairs

ROWS_PER_BLOCK = 256  # sampled rows whose distances to all points are held at once
ROWS_PER_PANEL = 1 << 14  # points that are converted to float64 at a time
QUERIES_AT_ONCE = 1 << 12  # sampled rows that are held in float64
PAIRS_AT_ONCE = 1 << 12  # neighbours whose differences to their points are held
FURTHER_TERMS = 8  # roundings of a distance in addition to those of its product of D terms
ROUNDING = 1e-12  # of the squared lengths that a squared distance is made of: neighbours closer than this tie


class Measure(NamedTuple):
    """A mean over points, or a quantile.

    Attributes
    ----------
    value : the mean over the sampled points, in [0, 1] where it is one of shares; or a quantile of them
    error : its standard error as an estimate of that over all points: the deviation of the value over draws of the
        points looked at, without replacement, and of the pairs of points where pairs are; 0 where all were looked at
    n_sampled : how many points were looked at
    """

    value: float
    error: float
    n_sampled: int


def mean_of(values: np.ndarray, n_points: int) -> Measure:
    """Return the mean of values (M,) at points drawn without replacement from `n_points`."""
    n_sampled = len(values)
    unsampled = 1.0 - n_sampled / n_points  # nothing is uncertain where all points were looked at
    deviation = float(np.std(values, ddof=1)) if n_sampled > 1 else 0.0 if unsampled == 0.0 else math.nan
    return Measure(float(np.mean(values)), deviation * math.sqrt(unsampled / n_sampled), n_sampled)


def share_of(hits: np.ndarray) -> Measure:
    """Return the share of points with a verdict (N,) and its error as one of N independent draws.

    The error is that of (k + 1) / (N + 2), Laplace's estimate, so that none and all of the points are not certain.
    """
    n_points, n_hits = len(hits), int(np.count_nonzero(hits))
    smoothed = (n_hits + 1) / (n_points + 2)
    return Measure(n_hits / n_points, math.sqrt(smoothed * (1.0 - smoothed) / (n_points + 2)), n_points)


def quantile_of(values: np.ndarray, share: float, n_points: int) -> Measure:
    """Return the value that a share of values (M,) does not exceed, at points drawn as in `mean_of`; NaN of none.

    The standard error is half of what lies between the quantiles one standard error of the share below and above.
    """
    n_sampled = len(values)
    if n_sampled == 0:
        return Measure(math.nan, math.nan, 0)
    spread = math.sqrt(share * (1.0 - share) * (1.0 - n_sampled / n_points) / n_sampled)
    low, high = np.quantile(values, (max(0.0, share - spread), min(1.0, share + spread)))
    return Measure(float(np.quantile(values, share)), 0.5 * float(high - low), n_sampled)


def procrustes_error(embedding: np.ndarray, reference: np.ndarray) -> float:
    """Return |procrustes(X) - R| / |R| after the best translation, rotation, reflection and scale of X.

    `embedding` X and `reference` R, (N, d) each; R is centred first, so the error lies in [0, 1].
    Source: Cox and Cox 1994, chapter 5, as used in [LLL] 4.8.1.
    """
    x, r = (centered_at_unit_scale(positions) for positions in (embedding, reference))
    size, total = float(np.sum(x * x)), float(np.sum(r * r))
    if total == 0:
        return 0.0 if size == 0 else 1.0
    nuclear = float(np.sum(np.linalg.svd(x.T @ r, compute_uv=False)))
    explained = nuclear**2 / size if size > 0 else 0.0
    return float(np.sqrt(max(0.0, 1.0 - explained / total)))


def centered_at_unit_scale(positions: np.ndarray) -> np.ndarray:
    """Return positions (N, d) about their mean in float64, over a power of two where they are out of all scale."""
    near_one = np.asarray(at_unit_scale(positions)[0], np.float64)
    return np.asarray(at_unit_scale(near_one - near_one.mean(axis=0))[0])


def similarity_of(cross: np.ndarray, size: float) -> tuple[float, np.ndarray]:
    """Return the scale and the orthogonal (d, d) Q for which scale X Q comes nearest to R.

    `cross` (d, d) is X^T R and `size` the sum of squares of X, both centred. Source: Cox and Cox 1994, chapter 5.
    """
    left, values, right = np.linalg.svd(cross)
    return float(values.sum() / size) if size > 0 else 0.0, left @ right


def subspace_angle(vectors: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest principal angle, in radians, between the spans of two sets of columns, (N, d) each.

    Small angles keep their relative accuracy. Source: Knyazev and Argentati 2002.
    """
    one, other = (np.asarray(at_unit_scale(each)[0], np.float64) for each in (vectors, reference))
    return float(scipy.linalg.subspace_angles(one, other)[0])


def clustering_error(labels: np.ndarray, reference: np.ndarray) -> float:
    """Return the share of points in the wrong cluster after the best one-to-one matching of clusters (Hungarian).

    `labels` and `reference`, (N,) of any type; the numbers of clusters may differ.
    """
    from scipy.optimize import linear_sum_assignment  # a tenth of what a command that measures nothing would load

    one, other = codes_of(labels, reference)
    counts = sp.coo_matrix((np.ones(len(one), np.int64), (one, other))).toarray()
    return 1.0 - float(counts[linear_sum_assignment(-counts)].sum()) / len(labels)


def codes_of(labels: np.ndarray, reference: np.ndarray) -> list[np.ndarray]:
    """Return the cluster and the class of each point by their numbers, (N,) int each."""
    return [np.unique(each, return_inverse=True)[1] for each in (labels, reference)]


def normalized_mutual_information(labels: np.ndarray, reference: np.ndarray) -> float:
    """Return I(labels, reference) over the mean of both entropies, in [0, 1]; 1 where both are one cluster."""
    from sklearn.metrics import normalized_mutual_info_score  # its import takes seconds

    return min(1.0, float(normalized_mutual_info_score(*codes_of(labels, reference))))


def adjusted_rand_index(labels: np.ndarray, reference: np.ndarray) -> float:
    """Return the share of pairs on which both agree, adjusted for chance: at most 1, about 0 for unrelated labels."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*codes_of(labels, reference)))


def label_hits(embedding: np.ndarray, labels: np.ndarray, n_neighbors: int, rows: np.ndarray) -> np.ndarray:
    """Return whether the label of each row wins among its `n_neighbors` nearest others in the embedding: (M,) bool.

    `embedding` (N, d); `labels` (N,) of any type; `rows` (M,). Ties between labels go to the one that comes first in
    sorted order.
    """
    _, codes = np.unique(labels, return_inverse=True)
    neighbors = nearest_others(embedding, rows, n_neighbors)
    votes = np.zeros((len(rows), int(codes.max()) + 1), np.int32)
    for column in range(neighbors.shape[1]):
        votes[np.arange(len(rows)), codes[neighbors[:, column]]] += 1
    return np.argmax(votes, axis=1) == codes[rows]


def nearest_others(embedding: np.ndarray, rows: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return the nearest other points of these rows in the embedding: (len(rows), n_neighbors) int64.

    A point is left out by its row number: duplicates of it are neighbours.
    """
    positions, _ = at_unit_scale(embedding)
    _, nearest = cKDTree(positions).query(positions[rows], n_neighbors + 1)
    return without_self(nearest, np.asarray(rows))


def without_self(nearest: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return lists (M, k + 1) of points without the rows (M,) that they are of, or without their last: (M, k)."""
    is_self = nearest == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return nearest[~is_self].reshape(len(rows), nearest.shape[1] - 1)


def neighbor_shares(points: Points, neighbors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the share (M,) of the neighbours (M, k) of each row that are among as many nearest in the data.

    Points (N, D) are dense or sparse; neighbours are rows of them. A neighbour no farther than the true k-th counts,
    one that is listed twice once.
    """
    near = counts_before(points, neighbors, rows) < neighbors.shape[1]
    return np.mean(near & ~repeated_in_rows(neighbors), axis=1)


def trust(points: Points, neighbors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the trustworthiness (M,) of the neighbours (M, k) of rows (M,) of points (N, D) in an embedding."""
    return trust_of_counts(counts_before(points, neighbors, rows), points.shape[0])


def continuity(positions: np.ndarray, neighbors: np.ndarray, rows: np.ndarray) -> Measure:
    """Return the continuity of an embedding (N, d) at rows (M,) by their neighbours (M, k) in the data.

    NaN where all positions are one: there no point is closer than another, and every neighbour would count.
    """
    values = trust(positions, neighbors, rows)
    if (positions == positions[0]).all():
        values[:] = math.nan
    return mean_of(values, len(positions))


def trust_of_counts(closer: np.ndarray, n_points: int) -> np.ndarray:
    """Return the trustworthiness (M,) of neighbours by how many points are closer than each of them, (M, k).

    1 - 2 / (k (2N - 3k - 1)) sum over the neighbours of max(0, rank in the data - k) [Venna and Kaski 2001]; k < N / 2.
    """
    k = closer.shape[1]
    excess = np.maximum(0, closer + 1 - k).sum(axis=1)
    return 1.0 - 2.0 * excess / (k * (2 * n_points - 3 * k - 1))


def counts_before(points: Points, neighbors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how many points (N, D) are closer to each of `rows` (M,) than each of its neighbours: (M, k).

    Boolean points are sets, closer by the Jaccard distance.
    """
    counts, of_sets = np.empty(neighbors.shape, np.int64), points.dtype == np.bool_
    how = SETS if of_sets else COORDINATES
    points = points if of_sets else at_unit_scale(points)[0]
    for part in slices(len(rows), QUERIES_AT_ONCE):
        queries = points[rows[part]]
        limits = distances_to(queries, points, neighbors[part], how.pairs)
        counts[part] = how.closer(queries, rows[part], limits, points)
    return counts


def squared_distances_to(queries: Points, points: Points, neighbors: np.ndarray) -> np.ndarray:
    """Return the squared distances (M, k) of queries (M, D) to some of the points, rows `neighbors` (M, k) of them."""
    return distances_to(queries, points, neighbors, squared_differences)


def distances_to(
    queries: Points, points: Points, neighbors: np.ndarray, of_pairs: Callable[[Points, Points], np.ndarray]
) -> np.ndarray:
    """Return the distances (M, k) of queries to `neighbors` (M, k) among the points, by a function of pairs of rows."""
    of_query, rows = np.repeat(np.arange(len(neighbors)), neighbors.shape[1]), neighbors.ravel()
    distances = np.empty(neighbors.size)
    for pairs in slices(neighbors.size, PAIRS_AT_ONCE):
        distances[pairs] = of_pairs(queries[of_query[pairs]], points[rows[pairs]])
    return distances.reshape(neighbors.shape)


def squared_differences(points: Points, others: Points) -> np.ndarray:
    """Return the squared distance (n,) of each of some points (n, D) to that of others, both dense or both sparse."""
    if sp.issparse(points):
        differences = points.astype(np.float64) - others.astype(np.float64)
        return np.asarray(differences.multiply(differences).sum(axis=1)).ravel()
    differences = np.subtract(points, others, dtype=np.float64)
    return np.einsum("ij,ij->i", differences, differences)


def closer_counts(queries: Points, query_rows: np.ndarray, limits: np.ndarray, points: Points) -> np.ndarray:
    """Return how many of some points are closer to each query than each of its limits: (M, K) int64.

    Distances of dense points are computed in float32; those too near a limit for it again in float64.

    Parameters
    ----------
    queries : (M, D), dense or sparse as the points are
    query_rows : (M,), the row of each query among the points; outside [0, n) where it is not among them
    limits : (M, K), squared distances; points that are as near up to rounding are not closer
    points : (n, D), some of all points
    """
    counts, sparse = np.zeros(limits.shape, np.int64), sp.issparse(queries)
    center = np.zeros(1) if sparse else queries.mean(axis=0, dtype=np.float64)
    lines, lengths = about_center(queries, center)
    slack = 0.0 if sparse else 2.0 * (lines.shape[1] + FURTHER_TERMS) * float(np.finfo(np.float32).eps)
    for part in slices(points.shape[0], ROWS_PER_PANEL):
        panel, panel_lengths = about_center(points[part], center)
        unit = 1.0 if sparse else max(lengths.max(), panel_lengths.max()) or 1.0  # no float32 overflows in it
        narrow = narrow_rows(panel, unit).T
        others = narrow.tocsr() if sparse else narrow  # once for all products
        for block in slices(lines.shape[0], ROWS_PER_BLOCK):
            distances = dense_rows(narrow_rows(lines[block], unit) @ others)
            distances *= -2.0
            distances += (panel_lengths / unit).astype(distances.dtype)
            distances += (lengths[block, None] / unit).astype(distances.dtype)
            for query, line in enumerate(distances, block.start):
                if part.start <= query_rows[query] < part.stop:
                    line[query_rows[query] - part.start] = np.inf
                order = np.argsort(limits[query])
                bounds = limits[query, order] - ROUNDING * (panel_lengths.max() + lengths[query])
                near, passed, unsure = bounds_passed(line, bounds / unit, slack)
                if unsure.size:
                    differences = panel[near[unsure]] - lines[query]
                    exact = np.einsum("ij,ij->i", differences, differences)
                    passed[unsure] = np.searchsorted(bounds, exact, side="right")
                counts[query, order] += np.cumsum(np.bincount(passed, minlength=len(order) + 1)[:-1])
    return counts


def closer_by(
    between: Callable[[Points, Points], np.ndarray],
    queries: Points,
    query_rows: np.ndarray,
    limits: np.ndarray,
    points: Points,
) -> np.ndarray:
    """Return what `closer_counts` does, by distances (m, n) that a function returns of two tables."""
    counts, bounds = np.zeros(limits.shape, np.int64), limits * (1.0 - ROUNDING)
    for part in slices(points.shape[0], ROWS_PER_PANEL):
        for block in slices(queries.shape[0], ROWS_PER_BLOCK):
            for query, line in enumerate(between(queries[block], points[part]), block.start):
                if part.start <= query_rows[query] < part.stop:
                    line[query_rows[query] - part.start] = np.inf
                counts[query] += np.searchsorted(np.sort(line), bounds[query])
    return counts


def bounds_passed(line: np.ndarray, bounds: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which distances may be below the last bound, how many bounds each of these passes, and which are unsure.

    Parameters
    ----------
    line : (n,) distances, each within `slack` of its true value; 0 for distances that decide by themselves
    bounds : (K,), ascending

    Returns
    -------
    near : (m,) int, places in `line`; few of many
    passed : (m,) int, bounds that are not above the distance
    unsure : (u,) int, places in `near` of those for which the slack matters
    """
    near = np.flatnonzero(line < np.nextafter(line.dtype.type(bounds[-1] + slack), np.inf))
    passed = np.searchsorted(bounds - slack, line[near], side="right")
    unsure = np.flatnonzero(passed != np.searchsorted(bounds + slack, line[near], side="right"))
    return near, passed, unsure


def narrow_rows(rows: Points, unit: float) -> Points:
    """Return dense rows in float32, in a unit of squared length; sparse rows as they are."""
    return rows if sp.issparse(rows) else (rows / np.sqrt(unit)).astype(np.float32)


class Comparing(NamedTuple):
    """How points are compared: what of their rows, distances of pairs of rows, which points are closer than these."""

    rows: Callable[[Points], Points]
    pairs: Callable[[Points, Points], np.ndarray]
    closer: Callable[[Points, np.ndarray, np.ndarray, Points], np.ndarray]


def comparing_by(metric: str) -> Comparing:
    """Return how dense points are compared by a metric that compares rows."""
    between = functools.partial(distances_in, metric)

    def of_pairs(points: Points, others: Points) -> np.ndarray:
        pairs = zip(points, others, strict=True)
        return np.array([between(one[np.newaxis], other[np.newaxis])[0, 0] for one, other in pairs])

    return Comparing(functools.partial(np.asarray, dtype=np.float64), of_pairs, functools.partial(closer_by, between))


COORDINATES = Comparing(lambda rows: rows, squared_differences, closer_counts)  # by squares of Euclidean distances
# By Jaccard distances of what is above zero.
SETS = Comparing(lambda rows: rows > 0, jaccard_of_pairs, functools.partial(closer_by, jaccard_distances))


PARTNERS = 10  # of a sampled point, in a drawn order of the sample: pairs, and triplets of two of them
PARTS = 20  # of a sample, for a standard error: drawn, or each left out once
LEAST_LENGTH = 1e-300  # of a mean distance that something is divided by
MOST_CENTERS = 100  # classes whose centres are compared, the largest: of as many there are 485,100 triplets


def partners(n_sampled: int) -> np.ndarray:
    """Return with which of a sample each point is paired: (M, S) int64, those that follow in the sample's order."""
    steps = np.arange(1, min(PARTNERS, n_sampled - 1) + 1)
    return (np.arange(n_sampled)[:, np.newaxis] + steps) % n_sampled


def triplet_share(distances: np.ndarray, others: np.ndarray) -> float:
    """Return the share of pairs in the rows of two tables of distances (M, S) that are in the same order.

    A pair that is equally far in either counts half, one with NaN not; NaN without any.
    """
    first, second = np.triu_indices(distances.shape[1], 1)
    signs = [np.sign(table[:, first] - table[:, second]) for table in (distances, others)]
    agreements = signs[0] * signs[1]
    agreements = agreements[~np.isnan(agreements)]
    return 0.5 + 0.5 * float(agreements.mean()) if agreements.size else math.nan


def rank_correlation(values: np.ndarray, others: np.ndarray) -> float:
    """Return Spearman's correlation of two arrays of one shape, without NaN; NaN where one has a single value."""
    from scipy.stats import rankdata  # loads much that a command which measures nothing has no use for

    known = ~np.isnan(values)
    one, other = (rankdata(each) - (each.size + 1) / 2 for each in (values[known], others[known]))
    size = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / size if size > 0 else math.nan


def of_rows(statistic: Callable[[np.ndarray], float], n_rows: int, n_points: int) -> Measure:
    """Return a statistic of sampled rows, by their numbers, with the standard error of their draw among all points.

    That is the deviation of the statistic of drawn parts of the sample. Parts of m rows with 1/m - 1/n = 1/n - 1/N
    deviate from the sample of n as it does from all N points, by their means. The jackknife would overestimate the
    error of what jumps, as orders of distances do.
    """
    value = statistic(np.arange(n_rows))
    if n_rows == n_points:
        return Measure(value, math.nan if math.isnan(value) else 0.0, n_rows)
    many = max(1, round(n_rows / (2.0 - n_rows / n_points)))
    of_parts = [statistic(sample_rows(part, "measures/error", n_rows, many)) for part in range(PARTS)]
    return Measure(value, float(np.std(of_parts, ddof=1)), n_rows)


def of_pairs(statistic: Callable[..., float], distances: np.ndarray, others: np.ndarray, n_points: int) -> Measure:
    """Return a statistic of distances (M, S) of sampled points to their `partners`, with its standard error.

    Points were drawn among all, and partners among the points drawn. The jackknife leaves out groups of points for the
    variance of both, and columns for that by partners: in a column each point is in two pairs. The former counts that
    by partners twice, as each pair is left out with either of its points.
    """
    n_rows, n_partners = distances.shape
    value = statistic(distances, others)
    by_partners = 0.0  # nothing is uncertain by them where all are paired
    if n_partners < n_rows - 1:
        columns = [
            statistic(*(np.delete(table, column, axis=1) for table in (distances, others)))
            for column in range(n_partners)
        ]
        by_partners = (1.0 - n_partners / (n_rows - 1)) * (n_partners - 1) * float(np.var(columns))
    by_points, unsampled = 0.0, 1.0 - n_rows / n_points
    if unsampled > 0.0:
        paired, without = partners(n_rows) % PARTS, []
        for group in range(min(PARTS, n_rows)):
            left = paired != group
            left[group::PARTS] = False
            without.append(statistic(*(np.where(left, table, math.nan) for table in (distances, others))))
        by_points = max((len(without) - 1) * float(np.var(without)) - 2.0 * by_partners, 0.0)  # or NaN
    error = math.nan if math.isnan(value) else math.sqrt(unsampled * by_points + by_partners)
    return Measure(value, error, n_rows)


def center_triplets(points: Points, positions: np.ndarray, codes: np.ndarray, n_points: int) -> Measure:
    """Return the share of triplets of class centres whose order of distances points and embedding share.

    Points (M, D) and positions (M, d) of classes `codes` (M,), drawn among `n_points`; NaN below three classes.
    """

    def share(rows: np.ndarray) -> float:
        return center_triplet_share(points[rows], positions[rows], codes[rows])

    return of_rows(share, len(positions), n_points)


def density_correlation(radii: np.ndarray, others: np.ndarray, n_points: int) -> Measure:
    """Return Spearman's correlation of local radii (M,) in data and embedding, of points drawn among `n_points`."""
    return of_rows(lambda rows: rank_correlation(radii[rows], others[rows]), len(radii), n_points)


def center_triplet_share(points: Points, positions: np.ndarray, codes: np.ndarray) -> float:
    """Return that share for all of the points that are passed."""
    classes, counts = np.unique(codes, return_counts=True)
    classes = classes[np.argsort(-counts, kind="stable")[:MOST_CENTERS]]
    if len(classes) < 3:
        return math.nan
    shares = []
    of_classes = [codes == one for one in classes]
    centers = [
        np.array([np.asarray(table[of_class].mean(axis=0)).ravel() for of_class in of_classes])
        for table in (points, positions)
    ]
    for number in range(len(classes)):
        one, other = (np.square(np.delete(table, number, axis=0) - table[number]).sum(axis=1) for table in centers)
        shares.append(triplet_share(one[np.newaxis], other[np.newaxis]))
    return float(np.mean(shares))


def silhouettes(positions: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the silhouette (M,) of positions (M, d) of classes `codes` (M,), 0 for the only one of its class.

    (b - a) / max(a, b), a the mean distance to others of its class, b that to the nearest other class. All are NaN
    where there is one class, or none has two positions.
    Source: Rousseeuw, J. Comput. Appl. Math. 1987.
    """
    classes, numbers, counts = np.unique(codes, return_inverse=True, return_counts=True)
    of_class, values = np.eye(len(classes))[numbers], np.zeros(len(positions))
    if len(classes) == 1 or counts.max() == 1:
        return np.full(len(positions), math.nan)
    scaled, _ = at_unit_scale(positions)
    for part in slices(len(positions), ROWS_PER_BLOCK):
        rows = np.arange(part.start, part.stop) - part.start
        sums = cdist(scaled[part], scaled) @ of_class
        within = sums[rows, numbers[part]] / np.maximum(counts[numbers[part]] - 1, 1)
        means = sums / counts
        means[rows, numbers[part]] = np.inf
        nearest = means.min(axis=1)
        values[part] = (nearest - within) / np.maximum(np.maximum(nearest, within), LEAST_LENGTH)
    return np.where(counts[numbers] > 1, values, 0.0)


def pair_distances(rows: Points, pairs: Callable[[Points, Points], np.ndarray]) -> np.ndarray:
    """Return the distances (M, S) of sampled points (M, D) to their `partners`, by a function of pairs of rows."""
    return distances_to(rows, rows, partners(rows.shape[0]), pairs)


def shuffled(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return sampled rows (M,) in a drawn order, in which those that follow each other have nothing in common."""
    return rows[np.argsort(row_words(seed, "measures/order", 0, len(rows)))]


def mean_distances(positions: np.ndarray, neighbors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean distance (M,) of rows of an embedding (N, d) to their neighbours (M, k) there."""
    scaled, _ = at_unit_scale(positions)
    return np.sqrt(squared_distances_to(scaled[rows], scaled, neighbors)).mean(axis=1)


def nearest_in(points: Points, rows: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other points of rows (M,) of points (N, D), and their distances: (M, k) each, exactly.

    Boolean points are sets, compared by the Jaccard distance.
    """
    from sklearn.neighbors import NearestNeighbors  # its import takes seconds

    of_sets = points.dtype == np.bool_
    table = dense_rows(points) if of_sets else at_unit_scale(points)[0]
    found = NearestNeighbors(algorithm="brute", metric="jaccard" if of_sets else "euclidean").fit(table)
    distances, nearest = found.kneighbors(table[rows], n_neighbors + 1)
    is_self = nearest == rows[:, np.newaxis]
    is_self[~is_self.any(axis=1), -1] = True
    return nearest[~is_self].reshape(len(rows), n_neighbors), distances[~is_self].reshape(len(rows), n_neighbors)
