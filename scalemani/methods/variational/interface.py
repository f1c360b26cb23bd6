"""The variational Nystrom method on arrays in memory: `variational_nystrom`."""

from typing import Any

import numpy as np

from scalemani.config.validation import check_count
from scalemani.errors import DataError
from scalemani.interfaces.functions.validation import checked_affinities
from scalemani.interfaces.report.certificates import Meaning
from scalemani.kernels.spectral.eigenmaps import Eigenmaps
from scalemani.methods.variational.kernels import variational_eigenmaps


def variational_nystrom(W: Any, landmarks: Any, n_components: int = 2) -> Eigenmaps:
    """Return Laplacian eigenmaps of W whose points are means of the landmarks among their neighbours.

    Plain Nystrom solves the landmarks' own block of W. Here the embedding is the best, by all of W, that points have as
    means of landmarks, weighed by their affinities: Z = W[:, landmarks], rows over their sums, takes the place of the
    weights of `landmark_weights`. A landmark is itself, and no mean of its neighbours: eigenvalues are a few per cent
    larger than with the columns of W + I in Z, and landmarks keep places that new points are means of. A point without
    a landmark among its neighbours takes the mean of these, at most 16 landmarks in all.

    Parameters
    ----------
    W : (N, N) sparse, symmetric affinities (`symmetric_affinities`)
    landmarks : (L,) int, rows of the points that are landmarks, distinct, or the result of `select_landmarks`
    n_components : d, from 1 to L - 1

    Returns
    -------
    Eigenmaps
        eigenvalues (d,) float64, ascending, none below the exact one, the trivial one left out; embedding (N, d)
        float64.

    Raises
    ------
    DataError
        For a W that is not symmetric, negative or not finite, and landmarks that are not distinct rows of it.
    DisconnectedGraphError
        For a point without any affinity, a graph of several components, and one of them without a landmark.

    References
    ----------
    Vladymyrov and Carreira-Perpinan, The Variational Nystrom method for large-scale spectral problems, ICML 2016.

    Examples
    --------
    >>> ring = np.roll(np.eye(12), 1, axis=1)
    >>> variational_nystrom(ring + ring.T, [0, 3, 6, 9]).embedding.shape
    (12, 2)
    """
    affinities = checked_affinities(W)
    rows = np.asarray(getattr(landmarks, "indices", landmarks))
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) < len(rows):
        raise DataError(
            f"landmarks must be distinct rows (L,) of W, got {rows.dtype} {rows.shape}: landmarks that are no points "
            "have no affinities"
        )
    if len(rows) and (rows.min() < 0 or rows.max() >= affinities.shape[0]):
        raise DataError(f"landmarks must lie in [0, {affinities.shape[0]}), got {rows.min()} to {rows.max()}")
    most = len(rows) - 1
    return variational_eigenmaps(
        affinities, rows, check_count(n_components, "n_components", 1, most, "the number of landmarks less one")
    )


MEANINGS = {
    "affinity_weights": {
        "landmarks_a_point": Meaning("landmarks that a point is a mean of, on average"),
        "points_without_landmark": Meaning("points with no landmark among their neighbours, which take these for it"),
        "further_steps": Meaning("steps from neighbour to neighbour until every point had landmarks"),
    },
}
