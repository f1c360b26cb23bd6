"""One weight for each point: how many equal points it stands for."""

from typing import Any

import numpy as np

from scalemani.errors import DataError
from scalemani.validation import N_REPORTED_ROWS


def check_weights(weights: Any, n_points: int, where: str = "sample_weight") -> np.ndarray:
    """Return the weights (N,) float64 of points, each the number of equal points that it stands for.

    Raises
    ------
    DataError
        For anything but one finite number of at least one a point.
    """
    given = np.asarray(weights)
    if given.dtype.kind not in "biuf":
        raise DataError(f"{where} must be real numbers, got dtype {given.dtype}: give each point how often it counts")
    if given.shape != (n_points,):
        raise DataError(
            f"{where} must have one weight a point, ({n_points},), got shape {given.shape}: give them in the points' "
            "order"
        )
    counts = given.astype(np.float64)
    wrong = np.flatnonzero(~((counts >= 1.0) & np.isfinite(counts)))
    if len(wrong):
        row = wrong[0]
        kinds = (
            ("NaN or infinite", ~np.isfinite(counts[row])),
            ("negative", counts[row] < 0),
            ("zero", counts[row] == 0),
            ("below one", True),
        )
        kind = next(name for name, holds in kinds if holds)
        listed = ", ".join(map(str, wrong[:N_REPORTED_ROWS]))
        raise DataError(
            f"{where} must be finite and at least 1, as a weight counts the equal points that one stands for: "
            f"{len(wrong)} are not, in row(s) {listed}; the first is {kind}, {given[row]}. Leave points of weight zero "
            "out, and divide smaller weights by the least"
        )
    return counts
