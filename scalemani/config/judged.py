"""Distances of rows that a metric compares, as certificates, audits and tests of runs compute them: no code of kernels.

SciPy has most of them, `JUDGES` the others.
"""

import numpy as np
from scipy.spatial.distance import cdist

from scalemani.config.functions import is_function, load_function
from scalemani.config.metrics import HAVERSINE, METRICS, power_of


def distances_between(metric: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distances (m, n) float64 of rows (m, D) to rows (n, D), as they are stored, in a metric."""
    if metric in JUDGES:
        return JUDGES[metric](one, other)
    if is_function(metric):
        return cdist(one, other, load_function(metric))
    power = power_of(metric)
    return cdist(one, other, METRICS[metric].scipy, **({} if power is None else {"p": power}))


def great_circles(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the angles (m, n) between places (m, 2) and (n, 2), latitudes and longitudes in radians."""
    (lat, lon), (others_lat, others_lon) = one.T[:, :, np.newaxis], other.T[:, np.newaxis]
    halves = np.sin((lat - others_lat) / 2) ** 2
    halves = halves + np.cos(lat) * np.cos(others_lat) * np.sin((lon - others_lon) / 2) ** 2
    return np.asarray(2 * np.arcsin(np.sqrt(np.minimum(halves, 1.0))))


JUDGES = {HAVERSINE: great_circles}  # of metrics that compare rows and that SciPy has not
