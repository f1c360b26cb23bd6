"""What the estimators share: from what a user passes to a finished run, and from the run to attributes."""

import contextlib
import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from scalemani.errors import ConfigError
from scalemani.estimators.parameters import TakesOtherNames, parameters_of
from scalemani.estimators.running import executor_for, resources_of, store_or_temporary
from scalemani.estimators.telling import give
from scalemani.figures import Size, checked_look, picture_or_path
from scalemani.new_points import NEEDS_POINTS, NewPoints, Placement, read_placement
from scalemani.report.notebook import MOST_SHOWN, LiveMap
from scalemani.report.opened import ReportedRun
from scalemani.routes import COMPUTED_STARTS, GIVEN_LANDMARKS, GIVEN_START, SPECTRAL_START, WINDOW
from scalemani.runs.account.poor_points import poor_points
from scalemani.runs.opened import Run
from scalemani.runs.several.starts import with_start
from scalemani.runs.walk import run
from scalemani.sources import (
    PointsSource,
    columns_shown,
    has_names,
    is_stored,
    open_pixels,
    open_points,
    opener_instead,
    take_representation,
)
from scalemani.sources.labels import chosen_labels, named_labels
from scalemani.sources.side_data import with_labels, with_landmarks, with_weights
from scalemani.validation import check_points

Estimator = TypeVar("Estimator", bound=BaseEstimator)


class Embedder(TakesOtherNames, BaseEstimator):
    """An estimator that embeds points; it says to scikit-learn that it takes sparse ones."""

    _method: ClassVar[str]

    n_features_in_: int
    embedding_: np.ndarray
    certificates_: dict[str, dict[str, Any]]
    _placement: Placement
    _folder: str | Path | None = None  # in the place of a temporary store, while `computed_in` lasts
    _kept: tuple[str | Path | None, dict[str, Any]]  # the store, None for a temporary one, and the plan of the run

    @property
    def run_(self) -> ReportedRun:
        """The run in `store`, opened: its graph, affinities, landmarks, curve and snapshots, as `open_run` gives them.

        Raises AttributeError for a model that was fitted without `store`, whose run is gone.
        """
        check_is_fitted(self)
        store, plan = self._kept
        if store is None:
            raise AttributeError("run_ is the run in `store`, and this model was fitted without one: give store=FOLDER")
        return ReportedRun(store, plan)

    def report(self, path: str | Path | None = None, labels: Any = ()) -> Path:
        """Write one HTML page about the run in `store`, as `open_run(store).report` does, and return its path."""
        return self.run_.report(path, labels)

    def plot(
        self,
        labels: Any = None,
        size: Size = 900,
        title: str = "",
        legend: str = "auto",
        poor: bool = False,
        path: str | Path | None = None,
        theme: str = "light",
        point_size: float = 1.0,
    ) -> Any:
        """Return a picture of `embedding_` (Pillow's, which notebooks show), or write it to `path` and return that.

        Parameters are those of `open_run(store).plot`; `poor` needs the run in `store`.
        """
        check_is_fitted(self)
        look = checked_look(size, title, legend, theme, point_size)
        embedded = np.isfinite(self.embedding_).all(axis=1)  # rows of other components than the largest have none
        columns = chosen_labels(labels, len(embedded), lambda values: values[embedded])
        marked = poor_points(self.run_) if poor else None
        return picture_or_path(self.embedding_[embedded], path, columns, look, marked)

    def live_map(self, labels: Any = ()) -> LiveMap:
        """Return a map of `embedding_` that notebooks show live, as `open_run(store).live_map` does."""
        check_is_fitted(self)
        embedded = np.isfinite(self.embedding_).all(axis=1)
        columns = named_labels(labels, len(embedded))
        if hasattr(self, "labels_"):
            columns["clusters"] = np.asarray(self.labels_)
        rows = None if embedded.all() else np.flatnonzero(embedded)
        return LiveMap(self.embedding_[embedded], {name: values[embedded] for name, values in columns.items()}, rows)

    def _html_repr(self) -> str:
        """Return what notebooks show: the diagram of scikit-learn and, of a fitted model, its map."""
        shown = self._shown_map()
        return str(estimator_html_repr(self)) + ("" if shown is None else shown._repr_html_())

    def _repr_png_(self) -> bytes | None:
        shown = self._shown_map()
        return None if shown is None else shown._repr_png_()

    def _shown_map(self) -> LiveMap | None:
        """Return the map that a notebook shows without being asked: that of points that are not too many."""
        fitted = hasattr(self, "embedding_") and len(self.embedding_) <= MOST_SHOWN
        return self.live_map() if fitted else None

    @contextlib.contextmanager
    def computed_in(self, folder: str | Path) -> Iterator[None]:
        """Have `fit` take what a folder holds, in the place of a temporary store, while the block lasts."""
        self._folder = folder
        try:
            yield
        finally:
            del self._folder

    def __sklearn_clone__(self) -> Self:
        return cloned(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def cloned(estimator: Estimator) -> Estimator:
    """Return an unfitted estimator of the same parameters, which shares the client of a cluster: it has no copy."""
    without = copy.copy(estimator)
    without.scheduler = None
    found = BaseEstimator.__sklearn_clone__(without)
    found.scheduler = estimator.scheduler
    return found


@contextlib.contextmanager
def fit_run(estimator: Embedder, points: Any, labels: Any = None, weights: Any = None) -> Iterator[Run]:
    """Run an estimator's method with its parameters, set its attributes, and yield the run while its store is there."""
    asked = estimator.get_params(deep=False)
    open_instead, points = opener_instead(asked.get("metric"), asked.get("affinity")), pixels_of(points, asked)
    source = open_training_points(points, asked["use_rep"]) if open_instead is None else open_instead(points)
    given = source
    if labels is not None and asked.get("target_weight", True):  # without such a parameter labels are always learnt
        given = with_labels(source, labels, partial="target_weight" in asked)
    if weights is not None:
        given = with_weights(given, weights)
    given, asked = with_arrays(given, asked)
    if open_instead is None:
        keep_columns(estimator, points, source)  # refuses names that scikit-learn does not take
    with store_or_temporary(asked["store"] or estimator._folder) as folder:
        with executor_for(**resources_of(asked)) as executor:
            finished = run(given, folder, estimator._method, parameters_of(asked), executor)
        estimator.embedding_ = finished.of_input(np.asarray(finished.embedding[...]), np.nan)
        estimator.certificates_ = finished.certificates
        estimator._kept = asked["store"], finished.plan
        if hasattr(estimator, "_placement"):
            del estimator._placement  # of an earlier fit
        if open_instead is None:
            estimator._placement = read_placement(finished, in_memory=asked["store"] is None)
        else:
            estimator.n_features_in_ = finished.n_input_points  # as scikit-learn counts the columns of distances
        yield finished


def pixels_of(points: Any, asked: Mapping[str, Any]) -> Any:
    """Return the pixels of an image where parameters ask for its window, else points as they are."""
    windowed = asked.get("neighbors_method") == WINDOW and asked.get("image_rows") is None
    return open_pixels(points) if windowed else points


def with_arrays(source: PointsSource, asked: dict[str, Any]) -> tuple[PointsSource, dict[str, Any]]:
    """Return points with the arrays that parameters hold, a start or landmarks, and parameters that say so."""
    if not is_computed(asked.get("init", SPECTRAL_START)):
        source, asked = with_start(source, asked["init"]), {**asked, "init": GIVEN_START}
    if not isinstance(asked.get("landmarks", ""), str):
        source = with_landmarks(source, asked["landmarks"], asked["metric"])
        asked = {**asked, "landmarks": GIVEN_LANDMARKS}
    return source, asked


def is_computed(init: Any) -> bool:
    """Return whether a start is one that a run computes, by its name, and not coordinates."""
    return isinstance(init, str) and init in COMPUTED_STARTS


def given_weights(beside: Mapping[str, Any]) -> Any:
    """Return the `sample_weight` that `fit` was given by name; None where it was not.

    It does not stand in the signature of `fit`: of estimators that have it there scikit-learn's checks ask that weights
    may be zero, which are refused here, and that random draws do not depend on how often a point is repeated.

    Raises
    ------
    TypeError
        For other names, as Python has it.
    """
    unknown = sorted(set(beside) - {"sample_weight"})
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}; by name it takes sample_weight")
    return beside.get("sample_weight")


def open_training_points(points: Any, use_rep: str | None = None) -> PointsSource:
    """Return the source of what `fit` is given; messages about arrays call them X, as scikit-learn does."""
    points = take_representation(points, use_rep)
    return open_points(points if is_stored(points) else check_points(points, "X", 2, convert_objects=True))


def keep_columns(estimator: BaseEstimator, points: Any, source: PointsSource) -> None:
    """Set `n_features_in_`, and `feature_names_in_` where points (N, D) have names that scikit-learn knows."""
    points = take_representation(points, estimator.get_params(deep=False)["use_rep"])
    validate_data(estimator, columns_shown(points, source.shape[1]), skip_check_array=True)


def open_new_points(estimator: BaseEstimator, points: Any) -> PointsSource:
    """Return the source of new points (n, D), whose columns are those that `fit` was given; there may be no rows."""
    points = take_representation(points, estimator.get_params(deep=False)["use_rep"])
    stored = is_stored(points)
    given = open_points(points if stored else check_points(points, "X", min_rows=0, convert_objects=True))
    check_columns(estimator, points)
    return given


def check_columns(estimator: BaseEstimator, points: Any) -> None:
    """Refuse new points (n, D) whose columns are not those that `fit` was given, by their names where they have any."""
    if not is_stored(points) or has_names(points):
        validate_data(estimator, points, skip_check_array=True, reset=False)


def transform_points(estimator: Embedder, points: Any) -> np.ndarray:
    """Return the coordinates (n, d) of new points (n, D), given as anything that `fit` takes, or without rows."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "_placement"):
        raise ConfigError(NEEDS_POINTS)
    new = NewPoints(estimator._placement, open_new_points(estimator, points))
    coordinates = new.read_all()
    for message, kind in new.account.warnings:
        give(message, kind)
    return coordinates
