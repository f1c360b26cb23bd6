"""Charts as shapes: bars, lines and dots in a frame, which a template draws as inline SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scalemani.report.axes import Axis, fitting_axis

WIDTH, HEIGHT = 320.0, 150.0  # of the frame, in units of the drawing
BINS = 48
HEAT_BINS = 32  # of each axis
MOST_DOTS = 400  # of a line
LONG_TAIL = 100.0  # largest over median, beyond which values are binned by their logarithm


@dataclass
class Chart:
    """Shapes in a frame of WIDTH by HEIGHT, y downwards.

    Attributes
    ----------
    title, caption : what is drawn, and how to read it
    across, up : what the axes are
    bars : (x, y, width, height, series, opacity)
    lines : points of a polyline, and its series
    dots : (x, y, series)
    across_marks, up_marks : (place, text)
    names : of the series
    """

    title: str
    caption: str
    across: str
    up: str
    bars: list[tuple[float, float, float, float, int, float]] = field(default_factory=list)
    lines: list[tuple[str, int]] = field(default_factory=list)
    dots: list[tuple[float, float, int]] = field(default_factory=list)
    across_marks: list[tuple[float, str]] = field(default_factory=list)
    up_marks: list[tuple[float, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    width: float = WIDTH
    height: float = HEIGHT

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
        for bin_number in np.flatnonzero(share):
            tall = float(up.place(share[bin_number])) * HEIGHT
            x, width = float(left[bin_number]), float(left[bin_number + 1] - left[bin_number])
            chart.bars.append((round(x, 1), round(HEIGHT - tall, 2), round(width, 2), round(tall, 2), number, 0.6))
    chart.mark(axis, up)
    return chart


def curve(title: str, caption: str, across: str, up: str, x: np.ndarray, y: np.ndarray) -> Chart:
    """Return a line through (x, y), (n,) each, or some of many; one that falls far is drawn by its logarithm."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_DOTS)).astype(int))
    x, y = np.asarray(x, np.float64)[chosen], np.asarray(y, np.float64)[chosen]
    log = bool(y.min() > 0 and y.max() > LONG_TAIL * y.min())
    x_axis, y_axis = fitting_axis(x), fitting_axis(y, log)
    chart = Chart(title, caption, across, f"{up}{', by its logarithm' if log else ''}")
    chart.lines.append((polyline(x_axis, y_axis, x, y), 0))
    if len(x) == 1:
        chart.dots.append((WIDTH / 2, HEIGHT / 2, 0))
    chart.mark(x_axis, y_axis)
    return chart


def polyline(x_axis: Axis, y_axis: Axis, x: np.ndarray, y: np.ndarray) -> str:
    """Return points as the attribute of a polyline."""
    places = zip(x_axis.place(x) * WIDTH, (1 - y_axis.place(y)) * HEIGHT, strict=True)
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in places)


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
        tall = float(y_axis.place(max(value, 0.0))) * HEIGHT
        chart.bars.append(
            (round(number * wide, 2), round(HEIGHT - tall, 2), round(wide * 0.9, 2), round(tall, 2), 0, 0.8)
        )
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
        place = round(i * wide, 2), round(HEIGHT - (j + 1) * tall, 2)
        chart.bars.append((*place, round(wide, 2), round(tall, 2), 0, round(float(shade), 2)))
    chart.mark(x_axis, y_axis)
    return chart
