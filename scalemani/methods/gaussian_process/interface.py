"""Features of points by landmarks of a Gaussian process, or any others: a function, and a transformer."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from sklearn.utils.validation import check_is_fitted

from scalemani.config.choices import LandmarkRule, Seed
from scalemani.config.params import checked_settings
from scalemani.config.validation import check_magnitude, check_points
from scalemani.errors import ConfigError, DataError, check_known
from scalemani.interfaces.estimators.fitting import (
    keep_columns,
    open_named_x,
    with_columns_of_fit,
)
from scalemani.interfaces.estimators.parameters import Transformer, arguments
from scalemani.interfaces.functions.landmarks import Landmarks, selected_among
from scalemani.interfaces.functions.validation import checked_values
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources import (
    is_stored,
    points_in_memory,
    rows_in_memory,
    take_representation,
    with_same_columns,
)
from scalemani.io.sources.opening import is_frame
from scalemani.io.sources.side_data import row_numbers
from scalemani.kernels.arrays.columns import moments
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.methods.gaussian_process import kernels

Geometry = Literal["euclidean", "hellinger"]
GEOMETRIES = get_args(Geometry)
LANDMARKS, POINTS_PER_LANDMARK = 100, 4  # where the number is left open, and what it is where there are few points


@names_arguments(eta="landmarks.eta")
def landmark_features(points: Any, landmarks: Any, eta: float, *, geometry: Geometry = "euclidean") -> np.ndarray:
    """Return w(x) = [exp(-|t_j - x|^2 / eta)]_j of points, over landmarks t_j.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, a sparse matrix, or anything that `open_points` takes, read whole
    landmarks : (L, D) array-like, the row numbers of points, (L,) int, or the result of `select_landmarks`; in
        "hellinger" geometry square roots of frequencies, as `LandmarkFeatures.landmarks_` are. Where columns of
        landmarks and of points have names, they are matched by these
    eta : bandwidth, in squared units of the points
    geometry : "euclidean": points as they are; "hellinger": rows of counts, taken as square roots of their frequencies

    Returns
    -------
    (N, L) float64, from 0 to 1

    Raises
    ------
    ConfigError
        For an eta that is not above zero, and an unknown geometry.
    DataError
        For arrays that cannot be used, differing numbers or names of columns, row numbers that no point has, and rows
        without counts, by their numbers.

    References
    ----------
    Liang and Paisley, Landmarking manifolds with Gaussian processes, ICML 2015, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> landmark_features([[0.0], [1.0]], [[0.0]], 2.0).round(3)
    array([[1.   ],
           [0.607]])
    """
    checked_values(landmarks__eta=eta)
    places, source = landmarks.points if isinstance(landmarks, Landmarks) else landmarks, open_named_x(points)
    numbers = row_numbers(places, source.shape)
    places = None if numbers is not None else with_same_columns(source, places)[1]
    rows = rows_of_features(source, geometry)
    places = points_in_memory(dense_rows(rows[numbers]) if places is None else places, "landmarks")
    if rows.shape[1] != places.shape[1]:
        raise DataError(
            f"X has {rows.shape[1]} features, but the landmarks have {places.shape[1]} features: give the same columns"
        )
    return kernels.landmark_features(rows, places, float(eta))


@arguments
class LandmarkFeatures(Transformer):
    """Features of points by their closeness to landmarks: w(x) = [exp(-|t_j - x|^2 / eta)]_j.

    Parameters
    ----------
    n_landmarks : int or None
        Landmarks, L. None: 100, or a quarter of the points where these are fewer than 400.
    method : str, default "gp"
        How they are chosen, as in `scalemani.select_landmarks`.
    eta : float or None
        Bandwidth, in squared units of the points, of the features and of "gp" and "gp-active". None: the sum of the
        variances of the columns.
    geometry : {"euclidean", "hellinger"}
        "hellinger" takes rows of counts, dense or sparse, as square roots of their frequencies. Landmarks of "gp" then
        stay in the positive part of the unit sphere: their squares are frequencies.
    settings : mapping or None
        Other numbers of landmarks, by the names that they have on the command line: {"landmarks.steps": 500}.
    random_state : int, generator or None, default 0
        Seed of every random draw; None or a generator to draw one.

    Attributes
    ----------
    landmarks_ : (L, D), rows ascending where they are points, in the order of selection where they are of "gp"
    indices_ : (L,) int64, the rows of the landmarks; None where they lie off the data
    eta_ : the bandwidth that is used
    certificates_ : what the method measured
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Liang and Paisley, Landmarking manifolds with Gaussian processes, ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(300, 5))
    >>> LandmarkFeatures(10, settings={"landmarks.steps": 50}).fit_transform(points).shape
    (300, 10)
    """

    n_landmarks: int | None = field(default=None, kw_only=False)
    method: LandmarkRule = "gp"
    eta: float | None = None
    geometry: Geometry = "euclidean"
    settings: Mapping[str, Any] | None = None
    random_state: Seed = 0

    @names_arguments(method="landmarks.method", eta="landmarks.eta")
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among points (N, D) or counts, of any kind that `landmark_features` takes, read whole."""
        checked_values(landmarks__eta=self.eta)
        source = open_named_x(X)
        points = RowsInMemory(rows_of_features(source, self.geometry))
        keep_columns(self, X, source)
        if len(points) < 2:
            raise DataError("X has 1 sample, too few to select landmarks among: give at least 2")
        table, is_sparse = points.table, sp.issparse(points.table)
        minima, maxima = min_max_axis(table, axis=0) if is_sparse else (table.min(axis=0), table.max(axis=0))
        check_magnitude(minima, maxima, table.dtype)
        of_columns = mean_variance_axis(table, axis=0) if is_sparse else moments(table)
        self.eta_ = float(of_columns[1].sum()) if self.eta is None else float(self.eta)
        settings = dict(checked_settings(self.settings))
        if settings.setdefault("landmarks.eta", self.eta_) != self.eta_:
            raise ConfigError("landmarks.eta is the argument eta: leave it out of settings")
        if self.geometry == "hellinger" and self.method == "gp":
            settings.setdefault("landmarks.projection", "sphere")
        few = max(1, min(LANDMARKS, len(points) // POINTS_PER_LANDMARK))
        wanted = few if self.n_landmarks is None else self.n_landmarks
        selection = selected_among(points, wanted, self.method, self.random_state, settings)
        self.landmarks_, self.indices_ = selection.points, selection.rows
        self.certificates_ = dict(selection.certificates)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features (n, L) float64 of points (n, D), each row from its point alone."""
        check_is_fitted(self)
        source = with_columns_of_fit(self, X if is_frame(X) else take_representation(X), open_named_x(X))
        return landmark_features(source, self.landmarks_, self.eta_, geometry=self.geometry)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)


class RowsInMemory:
    """Points in memory, dense or in CSR form, that are read by row numbers as dense rows."""

    def __init__(self, table: Any) -> None:
        self.table, self.shape = table, table.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return dense_rows(self.table[rows])


def rows_of_features(points: Any, geometry: Any) -> Points:
    """Return points (N, D) in a geometry, sparse ones sparse."""
    check_known(geometry, GEOMETRIES, f"geometry {geometry!r} is unknown")
    points = take_representation(points)
    return rows_in_memory(points if is_stored(points) else check_points(points, "X", convert_objects=True), geometry)
