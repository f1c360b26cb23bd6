"""Nonlinear embeddings as scikit-learn estimators, a class for each row of the table of objectives."""

import functools
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from scalemani.estimators.fitting import Embedder, fit_run, given_weights, transform_points
from scalemani.estimators.parameters import keep_parameters
from scalemani.objectives import OBJECTIVES
from scalemani.runs.opened import Curve

EXAMPLE = """Examples
--------
>>> from sklearn.datasets import load_digits
>>> import scalemani as sm
>>> model = sm.{}(perplexity=10, max_iter=20, converged=0).fit(load_digits().data[:200])
>>> model.embedding_.shape, model.n_iter_
((200, 2), 20)
"""


class NonlinearEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Embedder):
    """A descent from the spectral embedding of the same affinities, or from another start.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d; in 2 and 3 the repulsion is summed by a particle mesh, else exactly.
    strength : float or None
        Weight of the repulsion. None: 1, and 1e-4 where the objective is not normalised.
    direction : {"auto", "momentum", "spectral", "spectral+l-bfgs", "l-bfgs", "fixed-point", "conjugate-gradients", \
            "gradient-descent", "spectral-minus", "diagonal-hessian"}
        Search direction: momentum as t-SNE is usually run; the last two are for thousands of points. "auto": momentum
        for t-SNE, "spectral+l-bfgs" for the others.
    learning_rate : float or None
        Of momentum (None: N / exaggeration); a fixed step for other directions (None: a line search).
    momentum, exaggerated_momentum : float or None
        Of the direction of that name, and while the attraction is exaggerated. None: 0.9, and as `momentum`.
    exaggeration, exaggerated_iterations : float or None, int or None
        How much stronger the attraction is at first, and for how long. None: 12 for 75 in t-SNE with momentum.
    init : {"spectral", "pca", "random"}, array-like (N, d), `Run` or path
        The start: the spectral embedding, the first principal components of the points, or normal draws; or given
        coordinates, in an array, a file or another run, of which row n is point n. A row of NaN, or one beyond those of
        the other run, starts among its neighbours. Given coordinates stay as they are, and no exaggeration is the
        default.
    freeze : bool, default False
        Whether points stay where they are whose coordinates are given.
    start_deviation : float or None
        Standard deviation of the start. None: 1, and 1e-2 with momentum; of given coordinates their own.
    homotopy : int, default 1
        Number of strengths, growing to the one asked for, at each of which a minimum is sought.
    max_iter : int, default 1000
        Iterations at most; the descent ends before when it has converged.
    converged, window : float or None, int or None
        Relative fall of the objective over so many iterations below which it has. None: 1e-4 over 10, 1e-2 over 50 with
        momentum, 1e-6 over 1 for each strength of a homotopy. `converged` 0: it never has.
    repulsion, tolerance, schedule : {"auto", "exact", "barnes-hut", "fgt", "grid"}, float, int
        How the repulsion is summed, the relative error of its forces, and the number of iterations over which that is
        tightened from a tenth.
    kappa : int, default 7
        Strongest neighbours that make the spectral direction.
    pairs : int or None
        Pairs that L-BFGS keeps. None: 100, and 10 beside the spectral direction.
    snapshots : int, default 0
        The positions are kept in `store` every so many iterations. 0: never.
    callbacks : callable, list of callables or None
        Called as the descent goes on with the iteration, the objective as it was last computed (NaN before) and the
        embedding (N, d) in input order; what they return is not used.
    callbacks_every : int, default 50
        Iterations between two calls.

    The others are those of `LaplacianEigenmaps`, whose embedding is the start; its `residual` None is 1e-2 here.

    Attributes
    ----------
    embedding_ : (N, d) float64, in input order
    objective_ : value of the objective at the end; for t-SNE and s-SNE the Kullback-Leibler divergence
    kl_divergence_ : that of these two, by the name it has in scikit-learn; others have none
    n_iter_ : iterations made
    curve_ : the learning curve: `iteration`, `objective` and `gradient_norm`, (n,) each
    run_ : the run in `store`, opened, with its `graph`, `affinities`, `landmarks` and `snapshots`; with `store` alone
    certificates_ : what each stage measured about how good its result is
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    objective_: float
    n_iter_: int
    curve_: Curve

    def __init__(
        self,
        n_components: int = 2,
        *,
        strength: float | None = None,
        direction: str = "auto",
        learning_rate: float | None = None,
        momentum: float | None = None,
        exaggerated_momentum: float | None = None,
        exaggeration: float | None = None,
        exaggerated_iterations: int | None = None,
        init: Any = "spectral",
        freeze: bool = False,
        start_deviation: float | None = None,
        homotopy: int = 1,
        max_iter: int = 1000,
        converged: float | None = None,
        window: int | None = None,
        repulsion: str = "auto",
        tolerance: float = 1e-3,
        schedule: int = 0,
        kappa: int = 7,
        pairs: int | None = None,
        snapshots: int = 0,
        n_landmarks: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        landmarks: Any = "random",
        landmark_neighbors: int | None = None,
        affinity: str = "entropic",
        sigma: float | None = None,
        metric: str = "euclidean",
        deduplicate: bool | float | None = None,
        neighbors_method: str = "auto",
        recall: float = 0.95,
        solver: str = "refine",
        residual: float | None = None,
        max_passes: int = 200,
        disconnected: str = "connect",
        bandwidth_neighbor: int = 7,
        affinity_neighbors: int | None = None,
        affinity_solver: str = "halley",
        affinity_order: str = "density",
        affinity_tolerance: float = 1e-10,
        target_weight: float = 0.0,
        n_probes: int | None = None,
        max_rounds: int = 6,
        sampled_queries: int = 1000,
        sketch_dimensions: int = 64,
        cell_points: int = 600,
        cell_sample: int = 50_000,
        landmark_sample: int = 100_000,
        regularization: float | None = None,
        tuning: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        use_rep: str | None = None,
        scheduler: Any = None,
        store: str | Path | None = None,
        workers: int | None = None,
        memory: str | int | None = None,
        verbose: bool = False,
        callbacks: Any = None,
        callbacks_every: int = 50,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None, **beside: Any) -> "NonlinearEmbedding":
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path.

        `sample_weight` (N,), real numbers of at least one or a file of them, says how many equal points each stands
        for: the embedding is that of the set in which each is repeated. `perplexity` then counts copies, and
        `n_neighbors` distinct points. The labels y (N,), or a file of them, are used with `target_weight` alone.
        """
        with fit_run(self, X, y, given_weights(beside)) as finished:
            self.curve_ = finished.curve
        self.objective_ = self.certificates_["layout"]["objective"]
        self.n_iter_ = self.certificates_["layout"]["iterations"]
        return self

    def fit_transform(self, X: Any, y: Any = None, **beside: Any) -> np.ndarray:
        """Embed points, which may have a `sample_weight`, and return their embedding (N, d)."""
        return self.fit(X, y, **beside).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the positions (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        The embedding stays where it is. Each new point starts at its nearest training point and descends its own
        objective, all at once with one N-body sum a step; one that equals a training point is placed where that is.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.

        References
        ----------
        Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, equation (5.9).
        """
        return transform_points(self, X)

    @property
    def kl_divergence_(self) -> float:
        """The objective at the end, where it is a Kullback-Leibler divergence."""
        if OBJECTIVES[self._method].total != "one" or self.strength not in (None, 1):
            raise AttributeError(
                "kl_divergence_ is there for t-SNE and s-SNE of strength 1, whose objective is a divergence: "
                "take objective_"
            )
        return self.objective_

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


@functools.cache
def estimator_of(method: str) -> type[NonlinearEmbedding]:
    """Return the estimator of a method: a class with the name, the formula and the source of its objective."""
    row = OBJECTIVES[method]
    described = f"{row.name}: {row.formula[0]} + strength {row.formula[1]}."
    shared = inspect.cleandoc(NonlinearEmbedding.__doc__ or "")
    sections = f"References\n----------\n{row.source}\n\n{EXAMPLE.format(row.estimator)}"
    content = {"_method": method, "__module__": __name__, "__doc__": f"{described}\n\n{shared}\n\n{sections}"}
    return type(row.estimator, (NonlinearEmbedding,), content)


METHODS = {row.estimator: method for method, row in OBJECTIVES.items()}


def __getattr__(name: str) -> type[NonlinearEmbedding]:
    """Return an estimator by its name in the table of objectives: `TSNE`, `ElasticEmbedding`, ..."""
    if name not in METHODS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return estimator_of(METHODS[name])
