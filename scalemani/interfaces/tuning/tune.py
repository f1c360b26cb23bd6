"""Choosing parameters in Python: `scalemani.tune`, a grid search over estimators that share a store."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from scalemani.config.other_names import check_setting
from scalemani.config.routes import takes_labels
from scalemani.errors import ConfigError, ScalemaniError
from scalemani.interfaces.estimators.fitting import Embedder, Requested, requested_of, with_classes
from scalemani.interfaces.estimators.parameters import OF_POINTS, RESOURCES
from scalemani.interfaces.estimators.running import executor_for, resources_of, store_or_temporary
from scalemani.interfaces.tuning import METHOD, Lists, combinations
from scalemani.interfaces.tuning.scores import chosen_scores, make_judge, settings_of
from scalemani.interfaces.tuning.search import Candidate, SurveyedPoints, Tuning, search, valid_params
from scalemani.interfaces.wording import ARGUMENT_OF, SETTINGS, names_arguments
from scalemani.io.sources import PointsSource


@names_arguments()
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
        Lists of values by argument or setting, {"perplexity": [5, 10], "neighbors.recall": [0.9, 0.99]}; of a list of
        these, each is a separate grid.
    X : (N, D), the points, as `fit` takes them
    y : (N,) or None
        Classes that scores compare with, and that methods such as LDA, or with a target weight, learn from.
    reference : (N, d) or None
        An embedding that scores compare with.
    scoring : str, sequence of str, or None
        "label-accuracy" (the share of points whose nearest others in the embedding say their class),
        "clustering-error", "procrustes-error", "neighbor-preservation", "trustworthiness", "continuity",
        "density-correlation", "triplet-accuracy", "distance-correlation", "center-triplet-accuracy", "silhouette",
        "doubt" (the share of points of a map that could as well lie elsewhere), "believable" (of those whose
        distances agree better than without structure) or "eigengap"; the first one ranks. None: by labels where there
        are any, the error of clusters for SpectralClustering; else by the reference; else by the eigengap.
    n_neighbors : int or None
        Neighbours that the scores look at, of 10,000 sampled points for labels, of 1,000 for others. None: 1 for
        labels, 15 for others.

    Returns
    -------
    Tuning
        `best_params_`, `best_score_`, `best_index_`, `best_estimator_`, and `results_`, a table as `cv_results_` of
        scikit-learn's GridSearchCV has it, without folds: `pandas.DataFrame(tuning.results_)` shows it. `undecided_`:
        the combinations that error bars do not tell from the best; `front_`: those that none exceeds in both of the
        first two scores, such as neighbor-preservation and triplet-accuracy over values of `global_weight`. A
        combination that cannot be run has its error in the column `failure`; the others are there.

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
    >>> tuning = sm.tune(maps, {"perplexity": [4, 8], "n_neighbors": [12, 24]}, points, classes)
    >>> len(tuning.results_["rank"]), sorted(tuning.best_params_)
    (4, ['n_neighbors', 'perplexity'])
    """
    estimators = [estimator] if isinstance(estimator, Embedder) else list(estimator)
    if not estimators or not all(isinstance(one, Embedder) for one in estimators):
        raise ConfigError(f"tune takes estimators that embed, such as LaplacianEigenmaps(), got {estimator!r}")
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    tried = [(one, values) for one in estimators for grid in grids for values in combinations(checked_grid(one, grid))]
    requested = [requested_or_error(*cell) for cell in tried]
    candidates = [
        Candidate(
            {METHOD: one._method, **values} if len(estimators) > 1 else values,
            one._method,
            cell.params if isinstance(cell, Requested) else cell,
        )
        for (one, values), cell in zip(tried, requested, strict=True)
    ]
    follows_classes = any(params.follows_classes for params in valid_params(candidates))
    learns = any(takes_labels(one._method) for one in estimators)
    source = with_classes(tuned_points(estimators, requested, X), y, learns, follows_classes)
    judge = make_judge(source.shape[0], y, reference, n_neighbors)
    names = (scoring,) if isinstance(scoring, str) else tuple(scoring or ())
    scores = chosen_scores(names, judge, [one._method for one in estimators])
    first = estimators[0]
    with store_or_temporary(first.store) as folder:
        with executor_for(**resources_of(first)) as executor:
            tuning = search(SurveyedPoints(source, executor), folder, candidates, scores, judge)
        if tuning.best_index_ is not None:
            estimator, values = tried[tuning.best_index_]
            # The graph of the best cell's run, and what its scores are made of.
            shared = {**tuning.cells[tuning.best_index_].computed_as, **settings_of(scores)}
            best = clone(estimator).set_params(**changed(estimator, {**values, **shared}), store=first.store)
            with best.computed_in(folder):
                tuning.best_estimator_ = best.fit(X, y)
    return tuning


def checked_grid(estimator: Embedder, grid: Mapping[str, Sequence[Any]]) -> Lists:
    """Return the lists of a grid; raise ConfigError for a name that is no parameter of an estimator's results."""
    allowed = [name for name in estimator.get_params(deep=False) if name not in (*RESOURCES, *OF_POINTS)]
    for name, values in grid.items():
        if "." not in name:  # settings are checked with their values
            check_setting(name, allowed, f"{type(estimator).__name__} has no parameter {name!r}", ARGUMENT_OF)
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise ConfigError(f"{name} takes a list of values, got {values!r}")
    return {name: list(values) for name, values in grid.items()}


def changed(estimator: Embedder, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of an estimator with values of arguments and of settings in their place."""
    arguments = estimator.get_params(deep=False)
    changes: dict[str, Any] = {}
    for name, value in values.items():
        argument = ARGUMENT_OF.get(name, name)
        if argument in arguments:
            changes[argument] = value
        else:
            changes[SETTINGS] = {**(changes.get(SETTINGS, arguments[SETTINGS]) or {}), name: value}
    return changes


def requested_or_error(estimator: Embedder, values: Mapping[str, Any]) -> Requested | ScalemaniError:
    """Return what an estimator requests with the values of a cell, or the error of invalid ones."""
    try:
        requested = requested_of(estimator, changed(estimator, values))
        requested.params  # noqa: B018 - which checks them
    except ScalemaniError as error:
        return error
    return requested


def tuned_points(
    estimators: Sequence[Embedder], requested: Sequence[Requested | ScalemaniError], points: Any
) -> PointsSource:
    """Return the source of the points (N, D) that all estimators read alike."""
    valid = [one for one in requested if isinstance(one, Requested)]
    if len({(id(one.start), id(one.reference), id(one.landmarks)) for one in valid}) > 1:
        raise ConfigError(
            "a start, a reference or landmarks that are passed as arrays are those of all cells: tune them one at a "
            "time"
        )
    read_as = [repr(one.use_rep) for one in estimators]
    if len(set(read_as)) > 1:
        raise ConfigError(
            f"estimators are tuned on the same points, got use_rep {', '.join(read_as)}: give all of them the same, or "
            "tune them one at a time"
        )
    return valid[0].source(points, estimators[0].use_rep)
