"""From points to shaded pixels: counts and colours by pixel, and opacity from density.

Every point is counted in its pixel, none hides another, and the cost of drawing does not depend on how they overlap.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import convolve, gaussian_filter

from scalemani.figures.palette import ramp
from scalemani.figures.themes import THEMES, Theme
from scalemani.kernels.machine.compile import compiled

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
FAINT_WEIGHT = 0.01  # of the colour of points without a label beside that of a point with one
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


@dataclass
class Canvas:
    """Counts and summed colours of the points that fell on each pixel of one panel, and how many fell beside it.

    `sums` are red, green, blue and weight: a colour counts by its weight, and points by one.
    """

    width: int
    height: int
    limits: np.ndarray  # (2, 2): lowest and highest of each axis
    counts: np.ndarray = field(init=False)
    sums: np.ndarray = field(init=False)
    n_points: int = 0
    n_outside: int = 0

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.height, self.width))
        self.sums = np.zeros((self.height, self.width, 4))

    def add(self, across: np.ndarray, up: np.ndarray, index: np.ndarray, colours: np.ndarray) -> None:
        """Count points at (across, up): the others are those of `bin_points`."""
        points = np.stack([across, up], axis=1).astype(np.float64)
        self.n_points += len(points)
        self.n_outside += int(bin_points(points, self.limits, index, colours, self.counts, self.sums))

    def pixels_of(self, across: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Return where points (n, 2) lie, in pixels from the upper left corner; outside of the panel too."""
        shares = (np.stack([across, up], axis=1) - self.limits[:, 0]) / np.ptp(self.limits, axis=1)
        return np.stack([shares[:, 0] * self.width, (1 - shares[:, 1]) * self.height], axis=1)


def weighted_colours(colours: np.ndarray, faint: int | None) -> np.ndarray:
    """Return colours (n, 3) times their weights, and these: (n, 4); one may be faint, for others to lie over it."""
    weights = np.ones(len(colours))
    if faint is not None:
        weights[faint] = FAINT_WEIGHT
    return np.concatenate([colours * weights[:, None], weights[:, None]], axis=1)


