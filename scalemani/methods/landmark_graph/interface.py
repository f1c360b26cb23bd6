"""Landmarks that know the surface around them: `landmark_covariances` and `nystrom_eigenmaps`."""

from typing import Any

import numpy as np

from scalemani.config.validation import check_count, check_flag
from scalemani.errors import ConfigError, DataError, ShortfallWarning, warn
from scalemani.interfaces.functions.landmarks import Landmarks
from scalemani.interfaces.report.certificates import NEAR_ZERO, Meaning, good_if, none_of
from scalemani.io.sources import points_in_memory
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.rows.equal_rows import first_of_equal_rows
from scalemani.kernels.spectral.eigenmaps import Eigenmaps
from scalemani.methods.landmark_graph.kernels import (
    LocalGeometry,
    bhattacharyya_neighbors,
    extend_by_nystrom,
    landmark_kernel,
    landmark_maps,
    local_geometry,
    nystrom_gains,
)

REMEDY = "give more n_neighbors or landmarks, a larger sigma where edges weigh nearly nothing, or each piece by itself"


def landmark_covariances(points: Any, landmarks: Any, neighborhood: int, *, diagonal: bool = False) -> LocalGeometry:
    """Return the covariances of the points around each landmark.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, or anything that `open_points` takes: it is read whole
    landmarks : (L, D) array-like with distinct rows, or the result of `select_landmarks`
    neighborhood : m, points nearest to a landmark that its covariance is of, from 1 to N; points exactly as far as the
        last of them count too
    diagonal : True computes variances alone, for many dimensions

    Returns
    -------
    LocalGeometry: covariances (L, D, D) float64, or (L, D); counts (L,), the points that they are of, m or more;
    regularized (L,), those singular ones to whose diagonal a thousandth of the mean variance was added, which a warning
    tells of

    Raises
    ------
    ConfigError
        For `neighborhood` or `diagonal` out of range.
    DataError
        For arrays that cannot be used, differing numbers of columns, and repeated landmarks.

    References
    ----------
    Wachinger and Golland, Diverse landmark sampling from determinantal point processes, arXiv:1503.03506, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.linspace(0, 10, 101)[:, np.newaxis]
    >>> landmark_covariances(line, line[10::40], 11).covariances.ravel().round(3)
    array([0.1, 0.1, 0.1])
    """
    table, selected = _checked(points, landmarks)
    n_near = check_count(neighborhood, "neighborhood", 1, len(table), "the number of points")
    found = local_geometry(table, selected, n_near, check_flag(diagonal, "diagonal"))
    if found.regularized.any():
        warn(
            f"{np.count_nonzero(found.regularized)} of {len(selected)} landmarks have singular covariances, to whose "
            "diagonals a thousandth of their mean variance was added; give a larger neighborhood, or fewer dimensions"
        )
    return found


