"""What the estimators share: from what a user passes to a finished run, and from the run to attributes."""

import contextlib
import numbers
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import zarr
from dask.array import Array as DaskArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from scalemani.estimators.running import executor_for, seed_of, store_or_temporary
from scalemani.new_points import Placement, placed_rows, placed_source, placement_of
from scalemani.params import NEIGHBORS_PER_PERPLEXITY, Parameters
from scalemani.runs.opened import Run
from scalemani.runs.walk import run
from scalemani.sources import PointsSource, open_points
from scalemani.validation import check_points

DEFAULT_PERPLEXITY = 30.0
LEAST_PERPLEXITY = 1.5
# What is read through a source; everything else is an array, or becomes one.
STORED = (str, Path, zarr.Array, DaskArray, PointsSource, sparse.spmatrix, sparse.sparray)


class EmbeddingEstimator(Protocol):
    """The parameters that the estimators have in common, and what `fitted` adds to them."""

    n_components: Any
    n_landmarks: Any
    perplexity: Any
    n_neighbors: Any
    landmarks: Any
    landmark_neighbors: Any
    affinity: Any
    sigma: Any
    neighbors_method: Any
    recall: Any
    solver: Any
    residual: Any
    disconnected: Any
    random_state: Any
    scheduler: Any
    store: Any
    workers: Any
    memory: Any

    embedding_: np.ndarray
    certificates_: dict[str, dict[str, Any]]
    _placement: Placement


class TakesSparse(BaseEstimator):
    """An estimator that says to scikit-learn that it takes sparse points."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@contextlib.contextmanager
def fitted(estimator: EmbeddingEstimator, points: Any, method: str, values: Mapping[str, Any]) -> Iterator[Run]:
    """Run a method with an estimator's parameters, set its attributes, and yield the run while its store is there.

    `values` are the parameters of the stages that only one method has.
    """
    source = open_points(points if isinstance(points, STORED) else check_points(points, "X", 2, convert_objects=True))
    params = Parameters().with_values({**stage_values(estimator, source), **values})
    executor = executor_for(estimator.scheduler, estimator.workers, estimator.memory)
    with store_or_temporary(estimator.store) as folder:
        finished = run(source, folder, method, params, executor)
        estimator.embedding_ = finished.of_input(np.asarray(finished.embedding[...]), np.nan)
        estimator.certificates_ = finished.certificates
        estimator._placement = placement_of(finished, in_memory=estimator.store is None)
        # What is stored has no columns that scikit-learn knows to look at.
        shown = np.empty((0, source.shape[1])) if isinstance(points, STORED) else points
        validate_data(estimator, shown, skip_check_array=True)
        yield finished


def placed(estimator: EmbeddingEstimator, points: Any) -> np.ndarray:
    """Return the coordinates (n, d) of new points (n, D), given as anything that `fit` takes, or without rows."""
    check_is_fitted(estimator)
    if isinstance(points, STORED):
        return placed_source(estimator._placement, open_points(points))
    table = check_points(points, "X", min_rows=0, convert_objects=True)
    validate_data(estimator, points, skip_check_array=True, reset=False)
    return placed_rows(estimator._placement, table)


def stage_values(estimator: EmbeddingEstimator, source: PointsSource) -> dict[str, Any]:
    """Return the parameters by stage; a perplexity left open follows the points where these are few."""
    n_neighbors, perplexity = estimator.n_neighbors, estimator.perplexity
    most = source.shape[0] - 1
    if perplexity is None:
        reach = n_neighbors if is_count(n_neighbors) else most
        perplexity = float(min(DEFAULT_PERPLEXITY, max(LEAST_PERPLEXITY, reach / NEIGHBORS_PER_PERPLEXITY)))
    if n_neighbors is None and isinstance(perplexity, numbers.Real) and np.isfinite(float(perplexity)):
        n_neighbors = max(1, min(round(NEIGHBORS_PER_PERPLEXITY * float(perplexity)), most))
    return {
        "seed": seed_of(estimator.random_state),
        "neighbors": {"n_neighbors": n_neighbors, "method": estimator.neighbors_method, "recall": estimator.recall},
        "affinities": {"kind": estimator.affinity, "perplexity": perplexity, "sigma": estimator.sigma},
        "components": {"disconnected": estimator.disconnected},
        "landmarks": {"n_landmarks": estimator.n_landmarks, "method": estimator.landmarks},
        "landmark_weights": {"n_neighbors": estimator.landmark_neighbors},
        "landmark_embedding": {"n_components": estimator.n_components},
        "embedding": {"solver": estimator.solver, "residual": estimator.residual},
    }


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number above zero."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0
