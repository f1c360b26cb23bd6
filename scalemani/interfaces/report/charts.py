"""What the arrays of a run hold, as charts: shapes in a frame, which a template draws as inline SVG."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import binned_statistic

from scalemani.config.metrics import has_coordinates
from scalemani.engine.reading import Stored, StoredStage
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.runs.opened import Run
from scalemani.stages.arrays.affinities import StoredAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredClustering, StoredEmbedding, StoredLayout
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.landmarks import StoredLandmarkWeights
from scalemani.stages.arrays.points import StoredPoints

MOST_ROWS = 500_000  # of blocks spread over the run: more would not change a histogram
PAIRED_POINTS = 700  # whose distances to each other are compared: a quarter of a million pairs
BINS = 48
MOST_DOTS = 400  # of a line
LONG_TAIL = 100.0  # largest over median, beyond which values are drawn by their logarithm


class Axis(NamedTuple):
    """From `low` to `high`, which are powers of ten where `log`; `name` is what lies along it."""

    name: str
    low: float
    high: float
    log: bool = False

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Return values as they lie on the axis: the powers of ten that they are where `log`."""
        return np.log10(values) if self.log else values

    def shares(self, values: np.ndarray) -> np.ndarray:
        """Return where values (n,) lie, from 0 at the low end to 1 at the high one."""
        return np.asarray((self.scaled(values) - self.low) / (self.high - self.low))

    def marks(self) -> list[tuple[float, float]]:
        """Return a few round values, each after the share where it lies."""
        extent = self.high - self.low
        power = 10.0 ** math.floor(math.log10(extent))
        step = next(size * power for size in (0.2, 0.5, 1, 2) if extent < 6 * size * power)
        ticks = np.arange(math.ceil(self.low / step), math.floor(self.high / step) + 1) * step
        values = [float(f"{10**value if self.log else value:.6g}") for value in ticks]
        return list(zip((ticks - self.low) / extent, values, strict=True))


def axis_of(name: str, values: np.ndarray, zero: bool = False) -> Axis:
    """Return the axis of values (n,), from zero where that is a bound; of a long tail their logarithm."""
    log = bool(not zero and values.min() > 0 and values.max() > LONG_TAIL * np.median(values))
    ends = np.log10(values) if log else np.append(values, 0.0) if zero else values
    low, high = float(ends.min()), float(ends.max())
    return Axis(f"{name}{', by its logarithm' if log else ''}", low, high if high > low else low + 1, log)


class Chart(NamedTuple):
    """Shapes in a frame of two axes, all as shares of these.

    Attributes
    ----------
    title, caption : what is drawn, and how to read it
    names : of the series
    bars : heights of bars of equal width side by side, (n,) a series
    line : its points (n, 2), across and up
    """

    title: str
    caption: str
    across: Axis
    up: Axis
    names: Sequence[str] = ()
    bars: Sequence[np.ndarray] = ()
    line: np.ndarray = np.empty((0, 2))


def histogram(title: str, caption: str, across: str, series: Mapping[str, np.ndarray]) -> Chart:
    """Return the histograms of values (n,), one a series, as shares of each; a long tail is binned by logarithms."""
    axis = axis_of(across, np.concatenate(list(series.values())))
    heights = [np.histogram(axis.scaled(one), BINS, (axis.low, axis.high))[0] / len(one) for one in series.values()]
    up = axis_of("share of points", np.ravel(heights), zero=True)
    return Chart(title, caption, axis, up, list(series), list(map(up.shares, heights)))


