"""Choosing parameters in Python: `scalemani.tune`, a grid search over estimators that share a store."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from scalemani.errors import ConfigError, ScalemaniError, nearest_name
from scalemani.estimators.fitting import Embedder, open_training_points, pixels_of, with_arrays
from scalemani.estimators.parameters import OF_POINTS, PARAMETERS, RESOURCES, parameters_of
from scalemani.estimators.running import executor_for, resources_of, store_or_temporary
from scalemani.routes import WINDOW, takes_labels
from scalemani.sources import PointsSource, opener_instead
from scalemani.sources.side_data import with_labels
from scalemani.tuning import METHOD
from scalemani.tuning.grid import combinations
from scalemani.tuning.results import Tuning
from scalemani.tuning.scores import chosen_scores, make_judge
from scalemani.tuning.search import Candidate, search
from scalemani.tuning.several import SurveyedPoints

PYTHON_NAMES = {name: python for python, name in PARAMETERS.items()}


def tune(
    estimator: Embedder | Sequence[Embedder],
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    X: Any,
    y: Any = None,
    *,
    reference: Any = None,
    scoring: str | Sequence[str] | None = None,
    n_neighbors: int | None = None,
) -> Tuning:
    """Embed points with every combination of parameters, and compare what comes out.

    Points, neighbours and landmark weights are computed once: graphs that differ in `n_neighbors` alone are the first
    columns of the widest. Affinities, products and eigenproblems are computed for every combination. Run again with
    the same `store`, finished combinations are read from it.

    Parameters
    ----------
    estimator : an estimator that embeds, such as `LaplacianEigenmaps(solver="lll")`, or several, one a method
        Their other parameters hold for all combinations; `store`, `scheduler`, `workers` and `memory` are the first's.
    param_grid : dict or list of dict
        Lists of values by parameter, {"perplexity": [5, 10], "n_neighbors": [15, 30]}; of a list of these, each is a
        grid of its own.
    X : (N, D), the points, as `fit` takes them
    y : (N,) or None
        Classes that scores compare with, and that methods such as LDA, or with a `target_weight`, learn from.
    reference : (N, d) or None
        An embedding that scores compare with.
    scoring : str, sequence of str, or None
        "label-accuracy" (the share of points whose nearest others in the embedding say their class),
        "clustering-error", "procrustes-error", "neighbor-preservation", "trustworthiness" or "eigengap"; the first one
        ranks. None: by labels where there are any, the error of clusters for SpectralClustering; else by the
        reference; else by the eigengap.
    n_neighbors : int or None
        Neighbours that the scores look at, of 10,000 sampled points for labels, of 1,000 for others. None: 1 for
        labels, 15 for others.

    Returns
    -------
    Tuning
        `best_params_`, `best_score_`, `best_index_`, `best_estimator_`, and `results_`, a table as `cv_results_` of
        scikit-learn's GridSearchCV has it, without folds: `pandas.DataFrame(found.results_)` shows it. A combination
        that cannot be run has its error in the column `failure`; the others are there.

    Raises
    ------
    ConfigError, DataError
        For what scores or estimators cannot use, and the first combination's error where none can be run.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> import scalemani as sm
    >>> points, classes = make_blobs(300, centers=4, n_features=5, random_state=0)
    >>> maps = sm.LaplacianEigenmaps(n_landmarks=50, solver="lll")
    >>> found = sm.tune(maps, {"perplexity": [4, 8], "n_neighbors": [12, 24]}, points, classes)
    >>> len(found.results_["rank"]), sorted(found.best_params_)
    (4, ['n_neighbors', 'perplexity'])
    """
    estimators = [estimator] if isinstance(estimator, Embedder) else list(estimator)
    if not estimators or not all(isinstance(one, Embedder) for one in estimators):
        raise ConfigError(f"tune takes estimators that embed, such as LaplacianEigenmaps(), got {estimator!r}")
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    tried = [(one, values) for one in estimators for grid in grids for values in combinations(checked_grid(one, grid))]
    asked = estimators[0].get_params(deep=False)
    follow = any({**one.get_params(deep=False), **values}.get("target_weight") for one, values in tried)
    source, fixed = with_arrays(tuned_points(estimators, X, y, follow), asked)
    if len(estimators) > 1 and fixed is not asked:
        raise ConfigError(
            "a start or landmarks that are given as arrays are tuned with one estimator at a time: give one"
        )
    judge = make_judge(source.shape[0], y, reference, n_neighbors)
    names = (scoring,) if isinstance(scoring, str) else tuple(scoring or ())
    scores = chosen_scores(names, judge, [one._method for one in estimators])
    several = len(estimators) > 1
    candidates = [
        candidate_of(one._method, one.get_params(deep=False) if several else fixed, values, several)
        for one, values in tried
    ]
    with store_or_temporary(asked["store"]) as folder:
        with executor_for(**resources_of(asked)) as executor:
            found = search(SurveyedPoints(source, executor), folder, candidates, scores, judge)
        if found.best_index_ is not None:
            found.best_estimator_ = best_of(tried, found).set_params(store=asked["store"])
            with found.best_estimator_.computed_in(folder):
                found.best_estimator_.fit(X, y)
    return found


def checked_grid(estimator: Embedder, grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the lists of a grid; raise ConfigError for a name that is no parameter of an estimator's results."""
    allowed = [name for name in estimator.get_params(deep=False) if name not in (*RESOURCES, *OF_POINTS)]
    for name, values in grid.items():
        if name not in allowed:
            raise ConfigError(f"{type(estimator).__name__} has no parameter {name!r}: {nearest_name(name, allowed)}")
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise ConfigError(f"{name} takes a list of values, got {values!r}")
    return {name: list(values) for name, values in grid.items()}