def nystrom_eigenmaps(
    points: Any, landmarks: Any, n_neighbors: int, sigma: float, n_components: int = 2, *, covariances: Any = None
) -> Eigenmaps:
    """Return Laplacian eigenmaps of the landmarks' own graph, carried to all points by Nystrom's formula.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, or anything that `open_points` takes: it is read whole
    landmarks : (L, D) array-like with distinct rows, or the result of `select_landmarks`
    n_neighbors : landmarks that each landmark is joined to, below L
    sigma : bandwidth of the Gaussian kernel of Euclidean distances that weighs edges, in the unit of the points
    n_components : d, below L
    covariances : (L, D, D) or (L, D), as `landmark_covariances` returns them: neighbours are those by the Bhattacharyya
        distance. None: by the Euclidean distance

    Returns
    -------
    Eigenmaps: eigenvalues (d,) of the landmarks' Laplacian, ascending, the trivial one left out; embedding (N, d)
    float64, of eigenvectors of the normalised kernel. Columns of eigenvalues from 1 on are zero, with a warning

    Raises
    ------
    ConfigError
        For numbers out of range.
    DataError
        For arrays that cannot be used, differing shapes, and repeated landmarks.
    DisconnectedGraphError
        For a graph of landmarks in pieces, as in a run: vectors of a null space are one basis of many.

    References
    ----------
    Wachinger and Golland, Diverse landmark sampling from determinantal point processes, arXiv:1503.03506, section 3.3
    and equations 8 to 10.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.linspace(0, 1, 50)[:, np.newaxis]
    >>> nystrom_eigenmaps(line, line[::5], 3, 0.2, n_components=1).embedding.shape
    (50, 1)
    """
    table, selected = _checked(points, landmarks)
    n_joined = check_count(n_neighbors, "n_neighbors", 1, len(selected) - 1, "one less than landmarks")
    n_columns = check_count(n_components, "n_components", 1, len(selected) - 1, "one less than landmarks")
    if not isinstance(sigma, int | float) or not 0.0 < sigma < np.inf:
        raise ConfigError(f"sigma must be a number > 0, got {sigma!r}")
    if covariances is None:
        # Landmarks are distinct, so that each is its own nearest.
        neighbors = nearest_landmarks(selected, selected, n_joined + 1)[0][:, 1:]
    else:
        neighbors = bhattacharyya_neighbors(selected, _checked_covariances(covariances, selected), n_joined)
    maps = landmark_maps(landmark_kernel(selected, neighbors, sigma), n_columns, REMEDY)
    n_beyond = int(np.count_nonzero(nystrom_gains(maps.eigenvalues) == 0.0))
    if n_beyond:
        warn(
            f"{n_beyond} of {n_columns} eigenvalues are 1 or more, and their columns have no extension to points: they "
            "are zero; ask for fewer n_components",
            ShortfallWarning,
        )
    starts = range(0, len(table), TILE_ROWS)
    tiles = [extend_by_nystrom(table[start : start + TILE_ROWS], selected, maps, sigma) for start in starts]
    return Eigenmaps(maps.eigenvalues, np.concatenate(tiles))


def _checked(points: Any, landmarks: Any) -> tuple[np.ndarray, np.ndarray]:
    table = points_in_memory(points)
    selected = points_in_memory(landmarks.points if isinstance(landmarks, Landmarks) else landmarks, "landmarks")
    if table.shape[1] != selected.shape[1]:
        raise DataError(f"points have {table.shape[1]} columns, landmarks {selected.shape[1]}; they must have the same")
    n_distinct = len(first_of_equal_rows(selected))
    if n_distinct < max(2, len(selected)):
        raise DataError(
            f"landmarks must be two or more and distinct, got {len(selected)} rows, {n_distinct} of them distinct; "
            "select them with select_landmarks"
        )
    return table, selected


def _checked_covariances(covariances: Any, landmarks: np.ndarray) -> np.ndarray:
    table = np.asarray(covariances, dtype=np.float64)
    n_landmarks, width = landmarks.shape
    if table.shape not in ((n_landmarks, width), (n_landmarks, width, width)):
        raise DataError(
            f"covariances must have shape {(n_landmarks, width, width)}, or {(n_landmarks, width)} where they are "
            f"diagonal, got {table.shape}; landmark_covariances returns them"
        )
    least = table.min() if table.ndim == 2 else np.linalg.eigvalsh(table).min() if np.isfinite(table).all() else np.nan
    if not (np.isfinite(table).all() and least > 0.0):
        raise DataError("covariances must be finite and positive definite; landmark_covariances returns them so")
    return table


LEAST_POINTS = good_if(
    lambda value, run: value >= run.params.landmark_graph.neighborhood,
    lambda run: f"at least {run.params.landmark_graph.neighborhood}, which landmark_graph.neighborhood asks for",
    "short",
)
MEANINGS = {
    "landmark_covariances": {
        "least_points": Meaning("points that the covariance of any landmark is of, at least", LEAST_POINTS),
        "singular_covariances": Meaning(
            "landmarks around which points span less than all features",
            none_of("their neighbours are rough: raise landmark_graph.neighborhood or take diagonal covariances"),
        ),
    },
    "landmark_graph": {
        "sigma": Meaning("the bandwidth of the kernel that weighs edges between landmarks"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", NEAR_ZERO),
    },
}
