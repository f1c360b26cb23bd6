"""Landmark features: a function for given landmarks, and a transformer that chooses them."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from scalemani.config.params import Parameters, checked_settings
from scalemani.config.validation import check_count, check_points, check_seed
from scalemani.errors import ConfigError, DataError, nearest_name
from scalemani.interfaces.estimators.fitting import check_columns
from scalemani.interfaces.estimators.parameters import Transformer, arguments
from scalemani.io.sources import columns_shown, is_stored, open_points, points_in_memory, take_representation
from scalemani.kernels.landmarks import features
from scalemani.kernels.landmarks.features import total_variance
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS, selected_landmarks
from scalemani.stages.landmarks import choice_of

GIVEN_BY_ARGUMENTS = ("landmarks.n_landmarks", "landmarks.method", "landmarks.eta")
GEOMETRIES = ("euclidean", "hellinger")
ROWS_AT_ONCE = 4096
LANDMARKS, POINTS_PER_LANDMARK = 100, 4  # where the number is left open, and what it is where there are few points


def landmark_features(points: Any, landmarks: Any, eta: float, *, geometry: str = "euclidean") -> np.ndarray:
    """Return w(x) = [exp(-|t_j - x|^2 / eta)]_j of points, over landmarks t_j.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, a sparse matrix, or anything that `open_points` takes, read by blocks
    landmarks : (L, D) array-like, or the result of `select_landmarks`; in "hellinger" geometry square roots of
        frequencies, as `LandmarkFeatures.landmarks_` are
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
        For arrays that cannot be used, differing numbers of columns, and rows without counts, by their numbers.

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
    _check(eta, geometry)
    places = points_in_memory(getattr(landmarks, "points", landmarks), "landmarks")
    return np.concatenate(
        [features.landmark_features(block, places, float(eta)) for block in _blocks(points, geometry, places.shape[1])]
    )


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
    landmarks_ : (L, D), rows ascending where they are points, in the order found where they are of "gp"
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
    method: str = "gp"
    eta: float | None = None
    geometry: str = "euclidean"
    settings: Mapping[str, Any] | None = None
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None) -> "LandmarkFeatures":
        """Choose landmarks among points (N, D) or counts, of any kind that `landmark_features` takes, read whole."""
        _check(1.0 if self.eta is None else self.eta, self.geometry)
        if self.method not in LANDMARK_METHODS:
            raise ConfigError(f"method {self.method!r} is unknown; {nearest_name(str(self.method), LANDMARK_METHODS)}")
        X = take_representation(X)
        rows = list(_blocks(X, self.geometry))
        points = RowsInMemory(sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows))
        validate_data(self, columns_shown(X, points.shape[1]), skip_check_array=True)
        if len(points) < 2:
            raise DataError("X has 1 sample, of which landmarks cannot be told apart: give at least 2")
        self.eta_ = points.total_variance() if self.eta is None else float(self.eta)
        if not self.eta_ > 0:
            raise DataError("points have zero variance: all rows are equal; give points that differ")
        found = selected_landmarks(points, self._choice(len(points)))
        self.landmarks_, self.indices_, self.certificates_ = found.points, found.rows, dict(found.certificates)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features (n, L) float64 of points (n, D), each row of its own point alone."""
        check_is_fitted(self)
        X = take_representation(X)
        if not is_stored(X):
            check_points(X, "X", convert_objects=True)
        check_columns(self, X)
        return landmark_features(X, self.landmarks_, self.eta_, geometry=self.geometry)

    def _choice(self, n_points: int) -> Any:
        settings = dict(checked_settings(self.settings))
        for name in settings:
            if not str(name).startswith("landmarks.") or name in GIVEN_BY_ARGUMENTS:
                raise ConfigError(
                    f"settings takes numbers of landmarks that are no argument, got {name!r}: leave it out"
                )
        if self.geometry == "hellinger" and self.method == "gp":
            settings.setdefault("landmarks.projection", "sphere")
        few = max(1, min(LANDMARKS, n_points // POINTS_PER_LANDMARK))
        wanted = few if self.n_landmarks is None else self.n_landmarks
        choice = choice_of(Parameters().with_settings(settings))
        return choice._replace(
            n_landmarks=check_count(wanted, "n_landmarks", 1, n_points, "the number of points"),
            method=self.method,
            seed=check_seed(self.random_state),
            process=choice.process._replace(eta=self.eta_),
        )

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
        return self.table[rows].toarray() if sp.issparse(self.table) else self.table[rows]

    def total_variance(self) -> float:
        """Return the sum of the variances of the columns."""
        if not sp.issparse(self.table):
            return total_variance(self.table)
        means = np.asarray(self.table.mean(axis=0))
        return float(self.table.multiply(self.table).sum()) / len(self) - float(np.square(means).sum())


def _blocks(points: Any, geometry: str, n_features: int | None = None) -> Iterator[Any]:
    """Yield the rows of points block by block, in a geometry; those of sparse matrices stay sparse."""
    points = take_representation(points)
    if sp.issparse(points):
        table: Any = sp.csr_matrix(points)
        check_points(table.data.reshape(-1, 1) if table.nnz else np.zeros((1, 1)), "points")
    else:
        table = open_points(points if is_stored(points) else check_points(points, "X", convert_objects=True))
    if n_features is not None and table.shape[1] != n_features:
        raise DataError(
            f"X has {table.shape[1]} features, but the landmarks have {n_features} features: give the same columns"
        )
    for start in range(0, table.shape[0], ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, table.shape[0])
        rows = table[start:stop] if sp.issparse(table) else check_points(table.read(start, stop), "points")
        yield features.hellinger_rows(rows, start) if geometry == "hellinger" else rows


def _check(eta: Any, geometry: Any) -> None:
    if geometry not in GEOMETRIES:
        raise ConfigError(f"geometry {geometry!r} is unknown; {nearest_name(str(geometry), GEOMETRIES)}")
    if isinstance(eta, bool) or not isinstance(eta, Real) or not 0 < float(eta) < np.inf:
        raise ConfigError(f"eta must be a number above zero, in squared units of the points, got {eta!r}")
