"""From points to one panel of a picture: what of the plane it shows, and counts, colours and shades of its pixels."""

import math

import numpy as np
from scipy.ndimage import convolve, gaussian_filter

from scalemani.errors import DataError
from scalemani.io.export.writers import blocks
from scalemani.io.figures.look import LARGEST_CLASSES, LARGEST_LEGEND, THEMES, LabelColours, Theme, ramp, rgb
from scalemani.io.sources.base import PointsSource

COVERED_SHARE = 0.2  # of the pixels that discs of few points may cover
SMALLEST_RADIUS, LARGEST_RADIUS = 1.0, 4.0  # of the discs that points are where they are few
SIGMAS = (0.0, 0.7, 1.2, 2.0, 3.0)  # of the blurs that stand in for each other, in pixels of a panel up to 1200
USUAL_SIDE = 1200
ENOUGH = 12.0  # points that a blur averages over: their noise is a third of a step that the eye sees
FEW = 2.5  # points below which a blur would hide that they are few: each is a disc
UNCROWDED_RADIUS = 1.5  # beyond it as many more points are few as discs are larger: they are seen one by one for longer
FAINTEST, FULLEST = 0.3, 0.85  # opacity of a lone point among ten million, among ten thousand
THINNEST = 0.25  # opacity of the thinnest smooth region, where the densest has one
CONTRAST = 40.0  # how much denser than the thinnest the densest region is before half of the steps are used
PALEST_FULL = 0.7  # where the density ramp starts for points of full opacity
TOP_PERCENT = 99.5
FAINT_WEIGHT = 0.01  # of the colour of points without a label relative to that of a point with one
# What the live map shades by too, under the names that its script knows.
SHADING = {
    "enough": ENOUGH,
    "few": FEW,
    "uncrowded": UNCROWDED_RADIUS,
    "thinnest": THINNEST,
    "contrast": CONTRAST,
    "percent": TOP_PERCENT,
    "covered": COVERED_SHARE,
    "smallest": SMALLEST_RADIUS,
    "largest": LARGEST_RADIUS,
    "faintest": FAINTEST,
    "fullest": FULLEST,
}
SAMPLED_ROWS = 200_000
GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo one spread rows evenly over a strip
CORE_PERCENT = (2, 98)
REACH = 3.0  # extents of the core beyond which, on either side, points count as outliers
LARGEST_STRETCH = 4.0  # beyond this ratio of extents, axes are scaled one by one
MARGIN = 0.02  # around what is shown, as a share of it
CELLS = 96  # a side of a panel: by them the densest place of each class is found
Pair = tuple[int, int]
Points = tuple[np.ndarray, np.ndarray, np.ndarray]


class Canvas:
    """Counts and summed colours of the points on each pixel of one panel, and how many lie outside its limits (2, 2).

    `sums` are those of the colours that were added: red, green, blue and, where colours differ in weight, the weight.
    """

    def __init__(self, width: int, height: int, limits: np.ndarray) -> None:
        self.width, self.height, self.limits = width, height, limits
        self.counts, self.sums = np.zeros((height, width)), np.zeros((height, width, 0))
        self.n_points = self.n_outside = 0

    def add(self, across: np.ndarray, up: np.ndarray, index: np.ndarray, colours: np.ndarray | None) -> None:
        """Count points (n,) at (across, up) with colours, those of `weighted_colours`, by their index (n,)."""
        inside, pixels = cells_of(across, up, self.limits, self.width, self.height)
        self.n_points += len(across)
        self.n_outside += len(across) - len(pixels)
        self.counts += np.bincount(pixels, minlength=self.counts.size).reshape(self.counts.shape)
        if colours is None:
            return
        if not self.sums.size:
            self.sums = np.zeros((*self.counts.shape, colours.shape[1]))
        for channel, values in enumerate(colours.T):
            summed = np.bincount(pixels, values[index[inside]], self.counts.size)
            self.sums[..., channel] += summed.reshape(self.counts.shape)


