"""One panel of a picture: what of the plane it shows, and how many points of which colour are on each pixel."""

import numpy as np

from scalemani.errors import DataError
from scalemani.io.export.rows import blocks
from scalemani.io.figures.palette import LARGEST_CLASSES, LARGEST_LEGEND, LabelColours
from scalemani.io.figures.shading import Canvas, cells_of, weighted_colours
from scalemani.io.sources.base import PointsSource

SAMPLED_ROWS = 200_000
GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo one spread rows evenly over a strip
CORE_PERCENT = (2, 98)
REACH = 3.0  # extents of the core beyond which, on either side, points count as outliers
LARGEST_STRETCH = 4.0  # beyond this ratio of extents, axes are scaled one by one
MARGIN = 0.02  # around what is shown, as a share of it
CELLS = 96  # a side of a panel: by them the densest place of each class is found
Pair = tuple[int, int]
Points = tuple[np.ndarray, np.ndarray, np.ndarray]


class Panel:
    """Two columns of an embedding, or one as a strip in which height means nothing but the class, coloured by labels.

    `named` are the classes whose names are drawn on their clusters, and `densities` their points by cell of the panel,
    the uppermost row first.
    """

    def __init__(
        self, shape: tuple[int, int], pair: Pair | None, limits: np.ndarray, colours: LabelColours | None, named: bool
    ) -> None:
        self.pair, self.colours, self.n_bands = pair, colours, 1
        if colours is not None and 1 < len(colours.classes) <= LARGEST_LEGEND:
            self.n_bands = len(colours.colours)
        strip = np.array([limits[0], (-0.1, self.n_bands + 0.1)])
        self.limits = strip if pair is None else panel_limits(limits[list(pair)], *shape)
        self.canvas = Canvas(*shape, self.limits)
        self._table = None if colours is None else weighted_colours(colours.colours, colours.missing)
        self.named = np.zeros(0, int)
        if colours is not None and named:  # of more classes than have a name, those with the most points have one
            counts = np.bincount(colours.index, minlength=len(colours.colours))[: len(colours.classes)]
            self.named = np.argsort(-counts, kind="stable")[:LARGEST_CLASSES]
        self.densities = np.zeros((len(self.named), CELLS, CELLS))

    def points(self, numbers: np.ndarray, rows: np.ndarray) -> Points:
        """Return where rows (n, d) of the embedding lie, across and up, and their colours as an index."""
        index = np.zeros(len(rows), np.int32) if self.colours is None else self.colours.index[numbers]
        if self.pair is not None:
            return rows[:, self.pair[0]], rows[:, self.pair[1]], index
        band = self.n_bands - 1 - index if self.n_bands > 1 else 0
        return rows[:, 0], band + 0.15 + 0.7 * (numbers * GOLDEN_RATIO % 1), index

    def add(self, numbers: np.ndarray, rows: np.ndarray) -> None:
        """Count rows (n, d) of the embedding, whose numbers are (n,)."""
        across, up, index = self.points(numbers, rows)
        self.canvas.add(across, up, index, self._table)
        if self.colours is None or not len(self.named):
            return
        slots = np.full(len(self.colours.colours), -1)
        slots[self.named] = np.arange(len(self.named))
        inside, cells = cells_of(across, up, self.limits, CELLS, CELLS)
        slot = slots[index[inside]]
        places = (slot * CELLS**2 + cells)[slot >= 0]
        self.densities += np.bincount(places, minlength=self.densities.size).reshape(self.densities.shape)


def robust_limits(sample: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Return what to show of each column: (d, 2), everything unless far outliers would squeeze the rest.

    `sample` (m, d) are rows spread over all of them, `lowest` and `highest` (d,) those of all rows.
    """
    core = np.percentile(sample, CORE_PERCENT, axis=0)
    reach = REACH * (core[1] - core[0])
    within = (sample >= core[0] - reach) & (sample <= core[1] + reach)
    nearest_low = np.where(within, sample, np.inf).min(axis=0)
    nearest_high = np.where(within, sample, -np.inf).max(axis=0)
    low = np.where(lowest >= core[0] - reach, lowest, nearest_low)
    high = np.where(highest <= core[1] + reach, highest, nearest_high)
    # A constant column gets an extent that its own rounding does not fill.
    constant = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    widened = np.where(constant, np.maximum(np.abs(low), 1.0) * 0.5, 0.0)
    return np.stack([low - widened, high + widened], axis=1)


def panel_limits(limits: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return the limits (2, 2) of a panel of so many pixels that shows (2, 2), lowest and highest of each axis.

    One unit is as long across as up unless that would leave the panel nearly empty.
    """
    middle = limits.mean(axis=1)
    extents = (limits[:, 1] - limits[:, 0]) * (1 + 2 * MARGIN)
    unit = extents / (width, height)
    if unit.max() <= LARGEST_STRETCH * unit.min():
        extents = unit.max() * np.array([width, height])
    return np.stack([middle - extents / 2, middle + extents / 2], axis=1)


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
