"""One panel of a picture: two columns of an embedding, or one as a strip, coloured by one set of labels."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from scalemani.errors import DataError
from scalemani.export import rows_per_block
from scalemani.figures.limits import panel_limits, robust_limits
from scalemani.figures.palette import LARGEST_CLASSES, LARGEST_LEGEND, LabelColours
from scalemani.figures.placing import ClassPlaces
from scalemani.figures.shading import Canvas, weighted_colours
from scalemani.sources.base import PointsSource

SAMPLED_ROWS = 200_000
GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo one spread rows evenly over a strip
Pair = tuple[int, int]


@dataclass
class Panel:
    """What has been counted of the points for one panel.

    `pair` are the columns across and up, None where one column is a strip in which height means nothing but the class;
    `limits` are those of the columns. `keeps` says which rows (N,) are kept one by one, for `kept_points`.
    """

    shape: tuple[int, int]  # width and height, in pixels
    pair: Pair | None
    limits: np.ndarray
    colours: LabelColours | None
    named: bool  # whether classes have their names on their clusters
    keeps: np.ndarray | None = None
    canvas: Canvas = field(init=False)
    places: ClassPlaces | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.pair is None:
            limits = np.array([self.limits[0], (-0.1, self.n_bands + 0.1)])
        else:
            limits = panel_limits(self.limits[list(self.pair)], *self.shape)
        self.canvas = Canvas(*self.shape, limits)
        colours = self.colours
        table = np.zeros((1, 3), np.float32) if colours is None else colours.colours
        self._table = weighted_colours(table, None if colours is None else colours.missing)
        if self.named and colours is not None and colours.classes:
            # Of more classes than have a name, those with the most points have one.
            self.named_classes = np.sort(largest_classes(colours))
            self._name_of = np.full(len(colours.colours), len(self.named_classes), np.int32)
            self._name_of[self.named_classes] = np.arange(len(self.named_classes))
            self.places = ClassPlaces(len(self.named_classes), limits)
        self._kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    @property
    def n_bands(self) -> int:
        """The bands of a strip: one a class, where they are few."""
        few = self.colours is not None and 1 < len(self.colours.classes) <= LARGEST_LEGEND
        return len(self.colours.colours) if few and self.colours is not None else 1

    def add(self, start: int, rows: np.ndarray) -> None:
        """Count rows (n, d), the first of which is row `start` of the embedding."""
        stop = start + len(rows)
        index = np.zeros(len(rows), np.int32) if self.colours is None else self.colours.index[start:stop]
        if self.pair is None:
            jitter = np.arange(start, stop) * GOLDEN_RATIO % 1
            band = self.n_bands - 1 - index if self.n_bands > 1 else 0
            across, up = rows[:, 0], band + 0.15 + 0.7 * jitter
        else:
            across, up = rows[:, self.pair[0]], rows[:, self.pair[1]]
        self.canvas.add(across, up, index, self._table)
        if self.places is not None:
            self.places.add(across, up, self._name_of[index])
        if self.keeps is not None:
            kept = np.flatnonzero(self.keeps[start:stop])
            self._kept.append((self.canvas.pixels_of(across[kept], up[kept]), index[kept], kept + start))

    def kept_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the rows that are kept lie (n, 2), in pixels, their colours as an index, and the rows (n,)."""
        places, index, rows = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        within = ((places >= 0) & (places <= self.shape)).all(axis=1)  # false for NaN
        return places[within], index[within], rows[within]


def largest_classes(colours: LabelColours) -> np.ndarray:
    """Return the classes with the most points, at most 256: those that have a name on a map."""
    counts = np.bincount(colours.index, minlength=len(colours.colours))[: len(colours.classes)]
    return np.argsort(-counts, kind="stable")[:LARGEST_CLASSES]


def blocks(source: PointsSource) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) in order."""
    step = rows_per_block(source.shape[1] * source.dtype.itemsize, source.preferred_rows)
    for start in range(0, source.shape[0], step):
        yield start, source.read(start, min(start + step, source.shape[0]))


def column_limits(source: PointsSource, n_shown: int) -> np.ndarray:
    """Return what to show of each of the first columns: (n_shown, 2)."""
    stride = -(-source.shape[0] // SAMPLED_ROWS)
    lowest, highest = np.full(n_shown, np.inf), np.full(n_shown, -np.inf)
    sampled = []
    for start, rows in blocks(source):
        shown = rows[:, :n_shown].astype(np.float64)
        finite = np.where(np.isfinite(shown), shown, np.nan)
        lowest = np.fmin(lowest, np.fmin.reduce(finite, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(finite, axis=0))
        sampled.append(finite[-start % stride :: stride])
    sample = np.concatenate(sampled)
    sample = sample[np.isfinite(sample).all(axis=1)]
    if not len(sample):
        raise DataError(f"{source.description} has no finite row to draw: give coordinates that are numbers")
    return robust_limits(sample, lowest, highest)
