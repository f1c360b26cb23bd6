"""From points to shaded pixels: robust limits, counts and colours by pixel, and opacity from density.

Every point is counted in its pixel, none hides another, and the cost of drawing does not depend on how they overlap.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import convolve

from scalemani.figures.palette import DENSITY, ramp
from scalemani.kernels.machine.compile import compiled

CORE_PERCENT = (2, 98)
REACH = 3.0  # extents of the core beyond which, on either side, points count as outliers
LARGEST_STRETCH = 4.0  # beyond this ratio of extents, axes are scaled one by one
COVERED_SHARE = 0.2  # of the pixels that discs of few points may cover
LARGEST_RADIUS = 4.0
SMALLEST_RADIUS = 0.5  # below, a point is a pixel
FAINTEST, FULLEST = 0.3, 0.85  # opacity of a lone point among ten million, among ten thousand
PALEST_FULL = 0.7  # where the density ramp starts for points of full opacity
TOP_PERCENT = 99.5


@dataclass
class Canvas:
    """Counts and summed colours of the points that fell on each pixel of one panel, and how many fell beside it."""

    width: int
    height: int
    limits: np.ndarray  # (2, 2): lowest and highest of each axis
    counts: np.ndarray = field(init=False)
    sums: np.ndarray = field(init=False)
    n_points: int = 0
    n_outside: int = 0

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.height, self.width))
        self.sums = np.zeros((self.height, self.width, 3))

    def add(self, across: np.ndarray, up: np.ndarray, index: np.ndarray, colours: np.ndarray) -> None:
        """Count points at (across, up), each with the colour `colours[index]`."""
        points = np.stack([across, up], axis=1).astype(np.float64)
        self.n_points += len(points)
        self.n_outside += int(bin_points(points, self.limits, index, colours, self.counts, self.sums))


@compiled
def bin_points(
    points: np.ndarray, limits: np.ndarray, index: np.ndarray, colours: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> int:
    """Add points (n, 2) to `counts` (h, w), their colours to `sums` (h, w, 3); return how many lie outside `limits`."""
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
        for channel in range(3):
            sums[row, column, channel] += colours[index[i], channel]
    return outside


def robust_limits(sample: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """Return what to show of each column: (d, 2), everything unless far outliers would squeeze the rest.

    Parameters
    ----------
    sample : (m, d) rows spread over all of them
    lowest, highest : (d,) over all rows
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


def panel_limits(limits: np.ndarray, width: int, height: int, margin: float = 0.02) -> np.ndarray:
    """Return the limits (2, 2) of a panel: one unit is as long across as up unless that would leave it nearly empty."""
    middle = limits.mean(axis=1)
    extents = (limits[:, 1] - limits[:, 0]) * (1 + 2 * margin)
    unit = extents / (width, height)
    if unit.max() <= LARGEST_STRETCH * unit.min():
        extents = unit.max() * np.array([width, height])
    return np.stack([middle - extents / 2, middle + extents / 2], axis=1)


def disc(radius: float) -> np.ndarray:
    """Return a disc with smooth edges for few points to be seen as: 1 at its centre."""
    reach = math.ceil(radius)
    away = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1])
    return np.clip(radius + 0.5 - away, 0, 1)


def point_radius(n_points: int, pixels: int) -> float:
    """Return the radius in pixels at which the points would cover a small share of the panel; at most 4."""
    return min(LARGEST_RADIUS, math.sqrt(COVERED_SHARE * pixels / (math.pi * max(n_points, 1))))


def lone_opacity(n_points: int) -> float:
    """Return the opacity of a pixel with one point: the more points, the fainter."""
    share = np.clip((7 - math.log10(max(n_points, 1))) / 3, 0, 1)
    return float(FAINTEST + (FULLEST - FAINTEST) * share)


def shade(canvas: Canvas, density_only: bool) -> np.ndarray:
    """Return the pixels of a canvas on white: (h, w, 3) float from 0 to 1.

    Opacity grows with the logarithm of the count; the colour is the mean of the points' colours, or stands for the
    count too where `density_only`.
    """
    counts, sums = canvas.counts, canvas.sums
    n_shown = canvas.n_points - canvas.n_outside
    radius = point_radius(n_shown, counts.size)
    if radius > SMALLEST_RADIUS:
        stamp = disc(radius)
        counts = convolve(counts, stamp, mode="constant")
        sums = np.stack([convolve(sums[..., channel], stamp, mode="constant") for channel in range(3)], axis=2)
    filled = counts > 0
    top = max(float(np.percentile(counts[filled], TOP_PERCENT)), 1.0) if filled.any() else 1.0
    level = np.clip(np.log(np.maximum(counts, 1)) / max(math.log(top), 1e-9), 0, 1)
    lone = lone_opacity(n_shown)
    if density_only:
        palest = PALEST_FULL * (lone - FAINTEST) / (FULLEST - FAINTEST)
        colours = ramp(DENSITY)[np.rint((palest + (1 - palest) * level) * 255).astype(int)]
        opacity = np.minimum(counts, 1)
    else:
        colours = sums / np.maximum(counts, 1e-9)[..., None]
        opacity = np.where(counts < 1, lone * counts, lone + (1 - lone) * level)
    return 1 - opacity[..., None] * (1 - colours)
