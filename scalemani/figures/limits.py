"""What of the plane a picture shows: all points but far outliers, and as much around them as fills a panel."""

import numpy as np

CORE_PERCENT = (2, 98)
REACH = 3.0  # extents of the core beyond which, on either side, points count as outliers
LARGEST_STRETCH = 4.0  # beyond this ratio of extents, axes are scaled one by one


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
    """Return the limits (2, 2) of a panel: one unit is as long across as up unless that would leave it nearly empty.

    Parameters
    ----------
    limits : (2, 2) float64, of what is shown: lowest and highest of each axis
    width, height, margin : of the panel, in pixels, and around what is shown as a share of it
    """
    middle = limits.mean(axis=1)
    extents = (limits[:, 1] - limits[:, 0]) * (1 + 2 * margin)
    unit = extents / (width, height)
    if unit.max() <= LARGEST_STRETCH * unit.min():
        extents = unit.max() * np.array([width, height])
    return np.stack([middle - extents / 2, middle + extents / 2], axis=1)
