"""How isolated points are: how far from the known points near them, neighbours or landmarks, by the spacing of these.

Scales are local: the gap of a known point is the distance of its fifth nearest other one, and its spacing a multiple of
the gap that is measured on points that are left out. A point is compared by the distance of its fifth nearest, as a gap
is measured, with the median spacing of these five: what a hole is nearest to lies at the edge of a cluster, where a
single gap is wide, and an outlier or two among the five decide nothing.

Source of a ratio of distances to local distances: Breunig, Kriegel, Ng, Sander, LOF: identifying density-based local
outliers, 2000.
"""

from typing import NamedTuple

import numpy as np

AROUND = 5  # with fewer, ratios have long tails, so that holes are missed; more are not local where landmarks are few
NEAR = 10.0  # times the distance of the nearest known point, beyond which others do not count: next to one all is known
USUAL = 0.98  # share of the points that are left out which decides what is usual
WIDE = 2.0  # times the spacing, from which on a point lies in no gap of the known points but off the data
CORE = 0.75  # share of the points of which it is taken that they are no outliers
FARTHEST = 1e300  # what is beyond all numbers, where squares overflow


class Gaps(NamedTuple):
    """The gap of each known point (n,), and what it is where its nearest ones lack one: the distance of the next."""

    lengths: np.ndarray
    lacking: np.ndarray

    def left_out(self, nearest: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Return the gaps at those nearest to known points, at distances (m, k), as if these points were not known."""
        lengths = self.lengths[nearest]
        return np.where(distances <= lengths, self.lacking[nearest], lengths)


def gaps_of(distances: np.ndarray) -> Gaps:
    """Return the gaps of n known points of which distances (n, k) to others ascend.

    Copies do not count; of points with as many copies as there are distances, gaps are not known, and infinite.
    """
    apart = np.where(distances > 0, distances, np.inf)
    last = distances.shape[1] - 1
    first = max(0, min(AROUND, last) - 1)
    return Gaps(*(apart[:, column:].min(axis=1) for column in (first, min(first + 1, last))))


def usual_ratio(ratios: np.ndarray) -> float:
    """Return what `USUAL` of the ratios (n,) of distances to gaps do not exceed, of points that are left out.

    Ratios more than `WIDE` times as large do not count: these points are outliers, alone or in small groups, up to
    a share of a quarter. The result is the least that agrees with itself. Ratios of zero, of copies and
    where the gap is not known, do not count either; without others it is one.
    """
    known = np.sort(ratios[ratios > 0])
    if not len(known):
        return 1.0
    n_counted = int(np.ceil(CORE * len(known)))
    while True:
        usual = float(known[int(USUAL * (n_counted - 1))])
        n_within = int(np.searchsorted(known, WIDE * usual, "right"))
        if n_within <= n_counted:
            return usual
        n_counted = n_within


def spacings_of(gaps: Gaps, usual: float) -> np.ndarray:
    """Return how far from each known point (n,) others that are nearest to it usually lie, float64.

    Where the gap is not known it is taken to be the median of the others; zero where none is.
    """
    known = np.isfinite(gaps.lengths)
    lengths = np.where(known, gaps.lengths, np.median(gaps.lengths[known]) if known.any() else 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(lengths * np.float64(usual), FARTHEST)


def n_around(n_others: int) -> int:
    """Return how many of the other known points, of so many, a point is compared with."""
    return max(1, min(AROUND, n_others))


def ratios_to(distances: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return how far points are from the known ones nearest to them, by what is usual there: (n,), at most `FARTHEST`.

    Parameters
    ----------
    distances : (n, k) real, of these, ascending
    scales : (n, k) real, the gap or the spacing of each

    Returns
    -------
    (n,) float64, 0 where the nearest is at distance 0, at any scales
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        away = np.minimum(distances[:, -1], NEAR * np.asarray(distances[:, 0], np.float64))
        ratios = np.where(away == 0, 0.0, away / np.median(scales, axis=1))
    return np.minimum(np.nan_to_num(ratios, nan=FARTHEST, posinf=FARTHEST), FARTHEST)
