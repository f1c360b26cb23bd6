"""From points to one panel of a picture: what of the plane it shows, and counts, colours and shades of its pixels."""

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.ndimage import convolve, correlate1d, gaussian_filter, minimum_filter

from scalemani.errors import DataError
from scalemani.io.export.writers import blocks
from scalemani.io.figures.look import LARGEST_CLASSES, LARGEST_LEGEND, THEMES, LabelColours, Theme, ramp, rgb
from scalemani.io.sources.base import PointsSource
from scalemani.kernels.arrays.draws import generator, row_words

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
TRUNCATED = 3  # standard deviations at which a blur ends
PIXELS_AT_ONCE = 2**17  # whose neighbourhoods are looked at together
RANK_BITS = 52  # of a float64, which minima are taken of, for a draw and a class
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
LARGEST_EXTENT_RATIO = 4.0  # beyond this ratio of extents, axes are scaled one by one
MARGIN = 0.02  # around what is shown, as a share of it
CELLS = 96  # a side of a panel: by them the densest place of each class is located
Pair = tuple[int, int]


def cells_of(places: np.ndarray, limits: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the places (2, n), across and up, are within limits (2, 2), and the cells of those that are.

    `shape` is (width, height), in cells, which are numbered row by row from the top.
    """
    shares = (places - limits[:, :1]) / np.ptp(limits, axis=1)[:, None]
    inside = ((shares >= 0) & (shares <= 1)).all(axis=0)  # false for NaN
    sides = np.array(shape)[:, None]
    columns, rows = np.minimum((shares[:, inside] * sides).astype(np.int64), sides - 1)
    return inside, (shape[1] - 1 - rows) * shape[0] + columns


def cell_counts(
    places: np.ndarray, index: np.ndarray, limits: np.ndarray, n_colours: int, shape: tuple[int, int]
) -> sparse.coo_array:
    """Return how many points each cell holds of each colour (height * width, n_colours), cells as in `cells_of`.

    Of points at places (2, n), across and up, with the index of their colours (n,), those within the limits (2, 2) are
    counted; `shape` is (width, height), in cells.
    """
    inside, cells = cells_of(places, limits, shape)
    return sparse.coo_array((np.ones(len(cells)), (cells, index[inside])), (shape[0] * shape[1], n_colours))


def layers_of(colours: LabelColours) -> np.ndarray:
    """Return what a point adds to the layers of its pixel, by its colour (K, c).

    Counts come first. Values add the red, green and blue that are averaged; classes, of which a pixel has one, do not.
    Where a colour is that of no label, others lie over it: the last layer has their weights, which colours to be
    averaged are multiplied by.
    """
    counts = np.ones((len(colours.colours), 1))
    averaged = [counts] if colours.limits is None else [counts, colours.colours]
    if colours.missing is None:
        return np.hstack(averaged)
    weights = np.where(np.arange(len(counts)) == colours.missing, FAINT_WEIGHT, 1.0)[:, None]
    return np.hstack([counts, *(layer * weights for layer in averaged[1:]), weights])


class Mixed(NamedTuple):
    """Classes of which every pixel shows one: their colours (K, 3), and the lowest rank (h, w) among its points.

    Ranks are random, with the class in their last bits; those of points without a label, whose class is `missing`, are
    above all others, and pixels without a point have infinity.
    """

    colours: np.ndarray
    lowest: np.ndarray
    missing: int | None

    @classmethod
    def of(cls, colours: LabelColours, shape: tuple[int, int]) -> "Mixed":
        """Return what `shape`, (width, height) in pixels, shows before points are added."""
        return cls(colours.colours, np.full(shape[::-1], np.inf), colours.missing)

    def add(self, numbers: np.ndarray, index: np.ndarray, places: np.ndarray, limits: np.ndarray) -> None:
        """Add points by their row numbers (n,), which follow one another, their classes (n,) and places (2, n)."""
        words = row_words(0, "picture/rows", int(numbers[0]), int(numbers[-1]) + 1)
        drawn = words >> np.uint64(64 - RANK_BITS + 1 + self.class_bits)
        faint = (index == (-1 if self.missing is None else self.missing)).astype(np.uint64) << np.uint64(RANK_BITS - 1)
        ranks = (faint | (drawn << np.uint64(self.class_bits)) | index.astype(np.uint64)).astype(np.float64)
        inside, cells = cells_of(places, limits, self.lowest.shape[::-1])
        np.minimum.at(self.lowest.ravel(), cells, ranks[inside])

    @property
    def class_bits(self) -> int:
        """The number of last bits of a rank that hold the class."""
        return max(1, (len(self.colours) - 1).bit_length())

    def classes(self, ranks: np.ndarray) -> np.ndarray:
        """Return the classes of ranks, 0 where there is none."""
        whole = np.where(np.isfinite(ranks), ranks, 0).astype(np.uint64)
        return (whole & np.uint64(2**self.class_bits - 1)).astype(np.int64)


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
    """Return the opacity of a lone point, from FULLEST up to 10,000 points to FAINTEST from ten million on."""
    share = np.clip((7 - math.log10(max(n_points, 1))) / 3, 0, 1)
    return float(FAINTEST + (FULLEST - FAINTEST) * share)


def shade(
    layers: np.ndarray, theme: Theme = THEMES["light"], enlarged: float = 1.0, mixed: Mixed | None = None
) -> np.ndarray:
    """Return layers (h, w, c), the sums of `layers_of`, as pixels on the background of a theme: (h, w, 3) from 0 to 1.

    Where points are dense enough for it, opacity grows with the logarithm of their density, averaged over as few pixels
    as hold enough points, so that chance does not show as grain. Where they are sparse, every point is a disc,
    `enlarged` times as large as usual. The colour of values is the mean over these pixels. Classes are `mixed`: each
    pixel has the colour of one of these points, drawn at random, so that areas are in the proportion of the classes,
    and no colour is that of a class which is not there. With counts alone the colour stands for the density too.
    """
    n_shown = layers[..., 0].sum()
    layers = layers.astype(np.float32)
    radius = point_radius(n_shown, layers[..., 0].size) * enlarged
    smooth, share, blurs = smoothed(layers, FEW * max(1.0, radius / UNCROWDED_RADIUS) ** 2)
    discs = convolve(layers, disc(radius)[..., None], mode="constant")
    lone = lone_opacity(n_shown)
    mean, sharp = smooth[..., 0], discs[..., 0]  # counts
    smooth_level = np.minimum(np.log1p(CONTRAST * mean / top_of(mean)) / math.log1p(CONTRAST), 1)
    disc_level = np.minimum(np.log(np.maximum(sharp, 1)) / max(math.log(max(top_of(sharp), 1)), 1e-9), 1)
    if mixed is None and layers.shape[2] == 1:
        level = share * smooth_level + (1 - share) * disc_level
        palest = PALEST_FULL * (lone - FAINTEST) / (FULLEST - FAINTEST) * (1 - share)
        colours = ramp(theme.density)[np.rint((palest + (1 - palest) * level) * 255).astype(int)]
        opacity = np.maximum(np.minimum(sharp, 1), share)
    else:
        one_by_one = np.where(sharp < 1, lone * sharp, lone + (1 - lone) * disc_level)
        opacity = share * (THINNEST + (1 - THINNEST) * smooth_level) + (1 - share) * one_by_one
        if mixed is None:
            weight = 4 if layers.shape[2] > 4 else 0  # without a colour weight, by the counts of points
            means = [part[..., 1:4] / np.maximum(part[..., weight, None], 1e-9) for part in (smooth, discs)]
            colours = share[..., None] * means[0] + (1 - share[..., None]) * means[1]
        else:
            colours = mixed.colours[drawn_classes(layers[..., -1], share, blurs, disc(radius) > 0, mixed)]
    (paper,) = rgb(theme.paper)
    return paper + opacity[..., None] * (np.clip(colours, 0, 1) - paper)


def drawn_classes(
    weights: np.ndarray, share: np.ndarray, blurs: list[tuple[float, np.ndarray]], reach: np.ndarray, mixed: Mixed
) -> np.ndarray:
    """Return the class (h, w) that each pixel shows: that of one of the points which its average or its discs are of.

    Of an average, pixels (h, w) by their weights, over the blurs that were used; or, as often as its `share` is below
    one, of the topmost of the discs within `reach`. Draws are those of the pixel alone, in any order of the points.
    """
    random = generator(0, "picture/pixels").random
    total, chosen = np.zeros_like(weights, np.float64), np.zeros(weights.shape, np.int8)
    for number, (sigma, used) in enumerate(blurs):
        mass = used * (gaussian_filter(weights, sigma, mode="constant", truncate=TRUNCATED) if sigma else weights)
        total += mass
        chosen[random(weights.shape) * total < mass] = number
    topmost = minimum_filter(mixed.lowest, footprint=reach, mode="constant", cval=np.inf)
    classes = mixed.classes(topmost)
    averaged = ((random(weights.shape) < share) | np.isinf(topmost)) & (total > 0)
    down, across = random(weights.shape), random(weights.shape)
    for number, (sigma, _) in enumerate(blurs):
        pixels = np.flatnonzero(averaged & (chosen == number))
        for part in np.array_split(pixels, -(-len(pixels) // PIXELS_AT_ONCE)) if len(pixels) else ():
            source = blurred_from(weights, sigma, part, down.ravel()[part], across.ravel()[part]) if sigma else part
            classes.ravel()[part] = mixed.classes(mixed.lowest.ravel()[source])
    return classes


def blurred_from(
    weights: np.ndarray, sigma: float, pixels: np.ndarray, down: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Return for each pixel (n,) one of those that a Gaussian blur at it averages over, by its part of the average.

    Pixels are numbers in the flattened weights (h, w); `down` and `across` (n,) are uniform draws.
    """
    reach = int(TRUNCATED * sigma + 0.5)
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (offsets / sigma) ** 2)
    rows, columns = np.divmod(pixels, weights.shape[1])
    along = np.pad(correlate1d(weights.astype(np.float64), kernel, axis=1, mode="constant"), ((reach, reach), (0, 0)))
    rows += drawn_places(kernel * along[rows[:, None] + offsets + reach, columns[:, None]], down) - reach
    padded = np.pad(weights, ((0, 0), (reach, reach)))
    columns += drawn_places(kernel * padded[rows[:, None], columns[:, None] + offsets + reach], across) - reach
    return np.asarray(rows * weights.shape[1] + columns)