@compiled
def bin_points(
    points: np.ndarray, limits: np.ndarray, index: np.ndarray, colours: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> int:
    """Add points to the pixels they fall on; return how many lie outside the limits.

    Parameters
    ----------
    points : (n, 2) float64, across and up
    limits : (2, 2) float64, lowest and highest of each axis
    index, colours : (n,) int, and what it counts in: (m, 4) float64, as of `weighted_colours`
    counts, sums : (h, w) and (h, w, 4) float64, added to
    """
    height, width = counts.shape
    outside = 0
    for i in range(points.shape[0]):
        across = (points[i, 0] - limits[0, 0]) / (limits[0, 1] - limits[0, 0])
        up = (points[i, 1] - limits[1, 0]) / (limits[1, 1] - limits[1, 0])
        if not (across >= 0 and across <= 1 and up >= 0 and up <= 1):  # true for NaN too
            outside += 1
            continue
        column = min(int(across * width), width - 1)
        row = height - 1 - min(int(up * height), height - 1)
        counts[row, column] += 1
        for channel in range(sums.shape[2]):
            sums[row, column, channel] += colours[index[i], channel]
    return outside


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
    """Return the pixels of a canvas on the paper of a theme: (h, w, 3) float from 0 to 1.

    Where points are dense enough for it, opacity grows with the logarithm of their density, and the colour is the mean
    of theirs; both are averaged over as few pixels as hold enough points, so that chance does not show as grain. Where
    they are sparse, every point is a disc.

    Parameters
    ----------
    canvas : of the points
    density_only : whether the colour stands for the density too
    theme : whose paper, and whose colours of densities
    enlarged : times the usual radius of discs
    """
    n_shown = canvas.n_points - canvas.n_outside
    layers = canvas.counts[..., None] if density_only else np.concatenate([canvas.counts[..., None], canvas.sums], 2)
    layers = layers.astype(np.float32)
    radius = point_radius(n_shown, canvas.counts.size) * enlarged
    smooth, share = smoothed(layers, FEW * max(1.0, radius / UNCROWDED_RADIUS) ** 2)
    discs = stamped(layers, disc(radius))
    lone = lone_opacity(n_shown)
    smooth_level, disc_level = steps_of_density(smooth[..., 0]), steps_of_counts(discs[..., 0])
    opacity = share * (THINNEST + (1 - THINNEST) * smooth_level) + (1 - share) * np.where(
        discs[..., 0] < 1, lone * discs[..., 0], lone + (1 - lone) * disc_level
    )
    if density_only:
        level = share * smooth_level + (1 - share) * disc_level
        palest = PALEST_FULL * (lone - FAINTEST) / (FULLEST - FAINTEST) * (1 - share)
        colours = ramp(theme.density)[np.rint((palest + (1 - palest) * level) * 255).astype(int)]
        opacity = np.maximum(np.minimum(discs[..., 0], 1), share)
    else:
        means = [part[..., 1:4] / np.maximum(part[..., 4:], 1e-9) for part in (smooth, discs)]
        colours = share[..., None] * means[0] + (1 - share[..., None]) * means[1]
    paper = np.array(theme.paper) / 255
    return paper + opacity[..., None] * (np.clip(colours, 0, 1) - paper)


def smoothed(layers: np.ndarray, few: float) -> tuple[np.ndarray, np.ndarray]:
    """Return layers (h, w, c), counts first, averaged over enough points, and how far (h, w) there are enough: 0 to 1.

    A blur is used where it holds enough points, as the next wider one tells, which has less noise; else a wider one.

    Parameters
    ----------
    layers : counts of points, and what else is averaged as these are
    few : points that the widest blur holds where there are not enough at all
    """
    sigmas = np.array(SIGMAS) * max(min(layers.shape[:2]) / USUAL_SIDE, 1.0)
    areas = np.maximum(4 * math.pi * sigmas**2, 1)  # pixels that each averages over
    mixed, area = np.zeros_like(layers), np.zeros(layers.shape[:2], np.float32)
    left, finer = np.ones_like(area), layers
    for sigma, pixels in zip(sigmas[1:], areas, strict=False):
        wider = blurred(layers, sigma)
        used = left * np.clip(np.log2(np.maximum(pixels * wider[..., 0] / ENOUGH, 1e-9)) + 1, 0, 1)
        mixed += used[..., None] * finer
        area += used * pixels
        left, finer = left - used, wider
    mixed += left[..., None] * finer
    held = (area + left * areas[-1]) * mixed[..., 0]
    share = np.clip(np.log(np.maximum(held, 1e-9) / few) / math.log(ENOUGH / 2 / FEW), 0, 1)
    return mixed, share


def blurred(layers: np.ndarray, sigma: float) -> np.ndarray:
    """Return layers (h, w, c) averaged by a Gaussian of a standard deviation in pixels; at zero as they are."""
    return gaussian_filter(layers, (sigma, sigma, 0), mode="constant", truncate=3) if sigma else layers


def stamped(layers: np.ndarray, stamp: np.ndarray) -> np.ndarray:
    """Return layers (h, w, c) with each point drawn as a stamp."""
    return np.stack([convolve(layer, stamp, mode="constant") for layer in np.moveaxis(layers, 2, 0)], axis=2)


def steps_of_density(density: np.ndarray) -> np.ndarray:
    """Return densities from 0 to 1, in steps of their logarithm: 1 is the densest but for half a percent."""
    filled = density > 0
    top = float(np.percentile(density[filled], TOP_PERCENT)) if filled.any() else 1.0
    return np.clip(np.log1p(CONTRAST * density / top) / math.log1p(CONTRAST), 0, 1)


def steps_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return counts from 0 to 1: 0 is one point, 1 the most but for half a percent."""
    filled = counts > 0
    top = max(float(np.percentile(counts[filled], TOP_PERCENT)), 1.0) if filled.any() else 1.0
    return np.clip(np.log(np.maximum(counts, 1)) / max(math.log(top), 1e-9), 0, 1)
