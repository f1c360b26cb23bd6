"""How good a finished run is: measures of its graph and embedding by a sample of the points, against its stored points.

The points are read by blocks, twice: distances from the sample to its neighbours, then how many points
are closer than these. A neighbour is among the k nearest where fewer than k others are closer.
"""

from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.validation import check_count, check_seed
from scalemani.interfaces.functions import measures
from scalemani.interfaces.functions.measures import SAMPLED_CLASSES, SAMPLED_LABELS, SAMPLED_PAIRS, SAMPLED_POINTS
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.grouping import repeated_in_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.measures import (
    COORDINATES,
    PAIRS_AT_ONCE,
    SETS,
    Comparing,
    Measure,
    center_triplets,
    comparing_by,
    continuity,
    density_correlation,
    mean_distances,
    mean_of,
    nearest_others,
    of_pairs,
    pair_distances,
    rank_correlation,
    shuffled,
    squared_differences,
    triplet_share,
    trust_of_counts,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS
from scalemani.runs.clusters import labels_or_clusters
from scalemani.runs.input_order import InputOrder
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints, StoredWorkPoints

PAIRED_VALUES = 2**25  # of points that are compared in pairs, in memory
# What each measure says, by its name; accuracies have the number of neighbours in theirs.
MEANINGS = {
    "recall": "share of the true nearest neighbours that the graph has",
    "trustworthiness": "how far neighbours in the embedding are neighbours of the points; 1 is best",
    "continuity": "how far neighbours of the points are neighbours in the embedding; low where it is torn, 1 is best",
    "neighbor_preservation": "share of the nearest points that are still the nearest in the embedding",
    "density_correlation": "of local radii in data and embedding; near 0 dense places there say nothing of the data",
    "triplet_accuracy": "share of random triplets of which it tells which two are nearer; 0.5 is chance: far distances",
    "distance_correlation": "of distances of random pairs, by rank; near 0 far distances in the embedding say nothing",
    "center_triplet_accuracy": "share of triplets of class centres in the order of the data; 0.5 is chance: islands",
    "silhouette": "how far classes are apart in the embedding for their width; 0 where they overlap, 1 is best",
    "clustering_error": "share of the points outside the class of their cluster, classes matched one to one",
    "normalized_mutual_information": "between clusters and labels; 1 is best",
    "adjusted_rand_index": "of clusters and labels; 0 is chance, 1 is best",
}
UNDEFINED = {  # of measures that may be NaN
    "silhouette": "undefined: the points looked at are of one class, or each of its own",
    "center_triplet_accuracy": "undefined: the points looked at are of fewer than three classes",
    "continuity": "undefined: all points of the embedding lie in one place",
    "triplet_accuracy": "undefined: fewer than three points were looked at",
    "density_correlation": "undefined: all local radii in the data, or all in the embedding, are equal",
    "distance_correlation": "undefined: all distances in the data, or all in the embedding, are equal",
}
ACCURACY = "share of points that most of their nearest points in the embedding would give the right label"
NEIGHBORS = 15  # of a point, by default: as many as most embeddings are looked at by


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
    labels : (N,) classes in input order, a file of them, or the folder of a run for its clusters; None: nothing that
        needs them is measured. Where equal rows are one point, that of the first of them counts, and each point once.
        Points without one are left out, with a warning
    n_neighbors : k, below half of the points; None: 15, or fewer where the points are few
    n_sampled : how many points are looked at, drawn by `random_state`; ten times as many for labels
    random_state : a seed, None, or a generator to draw one

    Returns
    -------
    dict
        `recall` of the graph, `trustworthiness` and `neighbor_preservation` of the embedding, by the metric of the run;
        `continuity` and `density_correlation`, by the neighbours that its graph holds; `triplet_accuracy` and
        `distance_correlation`; with labels `1-nn accuracy` and `k-nn accuracy`, `silhouette`, and where points have
        coordinates `center_triplet_accuracy`; and of a clustering
        `clustering_error`, `normalized_mutual_information` and `adjusted_rand_index`, which are numbers over all points

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
    of_labels = (
        {} if labels is None else measure_labels(run, labels, n_neighbors=k, n_sampled=wanted, random_state=seed)
    )
    rows = sample_rows(seed, "measures/run", n_points, wanted)
    positions = run.stored_embedding.read() if run.embeds else None
    of_map = {} if positions is None else global_structure(run, positions, wanted, seed)
    return against_points(run, positions, rows, k) | of_map | of_labels


def measure_labels(
    run: Run, labels: Any, *, n_neighbors: int | None = None, n_sampled: int = SAMPLED_POINTS, random_state: Any = 0
) -> dict[str, Measure | float]:
    """Return those of the measures of a finished run that need labels, as `measure_run` does."""
    n_points, seed = run.dimensions.n_points, check_seed(random_state)
    k = min(NEIGHBORS, (n_points - 1) // 2) if n_neighbors is None else n_neighbors
    values = labels_or_clusters(labels, run.n_input_points, run)
    classes = check_labels(run.of_points(values), "labels", n_points)
    labelled = labelled_points(classes, least=2)
    classes = classes[labelled]
    results: dict[str, Measure | float] = {}
    if run.embeds:
        positions, many = run.stored_embedding.read()[labelled], n_sampled * (SAMPLED_LABELS // SAMPLED_POINTS)
        for nearest in sorted({1, min(k, len(labelled) - 1)}):
            accuracy = measures.knn_accuracy(positions, classes, nearest, n_sampled=many, random_state=seed)
            results[f"{nearest}-nn accuracy"] = accuracy
        of_sample = {"n_sampled": n_sampled * (SAMPLED_CLASSES // SAMPLED_POINTS), "random_state": seed}
        results["silhouette"] = measures.silhouette(positions, classes, **of_sample)
        if comparing(run.metric) is COORDINATES and len(np.unique(classes)) > 2:
            rows, table = sampled_points(run, n_sampled, seed, labelled)
            codes = np.unique(classes[np.searchsorted(labelled, rows)], return_inverse=True)[1]
            places = positions[np.searchsorted(labelled, rows)]
            results["center_triplet_accuracy"] = center_triplets(table, places, codes, len(labelled))
    if StoredClustering.STAGE in run.keys:
        clusters = np.asarray(run.retained_labels[...])[
            labelled
        ]  # of points that are a row each: clustering takes no weights
        for measure in (
            measures.clustering_error,
            measures.normalized_mutual_information,
            measures.adjusted_rand_index,
        ):
            results[measure.__name__] = measure(clusters, classes)
    return results


def against_points(run: Run, positions: np.ndarray | None, rows: np.ndarray, k: int) -> dict[str, Measure | float]:
    """Return the measures at rows (M,) of the points of a run: recall of its graph, and those of its embedding (N, d).

    The latter look at k neighbours in the embedding.
    """
    n_points, width = run.dimensions.n_points, 0
    tables, lengths = [], np.empty((len(rows), 0))
    if StoredNeighbors.STAGE in run.keys:
        order, stored = InputOrder(run.stored(StoredWorkPoints), run.rows), run.stored(StoredNeighbors)
        work_rows = order.work_rows[rows]
        tables.append(order.input_rows[stored.indices(stored.final_step).gather(work_rows)])
        lengths = stored.distances(stored.final_step).gather(work_rows)
        width = tables[0].shape[1]
    if positions is not None:
        tables.append(nearest_others(positions, rows, k))
    closer = count_closer(run, rows, np.hstack(tables))
    results: dict[str, Measure | float] = {}
    if width:
        counted = ~repeated_in_rows(tables[0])
        results["recall"] = mean_of(np.mean((closer[:, :width] < width) & counted, axis=1), n_points)
    if positions is not None:
        ranks = closer[:, width:]
        results["trustworthiness"] = mean_of(trust_of_counts(ranks, n_points), n_points)
        results["neighbor_preservation"] = mean_of(np.mean(ranks < k, axis=1), n_points)
        if width:
            results["continuity"] = continuity(positions, tables[0][:, :k], rows)
            in_map = mean_distances(positions, tables[1][:, :width], rows)
            results["density_correlation"] = density_correlation(lengths[:, :k].mean(axis=1), in_map, n_points)
    return results


def global_structure(run: Run, positions: np.ndarray, n_sampled: int, seed: int) -> dict[str, Measure | float]:
    """Return the measures of an embedding (N, d) of a run by pairs and triplets of sampled points."""
    rows, table = sampled_points(run, n_sampled, seed)
    how = comparing(run.metric)
    in_data = pair_distances(at_unit_scale(table)[0] if how is COORDINATES else table, how.pairs)
    in_map = pair_distances(at_unit_scale(positions[rows])[0], squared_differences)
    return {
        "triplet_accuracy": of_pairs(triplet_share, in_data, in_map, run.dimensions.n_points),
        "distance_correlation": of_pairs(rank_correlation, in_data, in_map, run.dimensions.n_points),
    }


def sampled_points(run: Run, n_sampled: int, seed: int, among: np.ndarray | None = None) -> tuple[np.ndarray, Points]:
    """Return rows (M,) `among` the points in a drawn order, and what of them is compared: (M, D).

    Ten times as many as `n_sampled`, or fewer of many features.
    """
    many = max(
        n_sampled, min(n_sampled * (SAMPLED_PAIRS // SAMPLED_POINTS), PAIRED_VALUES // run.dimensions.n_features)
    )
    drawn = sample_rows(seed, "measures/pairs", run.dimensions.n_points if among is None else len(among), many)
    rows = shuffled(drawn if among is None else among[drawn], seed)
    return rows, comparing(run.metric).rows(run.stored(StoredPoints).points.gather(rows))


def count_closer(run: Run, rows: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return how many points are closer to each row (M,) than each of its neighbours (M, K): (M, K) int64."""
    how, points = comparing(run.metric), run.stored(StoredPoints).points
    queries, counts = how.rows(points.gather(rows)), np.zeros(neighbors.shape, np.int64)
    flat, limits = neighbors.ravel(), np.empty(neighbors.size)
    order = np.argsort(flat)  # so that each block is read for one part, or two
    for part in slices(flat.size, PAIRS_AT_ONCE):
        pairs = order[part]
        limits[pairs] = how.pairs(queries[pairs // neighbors.shape[1]], how.rows(points.gather(flat[pairs])))
    for block in range(run.dimensions.n_blocks):
        first, _ = run.dimensions.rows(block)
        rows_of_block = how.rows(points.read_block(block))
        counts += how.closer(queries, rows - first, limits.reshape(neighbors.shape), rows_of_block)
    return counts


def meaning_of(name: str, measure: Measure | float) -> str:
    """Return what a measure of a name says, which may end with those of its labels; or why it is NaN."""
    kind, value = name.split(" of ")[0], measure.value if isinstance(measure, Measure) else measure
    return UNDEFINED[kind] if np.isnan(value) else MEANINGS.get(kind, ACCURACY)


def comparing(metric: str) -> Comparing:
    """Return how stored points are compared by a metric; Euclidean distances of most mapped rows have its order."""
    if compares_rows(metric):
        return comparing_by(metric)
    return SETS if METRICS[metric].of_sets else COORDINATES