def cells_of(
    across: np.ndarray, up: np.ndarray, limits: np.ndarray, width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which points (n,) lie within the limits (2, 2), and the cells of these, row by row from the top left."""
    shares = (np.stack([across, up]).astype(np.float64) - limits[:, :1]) / np.ptp(limits, axis=1)[:, None]
    inside = ((shares >= 0) & (shares <= 1)).all(axis=0)  # false for NaN
    sides = np.array([[width], [height]])
    columns, rows = np.minimum((shares[:, inside] * sides).astype(np.int64), sides - 1)
    return inside, (height - 1 - rows) * width + columns


def weighted_colours(colours: np.ndarray, faint: int | None) -> np.ndarray:
    """Return colours (n, 3); where one is faint, for others to lie over it, times their weights, and these: (n, 4)."""
    if faint is None:
        return colours
    weights = np.where(np.arange(len(colours)) == faint, FAINT_WEIGHT, 1.0)[:, None]
    return np.concatenate([colours * weights, weights], axis=1)


def disc(radius: float) -> np.ndarray:
    """Return a disc with smooth edges for few points to be seen as: 1 at its centre."""
    reach = math.ceil(radius)
    away = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1])
    return np.clip(radius + 0.5 - away, 0, 1)


def point_radius(n_points: int, pixels: int) -> float:
    """Return the radius in pixels at which the points would cover a small share of the panel: from 1 to 4."""
    covering = math.sqrt(COVERED_SHARE * pixels / (math.pi * max(n_points, 1)))
    return min(LARGEST_RADIUS, max(SMALLEST_RADIUS, covering))


def lone_opacity(n_points: int) -> float:
    """Return the opacity of a lone point: the more points, the fainter."""
    share = np.clip((7 - math.log10(max(n_points, 1))) / 3, 0, 1)
    return float(FAINTEST + (FULLEST - FAINTEST) * share)


def shade(canvas: Canvas, density_only: bool, theme: Theme = THEMES["light"], enlarged: float = 1.0) -> np.ndarray:
    """Return the pixels of a canvas on the background of a theme: (h, w, 3) float from 0 to 1.

    Where points are dense enough for it, opacity grows with the logarithm of their density, and the colour is the mean
    of theirs; both are averaged over as few pixels as hold enough points, so that chance does not show as grain. Where
    they are sparse, every point is a disc, `enlarged` times as large as usual. With `density_only` the colour stands
    for the density too.
    """
    n_shown = canvas.n_points - canvas.n_outside
    layers = canvas.counts[..., None] if density_only else np.concatenate([canvas.counts[..., None], canvas.sums], 2)
    layers = layers.astype(np.float32)
    radius = point_radius(n_shown, canvas.counts.size) * enlarged
    smooth, share = smoothed(layers, FEW * max(1.0, radius / UNCROWDED_RADIUS) ** 2)
    stamp = disc(radius)
    discs = np.stack([convolve(layer, stamp, mode="constant") for layer in np.moveaxis(layers, 2, 0)], axis=2)
    lone = lone_opacity(n_shown)
    mean, sharp = smooth[..., 0], discs[..., 0]  # counts
    smooth_level = np.log1p(CONTRAST * mean / top_of(mean)) / math.log1p(CONTRAST)
    disc_level = np.log(np.maximum(sharp, 1)) / max(math.log(max(top_of(sharp), 1)), 1e-9)
    smooth_level, disc_level = np.clip(smooth_level, 0, 1), np.clip(disc_level, 0, 1)
    if density_only:
        level = share * smooth_level + (1 - share) * disc_level
        palest = PALEST_FULL * (lone - FAINTEST) / (FULLEST - FAINTEST) * (1 - share)
        colours = ramp(theme.density)[np.rint((palest + (1 - palest) * level) * 255).astype(int)]
        opacity = np.maximum(np.minimum(sharp, 1), share)
    else:
        weight = 4 if layers.shape[2] > 4 else 0  # without one of their own colours weigh as points count
        means = [part[..., 1:4] / np.maximum(part[..., weight, None], 1e-9) for part in (smooth, discs)]
        colours = share[..., None] * means[0] + (1 - share[..., None]) * means[1]
        one_by_one = np.where(sharp < 1, lone * sharp, lone + (1 - lone) * disc_level)
        opacity = share * (THINNEST + (1 - THINNEST) * smooth_level) + (1 - share) * one_by_one
    paper = rgb((theme.paper,))[0]
    return paper + opacity[..., None] * (np.clip(colours, 0, 1) - paper)


def smoothed(layers: np.ndarray, few: float) -> tuple[np.ndarray, np.ndarray]:
    """Return layers (h, w, c), counts first, averaged over enough points, and how far (h, w) there are enough: 0 to 1.

    A blur is used where it holds enough points, as the next wider one tells, which has less noise; else a wider one.
    `few` is how many points the widest blur holds where there are not enough at all.
    """
    sigmas = np.array(SIGMAS) * max(min(layers.shape[:2]) / USUAL_SIDE, 1.0)
    areas = np.maximum(4 * math.pi * sigmas**2, 1)  # pixels that each averages over
    mixed, area = np.zeros_like(layers), np.zeros(layers.shape[:2], np.float32)
    left, finer = np.ones_like(area), layers
    for sigma, pixels in zip(sigmas[1:], areas, strict=False):
        wider = gaussian_filter(layers, (sigma, sigma, 0), mode="constant", truncate=3)
        used = left * np.clip(np.log2(np.maximum(pixels * wider[..., 0] / ENOUGH, 1e-9)) + 1, 0, 1)
        mixed += used[..., None] * finer
        area += used * pixels
        left, finer = left - used, wider
    mixed += left[..., None] * finer
    held = (area + left * areas[-1]) * mixed[..., 0]
    share = np.clip(np.log(np.maximum(held, 1e-9) / few) / math.log(ENOUGH / 2 / FEW), 0, 1)
    return mixed, share


def top_of(values: np.ndarray) -> float:
    """Return the largest of the values above zero but for half a percent, 1 where there are none."""
    filled = values[values > 0]
    return float(np.percentile(filled, TOP_PERCENT)) if len(filled) else 1.0


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
    low, high = np.percentile(sample, CORE_PERCENT, axis=0)
    reach = REACH * (high - low)
    first, last = low - reach, high + reach
    within = (sample >= first) & (sample <= last)
    low = np.where(lowest >= first, lowest, sample.min(axis=0, where=within, initial=np.inf))
    high = np.where(highest <= last, highest, sample.max(axis=0, where=within, initial=-np.inf))
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
