"""Measures of quality for the page, on as many points as their cost allows."""

from typing import Any, NamedTuple

from scalemani.config.routes import PRECOMPUTED
from scalemani.config.validation import check_count
from scalemani.interfaces.functions.measures import SAMPLED_POINTS
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.kernels.measures import Measure
from scalemani.runs.opened import Run

MOST_PRODUCTS = 1e11  # of coordinates, in the distances of sampled points to all: some ten seconds
FEWEST_POINTS = 100  # a share of a half is then known to five percent
LEAST_INPUT = 3  # points, for neighbours to be measured at all
MEANINGS = {
    "recall": "share of the true nearest neighbours that the graph has",
    "trustworthiness": "how far neighbours in the embedding are neighbours of the points; 1 is best",
    "neighbor_preservation": "share of the nearest points that are still the nearest in the embedding",
    "clustering_error": "share of the points outside the class that their cluster stands for",
    "normalized_mutual_information": "between clusters and labels; 1 is best",
    "adjusted_rand_index": "of clusters and labels; 0 is chance, 1 is best",
}
NEAREST = "points that most of their nearest points in the embedding would give the right label"


class QualityRow(NamedTuple):
    """A measure as the page shows it."""

    name: str
    value: str
    error: str
    n_sampled: str
    meaning: str


class Quality(NamedTuple):
    """Measures, and a note on them or in place of them."""

    rows: tuple[QualityRow, ...]
    note: str = ""


def measure_quality(run: Run, labels: Any, n_sampled: int | None, random_state: Any) -> Quality:
    """Return the measures of a run, against classes (N,) too where given, on as many points as the cost allows."""
    if n_sampled is not None and check_count(n_sampled, "n_sampled", 0) == 0:
        return Quality((), "Nothing was measured, as requested: scalemani measure RUN measures.")
    if set(run.records()) != set(run.keys):
        return Quality((), "The run is not finished, so nothing was measured.")
    if run.metric == PRECOMPUTED:
        return Quality(
            (), "Neighbours or affinities were given and no points, so there is nothing to measure them against."
        )
    n_points = run.dimensions.n_points
    if n_points < LEAST_INPUT:
        return Quality((), "There are too few points to measure neighbours.")
    affordable = int(MOST_PRODUCTS / (n_points * run.dimensions.n_features))
    wanted = max(FEWEST_POINTS, min(SAMPLED_POINTS, affordable)) if n_sampled is None else n_sampled
    found = measure_run(run, labels, n_sampled=wanted, random_state=random_state)
    told = "scalemani measure RUN looks at more points." if wanted < min(SAMPLED_POINTS, n_points) else ""
    return Quality(tuple(quality_row(name, value) for name, value in found.items()), told)


def quality_row(name: str, value: Measure | float) -> QualityRow:
    """Return a measure as the page shows it."""
    meaning, plain = MEANINGS.get(name, NEAREST), name.replace("_", " ")
    if isinstance(value, Measure):
        return QualityRow(plain, f"{value.value:.4f}", f"± {value.error:.4f}", f"{value.n_sampled:,}", meaning)
    return QualityRow(plain, f"{value:.4f}", "", "all", meaning)
