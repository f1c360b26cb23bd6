"""Scores of a run, by which the cells of a grid are compared: against labels, a reference, the points, or nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.routes import is_doubted
from scalemani.config.stages import DOUBT
from scalemani.config.validation import check_count
from scalemani.errors import ConfigError, DataError, check_known
from scalemani.interfaces.functions import measures
from scalemani.interfaces.functions.run_measures import against_points, global_structure, measure_labels
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.io.sources import points_in_memory
from scalemani.io.sources.label_values import is_absent
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.measures import Measure, share_of
from scalemani.runs.clusters import labels_or_clusters
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredClustering

NEAREST, COUNTED = 1, 15  # neighbours that say a label, and that are looked for among those in the data
SEED = 0  # of the points that are looked at: the same for all cells
EIGENGAP = "eigengap"  # a certificate of the stage `embedding`
CLUSTERING, GRAPH_ALONE = "spectral-clustering", "knn-graph"


@dataclass(frozen=True)
class Judge:
    """What runs are compared with: classes (N,), a reference embedding (N, d), both in input order; None: nothing.

    Points without a class count in no score by classes.

    `n_neighbors` None is 1 for labels and 15 for neighbours.
    """

    labels: np.ndarray | None = None
    reference: np.ndarray | None = None
    n_neighbors: int | None = None


class Score(NamedTuple):
    """How a run is scored: the function, whether more is better, what of the judge it needs, and whether the doubt."""

    of_run: Callable[[Run, Judge], Measure]
    more_is_better: bool
    needs: str = ""
    by_doubt: bool = False


def exact(value: float) -> Measure:
    """Return what is no mean over a sample."""
    return Measure(float(value), 0.0, 0)


def label_accuracy(run: Run, judge: Judge) -> Measure:
    """Return the share of points whose label wins among their nearest others in the embedding."""
    labels = run.of_points(np.asarray(judge.labels))
    known, nearest = ~is_absent(labels), judge.n_neighbors or NEAREST
    return measures.knn_accuracy(run.stored_embedding.read()[known], labels[known], nearest, random_state=SEED)


def clustering_error(run: Run, judge: Judge) -> Measure:
    """Return the share of points in the wrong cluster."""
    if StoredClustering.STAGE not in run.keys:
        raise ConfigError(f"clustering-error is of clusters, and {run.method} has none: take {CLUSTERING}")
    labels = run.of_results(np.asarray(judge.labels))
    known = ~is_absent(labels)
    return exact(measures.clustering_error(np.asarray(run.retained_labels[...])[known], labels[known]))


def procrustes_error(run: Run, judge: Judge) -> Measure:
    """Return the distance from the reference after the best similarity, relative to its size."""
    return exact(
        measures.procrustes_error(np.asarray(run.retained_embedding[...]), run.of_results(np.asarray(judge.reference)))
    )


def eigengap(run: Run, judge: Judge) -> Measure:
    """Return the distance from the last retained eigenvalue to the next: a separate subspace is well defined."""
    certificates = run.certificates.get("embedding", {})
    if EIGENGAP not in certificates:
        raise ConfigError(f"eigengap is of a spectral embedding, and {run.method} has none: take another score")
    return exact(certificates[EIGENGAP])


def from_points(name: str) -> Callable[[Run, Judge], Measure]:
    """Return the score that a measure of a run against its points is."""

    def of_run(run: Run, judge: Judge) -> Measure:
        n_points = run.dimensions.n_points
        rows = sample_rows(SEED, "measures/run", n_points, measures.SAMPLED_POINTS)
        k = judge.n_neighbors or min(COUNTED, (n_points - 1) // 2)
        return measured(run, against_points(run, run.stored_embedding.read(), rows, k), name)

    return of_run


def from_pairs(name: str) -> Callable[[Run, Judge], Measure]:
    """Return the score that a measure by pairs and triplets of points is."""
    return lambda run, judge: measured(
        run, global_structure(run, run.stored_embedding.read(), measures.SAMPLED_POINTS, SEED), name
    )


def from_labels(name: str) -> Callable[[Run, Judge], Measure]:
    """Return the score that a measure of classes in an embedding is."""
    return lambda run, judge: measured(run, measure_labels(run, judge.labels, random_state=SEED), name)


def share_of_points(name: str) -> Callable[[Run, Judge], Measure]:
    """Return the score that the share of points with a verdict of the stage `doubt` is, its error that of N draws."""
    return lambda run, judge: share_of(np.asarray(getattr(run.retained_doubt, name)))


def measured(run: Run, results: Mapping[str, Measure | float], name: str) -> Measure:
    """Return the result of a name; raise ConfigError for one that the points or the graph of a run do not give."""
    result = results.get(name)
    if not isinstance(result, Measure):
        raise ConfigError(
            f"{name.replace('_', '-')} takes a neighbour graph or coordinates that {run.method} by {run.metric} does "
            "not have: take another score"
        )
    return result


LABEL_ACCURACY, CLUSTERING_ERROR, PROCRUSTES_ERROR = "label-accuracy", "clustering-error", "procrustes-error"
SCORES = {
    LABEL_ACCURACY: Score(label_accuracy, True, "labels"),
    CLUSTERING_ERROR: Score(clustering_error, False, "labels"),
    PROCRUSTES_ERROR: Score(procrustes_error, False, "reference"),
    "neighbor-preservation": Score(from_points("neighbor_preservation"), True),
    "trustworthiness": Score(from_points("trustworthiness"), True),
    "continuity": Score(from_points("continuity"), True),
    "density-correlation": Score(from_points("density_correlation"), True),
    "triplet-accuracy": Score(from_pairs("triplet_accuracy"), True),
    "distance-correlation": Score(from_pairs("distance_correlation"), True),
    "center-triplet-accuracy": Score(from_labels("center_triplet_accuracy"), True, "labels"),
    "silhouette": Score(from_labels("silhouette"), True, "labels"),
    "doubt": Score(share_of_points("doubtful"), False, by_doubt=True),
    "believable": Score(share_of_points("believable"), True, by_doubt=True),
    EIGENGAP: Score(eigengap, True),
}


def settings_of(scores: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that runs need for their scores, by name."""
    return dict([DOUBT.wanted]) if DOUBT.wanted and any(SCORES[name].by_doubt for name in scores) else {}


