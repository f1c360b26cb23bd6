"""The Bhattacharyya distance of landmarks: that of the Gaussians of the points around them.

Two landmarks on neighbouring sheets may be as near as two on one sheet: these Gaussians are not.
"""

import numpy as np

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace

ROWS_TOGETHER = 16  # of distances between landmarks, in one step


def bhattacharyya_distances(landmarks: np.ndarray, covariances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the Bhattacharyya distances of some landmarks to all: (m, L) float64, zero of each to itself.

    Parameters
    ----------
    landmarks : (L, D) real
    covariances : (L, D, D) positive definite, or (L, D) positive where they are diagonal
    rows : (m,) int64, of landmarks

    References
    ----------
    [DPP] 3.3, equation 7.
    """
    places = np.asarray(landmarks, dtype=np.float64)
    logarithms = _log_determinants(covariances)
    distances = np.empty((len(rows), len(places)))
    for number, row in enumerate(rows):
        between = 0.5 * (covariances + covariances[row])
        differences = places - places[row]
        if covariances.ndim == 2:
            squares = (differences**2 / between).sum(axis=1)
        else:
            solved = np.linalg.solve(between, differences[:, :, np.newaxis])[:, :, 0]
            squares = np.einsum("ld,ld->l", differences, solved)
        ratios = _log_determinants(between) - 0.5 * (logarithms + logarithms[row])
        distances[number] = np.maximum(0.125 * squares + 0.5 * ratios, 0.0)
        distances[number, row] = 0.0
    return distances


def bhattacharyya_neighbors(
    landmarks: np.ndarray, covariances: np.ndarray, n_neighbors: int, workspace: Workspace = IN_MEMORY
) -> np.ndarray:
    """Return the landmarks nearest to each by the Bhattacharyya distance, itself left out.

    Parameters
    ----------
    landmarks, covariances : as of `bhattacharyya_distances`
    n_neighbors : below L

    Returns
    -------
    (L, n_neighbors) int64, nearest first; of equal distances the lower number comes first
    """

    def nearest(rows: slice) -> np.ndarray:
        own = np.arange(rows.start, rows.stop)
        distances = bhattacharyya_distances(landmarks, covariances, own)
        distances[np.arange(len(own)), own] = np.inf
        return np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]

    return np.concatenate(list(workspace.over(nearest, slices(len(landmarks), ROWS_TOGETHER)))).astype(np.int64)


def _log_determinants(covariances: np.ndarray) -> np.ndarray:
    if covariances.ndim == 2:
        return np.asarray(np.log(covariances).sum(axis=1))
    return np.asarray(np.linalg.slogdet(covariances)[1])
