"""What the arrays of a run hold, as charts: shapes in a frame, which a template draws as inline SVG."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from scalemani.config.stages import PRECOMPUTED
from scalemani.engine.reading import StoredStage
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
WIDTH, HEIGHT = 320.0, 150.0  # of the frame, in units of the drawing
BINS = 48
HEAT_BINS = 32  # of each axis
MOST_DOTS = 400  # of a line
LONG_TAIL = 100.0  # largest over median, beyond which values are binned by their logarithm
MARKS = 5
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
Stored = TypeVar("Stored", bound=StoredStage)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, both finite, by the logarithm where `log`."""

    low: float
    high: float
    log: bool = False

    def place(self, values: np.ndarray | float) -> np.ndarray:
        """Return where values lie: 0 at `low`, 1 at `high`."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return np.asarray((self._scaled(values) - low) / (high - low) if high > low else np.full_like(values, 0.5))

    def edges(self, n_bins: int) -> np.ndarray:
        """Return the edges (n + 1,) of bins of equal width on the axis."""
        edges = np.linspace(self._scaled(self.low), self._scaled(self.high), n_bins + 1)
        return np.asarray(10**edges if self.log else edges)

    def marks(self) -> list[tuple[float, str]]:
        """Return the places of a few round values, with their texts."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            if last - first >= 1:
                step = -(-(last - first + 1) // MARKS)
                values = [10.0**power for power in range(first, last + 1, step)]
                return [(float(self.place(value)), f"{value:g}") for value in values]
        return [(float(self.place(value)), f"{value:.6g}") for value in round_values(self.low, self.high)]

    def _scaled(self, values: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.log10(values) if self.log else values, np.float64)


def round_values(low: float, high: float) -> list[float]:
    """Return a few round numbers between two, at most MARKS + 1."""
    if not high > low:
        return [low]
    rough = (high - low) / MARKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in ROUND_STEPS if power * factor >= rough * (1 - 1e-9))
    return [0.0 if abs(k * step) < step / 2 else k * step for k in range(math.ceil(low / step), int(high // step) + 1)]


def fitting_axis(values: np.ndarray, log: bool = False) -> Axis:
    """Return the axis from the least to the largest finite value (positive ones where `log`)."""
    kept = values[np.isfinite(values) & ((values > 0) | (not log))]
    return Axis(float(kept.min()), float(kept.max()), log) if kept.size else Axis(0.0, 1.0)


@dataclass
class Chart:
    """Shapes in a frame of WIDTH by HEIGHT, y downwards.

    Attributes
    ----------
    title, caption : what is drawn, and how to read it
    across, up : what the axes are
    bars : (x, y, width, height, series, opacity)
    line : points of a polyline
    dots : (x, y, series)
    across_marks, up_marks : (place, text)
    names : of the series
    """

    title: str
    caption: str
    across: str
    up: str
    bars: list[tuple[float, float, float, float, int, float]] = field(default_factory=list)
    line: str = ""
    dots: list[tuple[float, float, int]] = field(default_factory=list)
    across_marks: list[tuple[float, str]] = field(default_factory=list)
    up_marks: list[tuple[float, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    width: float = WIDTH
    height: float = HEIGHT

    def bar(self, left: float, wide: float, tall: float, opacity: float, series: int = 0, bottom: float = 0.0) -> None:
        """Add a bar that stands so far above the lower end of the frame."""
        x, y, width, height, shade = (
            round(float(one), 2) for one in (left, HEIGHT - bottom - tall, wide, tall, opacity)
        )
        self.bars.append((x, y, width, height, series, shade))

    def mark(self, across: Axis, up: Axis) -> None:
        """Mark round values of both axes."""
        self.across_marks = [(round(place * WIDTH, 1), text) for place, text in across.marks()]
        self.up_marks = [(round((1 - place) * HEIGHT, 1), text) for place, text in up.marks()]


def histogram(title: str, caption: str, across: str, series: Mapping[str, np.ndarray]) -> Chart:
    """Return the histograms of values (n,), one a series, as shares of each; a long tail is binned by logarithms."""
    values = np.concatenate(list(series.values()))
    log = bool(values.min() > 0 and values.max() > LONG_TAIL * np.median(values))
    axis = fitting_axis(values, log)
    if axis.high <= axis.low:
        axis = Axis(axis.low - 0.5, axis.high + 0.5)
    edges = axis.edges(BINS)
    edges[0], edges[-1] = min(edges[0], axis.low), max(edges[-1], axis.high)  # rounding must not lose the ends
    shares = [np.histogram(found, edges)[0] / len(found) for found in series.values()]
    up = Axis(0.0, float(max(share.max() for share in shares)))
    chart = Chart(title, caption, f"{across}{', by its logarithm' if log else ''}", "share of points")
    chart.names = list(series)
    left = axis.place(edges) * WIDTH
    for number, share in enumerate(shares):
        for one in np.flatnonzero(share):
            chart.bar(left[one], left[one + 1] - left[one], float(up.place(share[one])) * HEIGHT, 0.6, number)
    chart.mark(axis, up)
    return chart


def curve(title: str, caption: str, across: str, up: str, x: np.ndarray, y: np.ndarray) -> Chart:
    """Return a line through (x, y), (n,) each, or some of many; one that falls far is drawn by its logarithm."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_DOTS)).astype(int))
    x, y = np.asarray(x, np.float64)[chosen], np.asarray(y, np.float64)[chosen]
    log = bool(y.min() > 0 and y.max() > LONG_TAIL * y.min())
    x_axis, y_axis = fitting_axis(x), fitting_axis(y, log)
    chart = Chart(title, caption, across, f"{up}{', by its logarithm' if log else ''}")
    places = zip(x_axis.place(x) * WIDTH, (1 - y_axis.place(y)) * HEIGHT, strict=True)
    chart.line = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    if len(x) == 1:
        chart.dots.append((WIDTH / 2, HEIGHT / 2, 0))
    chart.mark(x_axis, y_axis)
    return chart


def spectrum(eigenvalues: np.ndarray, following: float | None, title: str, caption: str) -> Chart:
    """Return eigenvalues (d,) as dots by their number, and the one that follows them as one of another series."""
    values = np.append(eigenvalues, [] if following is None else following)
    x_axis = Axis(0.5, len(values) + 0.5)
    y_axis = Axis(min(0.0, float(values.min())), max(float(values.max()), 1e-300))
    chart = Chart(title, caption, "number", "eigenvalue")
    across, down = x_axis.place(np.arange(1, len(values) + 1)) * WIDTH, (1 - y_axis.place(values)) * HEIGHT
    for number, (x, y) in enumerate(zip(across, down, strict=True)):
        chart.dots.append((round(float(x), 1), round(float(y), 1), int(number >= len(eigenvalues))))
    chart.names = ["kept"] + ([] if following is None else ["the next one"])
    chart.mark(x_axis, y_axis)
    return chart


def columns(title: str, caption: str, across: str, up: str, heights: Sequence[float]) -> Chart:
    """Return one bar a number."""
    y_axis = Axis(0.0, max(float(max(heights)), 1e-300))
    wide = WIDTH / len(heights)
    chart = Chart(title, caption, across, up)
    for number, value in enumerate(heights):
        chart.bar(number * wide, wide * 0.9, float(y_axis.place(max(value, 0.0))) * HEIGHT, 0.8)
    chart.mark(Axis(0.0, float(len(heights))), y_axis)
    return chart


def heat(title: str, caption: str, across: tuple[str, np.ndarray], up: tuple[str, np.ndarray]) -> Chart:
    """Return how often pairs of values (n,) fall together, darker where more do; each axis has a name and values."""
    (x_name, x), (y_name, y) = across, up
    x_axis, y_axis = Axis(0.0, float(x.max()) or 1.0), Axis(0.0, float(y.max()) or 1.0)
    counts = np.histogram2d(x, y, bins=[x_axis.edges(HEAT_BINS), y_axis.edges(HEAT_BINS)])[0]
    chart = Chart(title, caption, x_name, y_name)
    wide, tall = WIDTH / HEAT_BINS, HEIGHT / HEAT_BINS
    for i, j in np.argwhere(counts):
        shade = 0.06 + 0.94 * np.log1p(counts[i, j]) / np.log1p(counts.max())
        chart.bar(i * wide, wide, tall, shade, bottom=j * tall)
    chart.mark(x_axis, y_axis)
    return chart


def distributions(run: Run) -> Iterator[Chart]:
    """Yield what there is to draw of the finished stages of a run."""
    for draw in (distances, bandwidths, degrees, coverage, eigenvalues, descent, clusters, pairs):
        yield from draw(run)


def finished(run: Run, stage: str) -> bool:
    """Return whether a stage is one of the run and finished."""
    return stage in run.keys and run.group(stage).complete


def stored_of(run: Run, kind: type[Stored]) -> Stored | None:
    """Return what a stage of the run has stored, of its kind; None where it is none of the run, or not finished."""
    return kind(run.group(kind.STAGE)) if finished(run, kind.STAGE) else None


def sampled(run: Run, read: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return what is read of blocks that are spread over the run, no more than MOST_ROWS rows or one block."""
    n_blocks = run.dimensions.n_blocks
    wanted = max(1, min(n_blocks, MOST_ROWS // run.dimensions.block_rows))
    chosen = np.unique(np.linspace(0, n_blocks - 1, wanted).astype(int))
    return np.concatenate([read(int(block)) for block in chosen])


def distances(run: Run) -> Iterator[Chart]:
    """Draw the distances to the first and the last neighbour."""
    stored = stored_of(run, StoredNeighbors)
    if stored is None:
        return
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
    stored = stored_of(run, StoredAffinities)
    if stored is None or run.params.affinities.kind != "entropic":
        return
    beta = sampled(run, stored.beta.read_block)
    sigma = 1 / np.sqrt(2 * beta[beta > 0])
    if sigma.size:
        caption = f"Each point has its own sigma, at which its affinities have perplexity {run.params.perplexity:g}."
        yield histogram("Bandwidths", caption, "sigma", {"sigma": sigma})


def degrees(run: Run) -> Iterator[Chart]:
    """Draw the sums of the affinities of a point."""
    if stored := stored_of(run, StoredSymmetricAffinities):
        caption = "The sum of a point's symmetric affinities: points of large degree are neighbours of many others."
        yield histogram("Degrees", caption, "degree", {"degree": sampled(run, stored.degrees)})


def coverage(run: Run) -> Iterator[Chart]:
    """Draw what combinations of landmarks leave of the points."""
    if stored := stored_of(run, StoredLandmarkWeights):
        caption = "What combinations of landmarks leave of a point; 1 is what its nearest landmark alone leaves."
        found = sampled(run, stored.errors.read_block)
        yield histogram("Coverage by landmarks", caption, "reconstruction error", {"error": found})


def eigenvalues(run: Run) -> Iterator[Chart]:
    """Draw the spectrum, with the gap behind the last eigenvalue where it is known."""
    stage = (run.reduction or StoredEmbedding).STAGE
    if not finished(run, stage):
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
    if stored := stored_of(run, StoredClustering):
        sizes = stored.group.certificate("sizes", list)
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