def make_judge(n_points: int, labels: Any = None, reference: Any = None, n_neighbors: int | None = None) -> Judge:
    """Return validated labels (N,), reference (N, d), or files of these, that runs of N points are compared with."""
    if n_neighbors is not None:
        check_count(n_neighbors, "n_neighbors", 1, (n_points - 1) // 2, "less than half of the points")
    classes = None if labels is None else check_labels(labels_or_clusters(labels, n_points), "labels", n_points)
    if classes is not None:
        labelled_points(classes, least=2)
    positions = None if reference is None else points_in_memory(reference, "reference")
    if positions is not None and len(positions) != n_points:
        raise DataError(f"reference has {len(positions)} rows, points {n_points}: give one position for each point")
    return Judge(classes, positions, n_neighbors)


def chosen_scores(requested: Sequence[str], judge: Judge, methods: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the scores, the first of which ranks; where none is requested, those that the judge allows.

    Clusters are compared with labels, other embeddings too, by neighbours; without labels embeddings with a reference;
    without either the eigengap is left.
    """
    if GRAPH_ALONE in methods:
        raise ConfigError(f"{GRAPH_ALONE} has no embedding that could be scored: take a method that embeds")
    if not requested:
        if judge.labels is not None:
            return (CLUSTERING_ERROR if set(methods) == {CLUSTERING} else LABEL_ACCURACY,)
        return (EIGENGAP if judge.reference is None else PROCRUSTES_ERROR,)
    for name in requested:
        check_known(name, SCORES, f"unknown score {name!r}")
        needs = SCORES[name].needs
        if needs and getattr(judge, needs) is None:
            raise ConfigError(f"score {name} compares with {needs}: give {needs} as well, or another score")
        unmeasured = [method for method in methods if not is_doubted(method)]
        if SCORES[name].by_doubt and unmeasured:
            raise ConfigError(
                f"score {name} is of maps whose points are placed one by one, and {', '.join(unmeasured)} has none: "
                "take another score, or methods such as t-sne"
            )
    return tuple(dict.fromkeys(requested))