def drawn_places(masses: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return a place (n,) in each row of masses (n, m), as often as its share of the row; `draws` are uniform."""
    sums = masses.cumsum(axis=1)
    return np.asarray((sums <= (draws * sums[:, -1])[:, None]).sum(axis=1))


def smoothed(layers: np.ndarray, few: float) -> tuple[np.ndarray, np.ndarray, list[tuple[float, np.ndarray]]]:
    """Return layers (h, w, c), counts first, averaged over enough points, and how far (h, w) there are enough: 0 to 1.

    A blur is used where it holds enough points, as the next wider one shows, which has less noise; else a wider one:
    the last are their standard deviations, each with its part (h, w). `few` is how many points the widest blur holds
    where there are not enough at all.
    """
    sigmas = np.array(SIGMAS) * max(min(layers.shape[:2]) / USUAL_SIDE, 1.0)
    areas = np.maximum(4 * math.pi * sigmas**2, 1)  # pixels that each averages over
    mixed, area = np.zeros_like(layers), np.zeros(layers.shape[:2], np.float32)
    left, finer, blurs = np.ones_like(area), layers, []
    for narrow, sigma, pixels in zip(sigmas, sigmas[1:], areas, strict=False):
        wider = gaussian_filter(layers, (sigma, sigma, 0), mode="constant", truncate=TRUNCATED)
        used = left * np.clip(np.log2(np.maximum(pixels * wider[..., 0] / ENOUGH, 1e-9)) + 1, 0, 1)
        mixed += used[..., None] * finer
        area += used * pixels
        blurs.append((narrow, used))
        left, finer = left - used, wider
    mixed += left[..., None] * finer
    held = (area + left * areas[-1]) * mixed[..., 0]
    share = np.clip(np.log(np.maximum(held, 1e-9) / few) / math.log(ENOUGH / 2 / FEW), 0, 1)
    return mixed, share, [*blurs, (sigmas[-1], left)]


def top_of(values: np.ndarray) -> float:
    """Return the largest of the values above zero but for half a percent, 1 where there are none."""
    filled = values[values > 0]
    return float(np.percentile(filled, TOP_PERCENT)) if len(filled) else 1.0


class Panel:
    """Two columns of an embedding, or one as a strip in which height means nothing but the class, coloured by labels.

    `layers` (h, w, c) sum up what points add to their pixels; of classes, `mixed` has what each pixel shows. `named`
    are the classes whose names are drawn on their clusters, and `densities` (CELLS**2, named) their points by cell of
    the panel.
    """

    def __init__(
        self, shape: tuple[int, int], pair: Pair | None, limits: np.ndarray, colours: LabelColours, named: bool
    ) -> None:
        self.shape, self.pair, self.colours = shape, pair, colours
        self.n_bands = len(colours.colours) if 1 < len(colours.classes) <= LARGEST_LEGEND else 1
        strip = np.array([limits[0], (-0.1, self.n_bands + 0.1)])
        self.limits = strip if pair is None else panel_limits(limits[list(pair)], *shape)
        self._added = layers_of(colours)
        self.layers = np.zeros((*shape[::-1], self._added.shape[1]))
        self.mixed = Mixed.of(colours, shape) if colours.classes else None
        self.named = np.zeros(0, int)
        if named:  # of more classes than have a name, those with the most points have one
            counts = np.bincount(colours.index, minlength=len(colours.colours))[: len(colours.classes)]
            self.named = np.argsort(-counts, kind="stable")[:LARGEST_CLASSES]
        self.densities = np.zeros((CELLS**2, len(self.named)))

    def points(self, numbers: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where rows (n, d) of the embedding lie, across and up (2, n), and their colours as an index."""
        index = self.colours.index[numbers]
        if self.pair is not None:
            return rows[:, self.pair].T.astype(np.float64), index
        band = self.n_bands - 1 - index if self.n_bands > 1 else 0
        return np.stack([rows[:, 0], band + 0.15 + 0.7 * (numbers * GOLDEN_RATIO % 1)]), index

    def add(self, numbers: np.ndarray, rows: np.ndarray) -> None:
        """Count rows (n, d) of the embedding, whose numbers are (n,)."""
        places, index = self.points(numbers, rows)
        counts = cell_counts(places, index, self.limits, len(self._added), self.shape)
        self.layers += (counts @ self._added).reshape(self.layers.shape)
        if self.mixed is not None:
            self.mixed.add(numbers, index, places, self.limits)
        if len(self.named):
            counts = cell_counts(places, index, self.limits, len(self._added), (CELLS, CELLS))
            self.densities += counts.tocsc()[:, self.named].toarray()


def robust_limits(sample: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return what to show of each column: (d, 2), everything unless far outliers would squeeze the rest.

    `sample` (m, d) are rows spread over all of them, and `ends` (n, d) have the lowest and highest of every column.
    """
    low, high = np.percentile(sample, CORE_PERCENT, axis=0)
    reach = REACH * (high - low)
    shown = np.concatenate([sample, ends])
    within = (shown >= low - reach) & (shown <= high + reach)
    low = shown.min(axis=0, where=within, initial=np.inf)
    high = shown.max(axis=0, where=within, initial=-np.inf)
    # A constant column gets an extent that its rounding does not fill.
    constant = high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    widened = np.where(constant, np.maximum(np.abs(low), 1.0) * 0.5, 0.0)
    return np.stack([low - widened, high + widened], axis=1)


def panel_limits(limits: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return the limits (2, 2) of a panel of so many pixels that shows (2, 2), lowest and highest of each axis.

    One unit is as long across as up unless that would leave the panel nearly empty.
    """
    middle = limits.mean(axis=1)
    extents = np.ptp(limits, axis=1) * (1 + 2 * MARGIN)
    unit = extents / (width, height)
    if unit.max() <= LARGEST_EXTENT_RATIO * unit.min():
        extents = unit.max() * np.array([width, height])
    return middle[:, None] + extents[:, None] * [-0.5, 0.5]


def column_limits(source: PointsSource, n_shown: int) -> np.ndarray:
    """Return lowest and highest value to show (n_shown, 2) of the first columns; DataError without a finite row."""
    stride = -(-source.shape[0] // SAMPLED_ROWS)
    sampled, ends = [], []
    for start, rows in blocks(source):
        shown = rows[:, :n_shown].astype(np.float64)
        finite = np.where(np.isfinite(shown), shown, np.nan)
        sampled.append(finite[-start % stride :: stride])
        ends += [np.fmin.reduce(finite, axis=0), np.fmax.reduce(finite, axis=0)]
    sample = np.concatenate(sampled)
    sample = sample[np.isfinite(sample).all(axis=1)]
    if not len(sample):
        raise DataError(f"{source.description} has no finite row to draw: give coordinates that are numbers")
    return robust_limits(sample, np.array(ends))
