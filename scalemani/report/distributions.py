"""What the arrays of a run hold, as charts: degrees, bandwidths, distances, coverage, the spectrum, the descent."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.records.affinities import StoredAffinities, StoredSymmetricAffinities
from scalemani.records.embeddings import StoredClustering, StoredEmbedding, StoredLayout
from scalemani.records.graph import StoredNeighbors
from scalemani.records.landmarks import StoredLandmarkWeights
from scalemani.records.points import StoredPoints
from scalemani.report.charts import Chart, columns, curve, heat, histogram, spectrum
from scalemani.routes import PRECOMPUTED
from scalemani.runs.opened import EIGENVALUES, Run

MOST_ROWS = 500_000  # of blocks spread over the run: more would not change a histogram
PAIRED_POINTS = 700  # whose distances to each other are compared: a quarter of a million pairs


def distributions(run: Run) -> Iterator[Chart]:
    """Yield what there is to draw of the finished stages of a run."""
    for draw in (distances, bandwidths, degrees, coverage, eigenvalues, descent, clusters, pairs):
        yield from draw(run)


def finished(run: Run, stage: str) -> bool:
    """Return whether a stage is one of the run and finished."""
    return stage in run.keys and run.group(stage).complete


def sampled(run: Run, read: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return what is read of blocks that are spread over the run, no more than MOST_ROWS rows or one block."""
    n_blocks = run.dimensions.n_blocks
    wanted = max(1, min(n_blocks, MOST_ROWS // run.dimensions.block_rows))
    chosen = np.unique(np.linspace(0, n_blocks - 1, wanted).astype(int))
    return np.concatenate([read(int(block)) for block in chosen])


def distances(run: Run) -> Iterator[Chart]:
    """Draw the distances to the first and the last neighbour."""
    if not finished(run, StoredNeighbors.STAGE):
        return
    stored = StoredNeighbors(run.group(StoredNeighbors.STAGE))
    found = sampled(run, lambda block: stored.read_graph_block(block)[1][:, [0, -1]])
    k = run.params.n_neighbors
    series = {"first neighbour": found[:, 0]} | ({f"neighbour {k}": found[:, 1]} if k > 1 else {})
    yield histogram(
        "Distances to neighbours",
        "Where the two lie far apart, the neighbourhoods of points differ in density.",
        "distance" if run.metric in ("euclidean", PRECOMPUTED) else f"distance, as {run.metric} maps rows",
        series,
    )


def bandwidths(run: Run) -> Iterator[Chart]:
    """Draw the bandwidths of entropic affinities."""
    if not finished(run, StoredAffinities.STAGE) or run.params.affinities.kind != "entropic":
        return
    beta = sampled(run, StoredAffinities(run.group(StoredAffinities.STAGE)).beta.read_block)
    sigma = 1 / np.sqrt(2 * beta[beta > 0])
    if sigma.size:
        caption = f"Each point has its own sigma, at which its affinities have perplexity {run.params.perplexity:g}."
        yield histogram("Bandwidths", caption, "sigma", {"sigma": sigma})


def degrees(run: Run) -> Iterator[Chart]:
    """Draw the sums of the affinities of a point."""
    if finished(run, StoredSymmetricAffinities.STAGE):
        stored = StoredSymmetricAffinities(run.group(StoredSymmetricAffinities.STAGE))
        caption = "The sum of a point's symmetric affinities: points of large degree are neighbours of many others."
        yield histogram("Degrees", caption, "degree", {"degree": sampled(run, stored.degrees)})


def coverage(run: Run) -> Iterator[Chart]:
    """Draw what combinations of landmarks leave of the points."""
    if finished(run, StoredLandmarkWeights.STAGE):
        stored = StoredLandmarkWeights(run.group(StoredLandmarkWeights.STAGE))
        caption = "What combinations of landmarks leave of a point; 1 is what its nearest landmark alone leaves."
        found = sampled(run, stored.errors.read_block)
        yield histogram("Coverage by landmarks", caption, "reconstruction error", {"error": found})


def eigenvalues(run: Run) -> Iterator[Chart]:
    """Draw the spectrum, with the gap behind the last eigenvalue where it is known."""
    stage = next((stage for stage in EIGENVALUES if finished(run, stage)), None)
    if stage is None:
        return
    found = run.eigenvalues
    gap = run.certificates[stage].get("eigengap") if stage == StoredEmbedding.STAGE else None
    following = float(found[-1]) + gap if isinstance(gap, float) else None
    says = {
        StoredEmbedding.STAGE: "Of L v = lambda D v, without the trivial one. The gap to the next one tells how well "
        "the embedding is told from the eigenvector that follows."
    }
    yield spectrum(found, following, "Spectrum", says.get(stage, "Of the columns of the embedding."))


def descent(run: Run) -> Iterator[Chart]:
    """Draw how the objective and its gradient fell."""
    if finished(run, StoredLayout.STAGE):
        found = run.curve
        if not len(found.iteration):
            return
        caption = "The objective; while the attraction is exaggerated, that of the exaggerated one."
        yield curve("Descent", caption, "iteration", "objective", found.iteration, found.objective)
        norms = np.nan_to_num(found.gradient_norm)
        caption = "It falls towards zero at a minimum."
        yield curve("Gradient", caption, "iteration", "norm of the gradient", found.iteration, norms)


def clusters(run: Run) -> Iterator[Chart]:
    """Draw the sizes of the clusters."""
    if finished(run, StoredClustering.STAGE):
        sizes = run.group(StoredClustering.STAGE).certificate("sizes", list)
        yield columns("Clusters", "Points of each cluster, by its number.", "cluster", "points", sizes)


def pairs(run: Run) -> Iterator[Chart]:
    """Draw distances in the embedding against distances of the points."""
    if not run.embeds or run.metric == PRECOMPUTED or not finished(run, run.last_stage):
        return
    n_points = run.dimensions.n_points
    rows = sample_rows(run.params.seed, "report/pairs", n_points, min(n_points, PAIRED_POINTS))
    stored: tuple[Any, Any] = StoredPoints(run.group(StoredPoints.STAGE)).points, run.stored_embedding
    upper = np.triu_indices(len(rows), 1)
    far, shown = (
        cdist(table, table)[upper] for table in (dense_rows(one.gather(rows)).astype(float) for one in stored)
    )
    caption = f"Pairs of {len(rows)} points. Methods that keep neighbourhoods do not keep far distances."
    yield heat("Distances against distances", caption, ("between points", far), ("in the embedding", shown))
