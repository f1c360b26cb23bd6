"""Landmarks of points in memory, Z, and the surface around landmarks: covariances, and eigenmaps of their graph."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.choices import CoordinateMetric, LandmarkRule, Seed
from scalemani.config.metrics import lists_metrics
from scalemani.config.other_names import check_setting
from scalemani.config.params import TUNED, Parameters, checked_settings
from scalemani.config.validation import check_count, check_flag, check_magnitude, check_seed
from scalemani.errors import DataError, check_known
from scalemani.interfaces.functions.validation import checked_metric, checked_values
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources import open_points, points_in_memory, with_same_columns
from scalemani.io.sources.side_data import check_distinct, row_numbers
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS, PointsByRow, Selected, selected_landmarks
from scalemani.kernels.landmarks.weights import Limits, limited_weights
from scalemani.kernels.rows.metrics import EUCLIDEAN
from scalemani.stages.landmarks import choice_of

NUMBERS = tuple(sorted(f"landmarks.{name}" for name in TUNED["landmarks"] - {"snap"}))
OF_SELECTION = ("landmarks.sample_points", "landmarks.snap")  # which are arguments of `select_landmarks`


class Landmarks(NamedTuple):
    """Landmarks (L, D) in the dtype of the points, and their rows (L,) int64.

    Off the data they are float64, and `indices` is None. `points` lie where `metric` maps rows, as at unit length
    under cosine.
    """

    points: np.ndarray
    indices: np.ndarray | None
    metric: str = EUCLIDEAN


@lists_metrics
@names_arguments(method="landmarks.method")
def select_landmarks(  # noqa: PLR0913 - what a run takes of points and landmarks
    points: Any,
    n_landmarks: int,
    method: LandmarkRule = "random",
    random_state: Seed = 0,
    *,
    sample_points: int = 100_000,
    snap: bool = True,
    settings: Mapping[str, Any] | None = None,
    metric: CoordinateMetric = "euclidean",
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
    metric : MAPPED_METRICS
        As in `LaplacianEigenmaps`: landmarks are mapped rows.
    snap : False leaves the centroids of "kmeans" and "kmeans++" where they are, off the data
    settings : other numbers by the names that they have on the command line: {"landmarks.sigma": 2.5},
        {"landmarks.eta": 40.0, "landmarks.steps": 500, "landmarks.projection": "orthant"}

    Returns
    -------
    Landmarks, rows ascending; off the data in float64, with `indices` None, those of "gp" in the order of the search.
    Certificates of a rule, such as "joint_gain", are those of a run: `certificates_["landmarks"]` of an estimator.

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
    geometry = checked_metric(metric, "landmarks are chosen among points")
    table = points_in_memory(points, metric=geometry)
    numbers = {"sample_points": check_count(sample_points, "sample_points"), "snap": check_flag(snap, "snap")}
    if len(table) > 1:
        check_magnitude(table.min(axis=0), table.max(axis=0), table.dtype)
    selected = selected_among(table, n_landmarks, method, random_state, settings, **numbers)
    return Landmarks(selected.points, selected.rows, geometry)


def selected_among(
    points: PointsByRow, n_landmarks: int, method: str, random_state: Any, settings: Any, **numbers: Any
) -> Selected:
    """Return landmarks among points that are read by row numbers; raise ConfigError for what cannot be requested."""
    check_known(method, LANDMARK_METHODS, f"method {method!r} is unknown")
    requested, known = checked_settings(settings), NUMBERS if numbers else (*NUMBERS, *OF_SELECTION)
    for name in requested:
        check_setting(name, known, f"settings has {name!r}, which is no number of landmarks")
    n_selected = check_count(n_landmarks, "n_landmarks", 1, len(points), "the number of points")
    params = Parameters().with_values({**requested, "landmarks.method": method}).resolved("laplacian-eigenmaps")
    choice = replace(choice_of(params), n_landmarks=n_selected, seed=check_seed(random_state), **numbers)
    return selected_landmarks(points, choice)


@names_arguments(
    n_neighbors="landmark_weights.n_neighbors", tolerance="landmark_weights.tolerance", radius="landmark_weights.radius"
)
def landmark_weights(
    points: Any, landmarks: Any, n_neighbors: int = 5, *, tolerance: float | None = None, radius: float | None = None
) -> sp.csr_matrix:
    """Return Z: each point as a combination of its nearest landmarks, with weights that sum to one.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, the data or new points, or anything that `open_points` takes: they are
        read whole
    landmarks : (L, D) array-like with distinct rows, the row numbers of points, (L,) int, or the result of
        `select_landmarks`, whose metric then maps the points too. Where columns of landmarks and of points have names,
        they are matched by these
    n_neighbors : K_Z, landmarks per point, from 1 to L
    tolerance : between 0 and 1; a point then has the least number of landmarks, up to K_Z, that leave at most this
        share of its distance to the nearest one. None: K_Z
    radius : above 0; a point then has the nearest landmark and the others within this distance, up to K_Z. None: K_Z

    Returns
    -------
    (N, L) CSR matrix of float64, columns ascending in each row. Weights that are zero are left out: a point that is a
    landmark has one entry, exactly 1. A run stores K_Z landmarks and weights of every point instead, zeros among them

    Raises
    ------
    ConfigError
        For `n_neighbors`, `tolerance` or `radius` out of range.
    DataError
        For arrays that cannot be used, differing numbers or names of columns, repeated landmarks, and row numbers that
        no point has.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> landmark_weights(np.array([[0.25]]), np.array([[0.0], [1.0]]), n_neighbors=2).toarray().round(3)
    array([[0.75, 0.25]])
    """
    selection = landmarks if isinstance(landmarks, Landmarks) else Landmarks(landmarks, None)
    source = open_points(points)
    numbers = row_numbers(selection.points, source.shape)
    places = None if numbers is not None else with_same_columns(source, selection.points)[1]
    table = points_in_memory(source, metric=selection.metric)
    selected = points_in_memory(table[numbers] if places is None else places, "landmarks")
    if table.shape[1] != selected.shape[1]:
        raise DataError(f"points have {table.shape[1]} columns, landmarks {selected.shape[1]}; they must have the same")
    n_used = check_count(n_neighbors, "n_neighbors", 1, len(selected), "the number of landmarks")
    check_distinct(selected)
    minima = np.minimum(table.min(axis=0), selected.min(axis=0))
    maxima = np.maximum(table.max(axis=0), selected.max(axis=0))
    if not np.array_equal(minima, maxima):
        check_magnitude(minima, maxima, np.result_type(table, selected), "points and landmarks")
    limits = Limits(*checked_values(landmark_weights__tolerance=tolerance, landmark_weights__radius=radius))
    indices, squares = nearest_landmarks(table, selected, n_used)
    values = limited_weights(table, selected, indices, None, limits, squares)
    offsets = np.arange(0, indices.size + 1, n_used, dtype=np.int64)
    weights = sp.csr_matrix((values.ravel(), indices.ravel(), offsets), shape=(len(table), len(selected)))
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights
