"""Landmarks of points in memory, Z, and the surface around landmarks: covariances, and eigenmaps of their own graph."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.params import TUNED, Parameters, checked_settings
from scalemani.config.validation import check_count, check_flag, check_magnitude, check_seed
from scalemani.errors import ConfigError, DataError, ShortfallWarning, nearest_name, warn
from scalemani.interfaces.functions.validation import checked_metric
from scalemani.io.sources import points_in_memory
from scalemani.io.sources.side_data import check_distinct
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.geometry import LocalGeometry, bhattacharyya_neighbors, local_geometry
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS, selected_landmarks
from scalemani.kernels.landmarks.weights import local_weights
from scalemani.kernels.rows.equal_rows import first_of_equal_rows
from scalemani.kernels.rows.metrics import EUCLIDEAN
from scalemani.kernels.spectral.eigenmaps import Eigenmaps
from scalemani.kernels.spectral.landmark_graph import extend_by_nystrom, landmark_kernel, landmark_maps, nystrom_gains
from scalemani.stages.landmarks import choice_of

NUMBERS = tuple(sorted(f"landmarks.{name}" for name in TUNED["landmarks"] - {"snap"}))  # which is an argument


class Landmarks(NamedTuple):
    """Landmarks (L, D) in the dtype of the points, and their rows (L,) int64.

    Off the data they are float64, and `indices` is None. `points` lie where `metric` maps rows, as at unit length
    under cosine.
    """

    points: np.ndarray
    indices: np.ndarray | None
    metric: str = EUCLIDEAN


def select_landmarks(  # noqa: PLR0913 - what a run takes of points and landmarks
    points: Any,
    n_landmarks: int,
    method: str = "random",
    random_state: Any = 0,
    *,
    sample_points: int = 100_000,
    snap: bool = True,
    settings: Mapping[str, Any] | None = None,
    metric: str = EUCLIDEAN,
) -> Landmarks:
    """Select landmarks of points in memory, those of a run with the same seed; no two have equal coordinates.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, or anything that `open_points` takes: it is read whole
    n_landmarks : L, from 1 to N
    method : "random": uniformly without replacement; "spread": L + L/2 at random, less one of each closest pair;
        "kmeans" and "kmeans++": mini-batch k-means from random or k-means++ seeds, each centroid then replaced by the
        nearest data point; "kmeans++ seeding": those seeds alone; "minmax": farthest first; "dpp": landmarks that
        repel each other, an approximation of determinantal sampling; "dpp-exact": the fixed-size determinantal point
        process itself, of up to 5,000 points; "gp-active": each the point of which a Gaussian process knows least from
        those before; "gp": places off the data that do so for many points, by stochastic gradients
    random_state : seed; the same one gives the same landmarks. None draws one
    sample_points : points that k-means takes in batches, and among which "kmeans++", "kmeans++ seeding", "minmax" and
        "gp-active" choose, and that "gp" takes in batches; random, spread and determinantal landmarks are drawn among
        all
    metric : "euclidean", "cosine", "correlation", "hellinger" or "hamming", as in `LaplacianEigenmaps`: landmarks
        are mapped rows
    snap : False leaves the centroids of "kmeans" and "kmeans++" where they are, off the data
    settings : other numbers by the names that they have on the command line: {"landmarks.sigma": 2.5},
        {"landmarks.eta": 40.0, "landmarks.steps": 500, "landmarks.projection": "orthant"}

    Returns
    -------
    Landmarks, rows ascending; off the data in float64, with `indices` None, those of "gp" in the order found

    Raises
    ------
    ConfigError
        For an unknown method or metric, and `n_landmarks`, `random_state`, `sample_points` or `snap` out of range.
    DataError
        For points that cannot be used (see `scalemani.config.validation.check_points`), points that are all equal, and
        fewer distinct points than landmarks.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.4.
    Wachinger and Golland, arXiv:1503.03506, sections 3.1 and 3.2, for determinantal sampling.
    Liang and Paisley, Landmarking manifolds with Gaussian processes, ICML 2015, section 2 for "gp-active", 3 and 4
    for "gp".

    Examples
    --------
    >>> import numpy as np
    >>> points = np.arange(20.0).reshape(10, 2)
    >>> select_landmarks(points, 3, method="minmax", random_state=1).indices.shape
    (3,)
    """
    if not isinstance(method, str) or method not in LANDMARK_METHODS:
        raise ConfigError(f"method {method!r} is unknown; {nearest_name(method, LANDMARK_METHODS)}")
    seed = check_seed(random_state)
    table = points_in_memory(points, metric=checked_metric(metric, "landmarks are chosen among points"))
    n_selected = check_count(n_landmarks, "n_landmarks", 1, len(table), "the number of points")
    n_sampled = check_count(sample_points, "sample_points")
    if len(table) > 1:
        check_magnitude(table.min(axis=0), table.max(axis=0), table.dtype)
    choice = choice_of(_asked(settings))._replace(n_landmarks=n_selected, method=method, seed=seed)
    selected = selected_landmarks(table, choice._replace(sample_points=n_sampled, snap=check_flag(snap, "snap")))
    return Landmarks(selected.points, selected.rows, metric)


def _asked(settings: Mapping[str, Any] | None) -> Parameters:
    given = checked_settings(settings)
    unused = [name for name in given if name not in NUMBERS]
    if unused:
        raise ConfigError(f"settings has {unused[0]!r}, which is no number of landmarks; it takes {', '.join(NUMBERS)}")
    return Parameters().with_settings(given)


def landmark_weights(points: Any, landmarks: Any, n_neighbors: int = 5) -> sp.csr_matrix:
    """Return Z: each point as a combination of its nearest landmarks, with weights that sum to one.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, the data or new points, or anything that `open_points` takes: they are
        read whole
    landmarks : (L, D) array-like with distinct rows, or the result of `select_landmarks`, whose metric then maps the
        points too
    n_neighbors : K_Z, landmarks per point, from 1 to L

    Returns
    -------
    (N, L) CSR matrix of float64, columns ascending in each row. Weights that are zero are left out: a point that is a
    landmark has one entry, exactly 1. A run stores K_Z landmarks and weights of every point instead, zeros among them

    Raises
    ------
    ConfigError
        For `n_neighbors` out of range.
    DataError
        For arrays that cannot be used, differing numbers of columns, and repeated landmarks.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> landmark_weights(np.array([[0.25]]), np.array([[0.0], [1.0]]), n_neighbors=2).toarray().round(3)
    array([[0.75, 0.25]])
    """
    given = landmarks if isinstance(landmarks, Landmarks) else Landmarks(landmarks, None)
    table = points_in_memory(points, metric=given.metric)
    selected = points_in_memory(given.points, "landmarks")
    if table.shape[1] != selected.shape[1]:
        raise DataError(f"points have {table.shape[1]} columns, landmarks {selected.shape[1]}; they must have the same")
    n_used = check_count(n_neighbors, "n_neighbors", 1, len(selected), "the number of landmarks")
    check_distinct(selected)
    minima = np.minimum(table.min(axis=0), selected.min(axis=0))
    maxima = np.maximum(table.max(axis=0), selected.max(axis=0))
    if not np.array_equal(minima, maxima):
        check_magnitude(minima, maxima, np.result_type(table, selected), "points and landmarks")
    indices, _ = nearest_landmarks(table, selected, n_used)
    values = local_weights(table, selected, indices)
    offsets = np.arange(0, indices.size + 1, n_used, dtype=np.int64)
    weights = sp.csr_matrix((values.ravel(), indices.ravel(), offsets), shape=(len(table), len(selected)))
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights


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
