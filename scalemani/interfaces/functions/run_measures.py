"""How good a finished run is: measures of its graph and embedding by a sample of the points, against its stored points.

The points are read by blocks, twice: distances from the sample to its neighbours, then how many points
are closer than these. A neighbour is among the k nearest where fewer than k others are closer.
"""

from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.validation import check_count, check_seed
from scalemani.interfaces.functions import measures
from scalemani.interfaces.functions.measures import SAMPLED_LABELS, SAMPLED_POINTS
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.io.sources import open_labels
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.grouping import repeated_in_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.measures import (
    COORDINATES,
    PAIRS_AT_ONCE,
    SETS,
    Comparing,
    Measure,
    comparing_by,
    mean_of,
    nearest_others,
    trust_of_counts,
)
from scalemani.kernels.rows.metrics import METRICS
from scalemani.runs.input_order import InputOrder
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints, StoredWorkPoints

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
    labels : (N,) classes in input order, or a file of them; None: nothing that needs them is measured. Where equal rows
        are one point, that of the first of them counts, and each point once. Points without one are left out, with a
        warning
    n_neighbors : k, below half of the points; None: 15, or fewer where the points are few
    n_sampled : how many points are looked at, drawn by `random_state`; ten times as many for labels
    random_state : a seed, None, or a generator to draw one

    Returns
    -------
    dict
        `recall` of the graph, `trustworthiness` and `neighbor_preservation` of the embedding, by the metric of the run;
        with labels `1-nn accuracy` and `k-nn accuracy`, and of a clustering
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
    return against_points(run, positions, rows, k) | of_labels


def measure_labels(
    run: Run, labels: Any, *, n_neighbors: int | None = None, n_sampled: int = SAMPLED_POINTS, random_state: Any = 0
) -> dict[str, Measure | float]:
    """Return those of the measures of a finished run that need labels, as `measure_run` does."""
    n_points, seed = run.dimensions.n_points, check_seed(random_state)
    k = min(NEIGHBORS, (n_points - 1) // 2) if n_neighbors is None else n_neighbors
    classes = check_labels(run.of_points(open_labels(labels, run.n_input_points)), "labels", n_points)
    labelled = labelled_points(classes, least=2)
    classes = classes[labelled]
    results: dict[str, Measure | float] = {}
    if run.embeds:
        positions, many = run.stored_embedding.read()[labelled], n_sampled * (SAMPLED_LABELS // SAMPLED_POINTS)
        for nearest in sorted({1, min(k, len(labelled) - 1)}):
            accuracy = measures.knn_accuracy(positions, classes, nearest, n_sampled=many, random_state=seed)
            results[f"{nearest}-nn accuracy"] = accuracy
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
    tables = []
    if StoredNeighbors.STAGE in run.keys:
        order, stored = InputOrder(run.stored(StoredWorkPoints), run.rows), run.stored(StoredNeighbors)
        tables.append(order.input_rows[stored.indices(stored.final_step).gather(order.work_rows[rows])])
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
    return results


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


def comparing(metric: str) -> Comparing:
    """Return how stored points are compared by a metric; Euclidean distances of most mapped rows have its order."""
    if compares_rows(metric):
        return comparing_by(metric)
    return SETS if METRICS[metric].of_sets else COORDINATES