def tuned_points(estimators: Sequence[Embedder], points: Any, labels: Any, follow: bool) -> PointsSource:
    """Return the source of the points (N, D), with their classes where a method learns from them.

    Parameters
    ----------
    estimators : of the grid
    points : (N, D), as `fit` takes them
    labels : (N,), or None
    follow : whether affinities follow the classes in some cell of the grid
    """
    asked = [one.get_params(deep=False) for one in estimators]
    kinds = [
        (opener_instead(one.get("metric"), one.get("affinity")), one.get("neighbors_method") == WINDOW) for one in asked
    ]
    if len(set(kinds)) > 1:
        raise ConfigError(
            "affinities, neighbour lists, the pixels of images and points are tuned one at a time: give candidates of "
            "one kind"
        )
    if len({one["use_rep"] for one in asked}) > 1:
        raise ConfigError(
            f"estimators are tuned on the same points, got use_rep {', '.join(repr(one['use_rep']) for one in asked)}: "
            "give all of them the same, or tune them one at a time"
        )
    given = pixels_of(points, asked[0])
    open_instead = kinds[0][0]
    source = open_training_points(given, asked[0]["use_rep"]) if open_instead is None else open_instead(given)
    learns = any(takes_labels(one._method) for one in estimators)
    if labels is None or not (learns or follow):
        return source
    return with_labels(source, labels, partial=not learns)


def candidate_of(method: str, asked: Mapping[str, Any], values: Mapping[str, Any], several: bool) -> Candidate:
    """Return a cell of the grid; of several estimators the method is one of its values."""
    named = {METHOD: method, **values} if several else dict(values)
    try:
        params = parameters_of({**asked, **values})
    except ScalemaniError as error:
        return Candidate(named, method, error)
    return Candidate(named, method, params)


def best_of(tried: Sequence[tuple[Embedder, Mapping[str, Any]]], found: Tuning) -> Embedder:
    """Return a new estimator with the values of the best cell, on the graph that its run shares."""
    assert found.best_index_ is not None
    estimator, values = tried[found.best_index_]
    computed_as = {PYTHON_NAMES[name]: value for name, value in found.cells[found.best_index_].computed_as.items()}
    chosen: Embedder = clone(estimator).set_params(**{**values, **computed_as})
    return chosen