def curve(title: str, caption: str, across: str, up: str, x: np.ndarray, y: np.ndarray) -> Chart:
    """Return a line through (x, y), (n,) each, or some of many; one that falls far is drawn by its logarithm."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_DOTS)).astype(int))
    x_axis, y_axis = axis_of(across, x[chosen]), axis_of(up, y[chosen])
    line = np.transpose([x_axis.shares(x[chosen]), y_axis.shares(y[chosen])])
    return Chart(title, caption, x_axis, y_axis, line=line)


def spectrum(eigenvalues: np.ndarray, following: float | None, title: str, caption: str) -> Chart:
    """Return eigenvalues (d,) as bars by their number, and the one that follows them as one of another series."""
    values = np.append(eigenvalues, [] if following is None else following)
    in_embedding = np.arange(len(values)) < len(eigenvalues)
    names = ["of the embedding"] if in_embedding.all() else ["of the embedding", "the next one"]
    up = axis_of("eigenvalue", values, zero=True)
    bars = [up.shares(values) * in_embedding, up.shares(values) * ~in_embedding]
    return Chart(title, caption, Axis("number", 0, len(values)), up, names, bars)


class Histogram(NamedTuple):
    """A histogram of what a stage has stored; `read` takes that and a block, and returns (n,) or (n, series)."""

    stage: type[StoredStage]
    title: str
    caption: str
    across: str
    read: Callable[[Any, int], np.ndarray]
    names: tuple[str, ...] = ("",)


HISTOGRAMS = (
    Histogram(
        StoredNeighbors,
        "Distances to neighbours",
        "Where the two lie far apart, the neighbourhoods of points differ in density.",
        "distance",
        lambda stored, block: stored.read_graph_block(block)[1][:, [0, -1]],
        ("first neighbour", "last neighbour"),
    ),
    Histogram(
        StoredAffinities,
        "Bandwidths",
        "Each point has a separate sigma; with entropic affinities, that at which they have the requested perplexity.",
        "sigma",
        lambda stored, block: sigmas(stored.beta.read_block(block)),
    ),
    Histogram(
        StoredSymmetricAffinities,
        "Degrees",
        "The sum of a point's symmetric affinities: points of large degree are neighbours of many others.",
        "degree",
        lambda stored, block: stored.degrees(block),
    ),
    Histogram(
        StoredLandmarkWeights,
        "Coverage by landmarks",
        "What combinations of landmarks leave of a point; 1 is what its nearest landmark alone leaves.",
        "reconstruction error",
        lambda stored, block: stored.errors.read_block(block),
    ),
)


def sigmas(beta: np.ndarray) -> np.ndarray:
    """Return the bandwidths of the points that have one."""
    return np.asarray(1 / (np.sqrt(2.0) * np.sqrt(beta[beta > 0])))  # twice the largest has no float64


def distributions(run: Run) -> Iterator[Chart]:
    """Yield what there is to draw of the finished stages of a run."""
    for kind in HISTOGRAMS:
        stored = stored_of(run, kind.stage)
        if stored is None or (kind.stage is StoredAffinities and run.params.affinities.kind != "entropic"):
            continue
        n_blocks = run.dimensions.n_blocks
        wanted = max(1, min(n_blocks, MOST_ROWS // run.dimensions.block_rows))
        spread = np.unique(np.linspace(0, n_blocks - 1, wanted).astype(int))
        values = np.concatenate([kind.read(stored, int(block)) for block in spread])
        if values.size:
            series = dict(zip(kind.names, np.atleast_2d(values.T), strict=True))
            yield histogram(kind.title, kind.caption, kind.across, series)
    for draw in (eigenvalues, descent, clusters, pairs):
        yield from draw(run)


def finished(run: Run, stage: str) -> bool:
    """Return whether a stage is one of the run and finished."""
    return stage in run.keys and run.group(stage).complete


def stored_of(run: Run, kind: type[Stored]) -> Stored | None:
    """Return what a stage of the run has stored, of its kind; None where it is none of the run, or not finished."""
    return run.stored(kind) if finished(run, kind.STAGE) else None


def eigenvalues(run: Run) -> Iterator[Chart]:
    """Draw the spectrum, with the gap behind the last eigenvalue where it is known."""
    stage = (run.reduction or StoredEmbedding).STAGE
    if not finished(run, stage):
        return
    values = run.eigenvalues
    gap = run.certificates[stage].get("eigengap") if stage == StoredEmbedding.STAGE else None
    following = float(values[-1]) + gap if isinstance(gap, float) else None
    says = {
        StoredEmbedding.STAGE: "Of L v = lambda D v, without the trivial one. The larger the gap to the next one, the "
        "better the embedding is separated from the eigenvector that follows."
    }
    yield spectrum(values, following, "Spectrum", says.get(stage, "Of the columns of the embedding."))


def descent(run: Run) -> Iterator[Chart]:
    """Draw how the objective and its gradient fell."""
    if finished(run, StoredLayout.STAGE):
        history = run.curve
        if len(history.iteration) < 2:
            return
        caption = "The objective; while the attraction is exaggerated, that of the exaggerated one."
        yield curve("Descent", caption, "iteration", "objective", history.iteration, history.objective)
        norms = np.nan_to_num(history.gradient_norm)
        caption = "It falls towards zero at a minimum."
        yield curve("Gradient", caption, "iteration", "norm of the gradient", history.iteration, norms)


def clusters(run: Run) -> Iterator[Chart]:
    """Draw the sizes of the clusters."""
    if stored := stored_of(run, StoredClustering):
        sizes = np.array(stored.group.certificate("sizes", list))
        across, up = Axis("cluster", 0, len(sizes)), axis_of("points", sizes, zero=True)
        yield Chart("Clusters", "Points of each cluster, by its number.", across, up, bars=[up.shares(sizes)])


def pairs(run: Run) -> Iterator[Chart]:
    """Draw distances in the embedding against distances of the points."""
    if not run.embeds or not has_coordinates(run.metric) or not finished(run, run.last_stage):
        return
    n_points = run.dimensions.n_points
    rows = sample_rows(run.params.seed, "report/pairs", n_points, PAIRED_POINTS)
    stored: tuple[Any, Any] = run.stored(StoredPoints).points, run.stored_embedding
    upper = np.triu_indices(len(rows), 1)
    far, shown = (
        cdist(table, table)[upper] for table in (dense_rows(one.gather(rows)).astype(float) for one in stored)
    )
    mean, edges, _ = binned_statistic(far, shown, bins=BINS)
    there = np.isfinite(mean)
    caption = f"Means over pairs of {len(rows)} points. Methods that keep neighbourhoods do not keep far distances."
    names = "between points", "in the embedding"
    yield curve("Distances against distances", caption, *names, edges[:-1][there], mean[there])
