"""Scores of a run, by which the cells of a grid are compared: against labels, a reference, the points, or nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.validation import check_count
from scalemani.errors import ConfigError, DataError, check_known
from scalemani.interfaces.functions import measures
from scalemani.interfaces.functions.run_measures import against_points
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.io.sources import open_labels, points_in_memory
from scalemani.io.sources.label_values import is_absent
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.measures import Measure
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
    """How a run is scored: the function, whether more is better, and what of the judge it needs."""

    of_run: Callable[[Run, Judge], Measure]
    more_is_better: bool
    needs: str = ""


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
        measured = against_points(run, run.stored_embedding.read(), rows, k)[name]
        assert isinstance(measured, Measure)
        return measured

    return of_run


LABEL_ACCURACY, CLUSTERING_ERROR, PROCRUSTES_ERROR = "label-accuracy", "clustering-error", "procrustes-error"
SCORES = {
    LABEL_ACCURACY: Score(label_accuracy, True, "labels"),
    CLUSTERING_ERROR: Score(clustering_error, False, "labels"),
    PROCRUSTES_ERROR: Score(procrustes_error, False, "reference"),
    "neighbor-preservation": Score(from_points("neighbor_preservation"), True),
    "trustworthiness": Score(from_points("trustworthiness"), True),
    EIGENGAP: Score(eigengap, True),
}


def make_judge(n_points: int, labels: Any = None, reference: Any = None, n_neighbors: int | None = None) -> Judge:
    """Return validated labels (N,), reference (N, d), or files of these, that runs of N points are compared with."""
    if n_neighbors is not None:
        check_count(n_neighbors, "n_neighbors", 1, (n_points - 1) // 2, "less than half of the points")
    classes = None if labels is None else check_labels(open_labels(labels, n_points), "labels", n_points)
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
    return tuple(dict.fromkeys(requested))
