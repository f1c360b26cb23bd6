"""Nonlinear embeddings as scikit-learn estimators, a class for each row of the table of objectives."""

import functools
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from scalemani.estimators.fitting import TakesSparse, fitted, placed
from scalemani.new_points import Placement
from scalemani.objectives import OBJECTIVES


class NonlinearEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesSparse):
    """A descent from the spectral embedding of the same affinities.

    Parameters
    ----------
    n_components : dimensions of the embedding, d; in 2 and 3 the repulsion is summed by a particle mesh, else exactly
    perplexity : effective number of neighbours, K; None: 30, or a third of the neighbours where these are fewer than 90
    n_neighbors : neighbours a point in the graph, k; None: three times the perplexity, or all other points if fewer
    strength : weight of the repulsion; None: 1, and 1e-4 for the elastic embedding
    direction : "auto", "momentum" (with `learning_rate`, as t-SNE is usually run), "spectral", "spectral+l-bfgs",
        "l-bfgs", "fixed-point", "conjugate-gradients", "gradient-descent", and, for thousands of points,
        "spectral-minus" and "diagonal-hessian"
    learning_rate : of momentum, None: N / exaggeration; a fixed step for other directions, None: a line search
    exaggeration, exaggerated_iterations : how much stronger the attraction is at first, and for how long
    homotopy : number of strengths, growing to the one asked for, at each of which a minimum is sought
    max_iter : iterations at most; the descent ends before when it has converged
    converged : relative fall of the objective over some iterations below which it has; None: the direction's default
    repulsion, tolerance : "auto", "exact", "barnes-hut", "fgt" or "grid", and the relative error of the forces
    neighbors_method, recall : how the graph is built, and the measured recall at which it is good enough
    disconnected : "connect" pieces of the graph through their closest pairs, embed the "largest" alone (rows of the
        others are NaN in `embedding_`), or "error"
    random_state : seed of every random draw: an integer, or None or a generator to draw one
    scheduler : None for local threads, "processes", a Dask client, or the address of a scheduler
    store : folder of the run, kept and resumed from; None for a temporary one: the training points are then held in
        memory for `transform`
    workers, memory : tasks at the same moment, and a budget such as "4GB"

    Attributes
    ----------
    embedding_ : (N, d) float64, in input order
    objective_ : value of the objective at the end; for t-SNE and s-SNE the Kullback-Leibler divergence
    n_iter_ : iterations made
    certificates_ : what each stage measured about how good its result is
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    _method: ClassVar[str]

    # Of the spectral embedding that the descent starts from.
    n_landmarks: ClassVar[None] = None
    landmarks: ClassVar[str] = "random"
    landmark_neighbors: ClassVar[None] = None
    affinity: ClassVar[str] = "entropic"
    sigma: ClassVar[float] = 1.0
    solver: ClassVar[str] = "refine"
    residual: ClassVar[float] = 1e-2

    embedding_: np.ndarray
    objective_: float
    n_iter_: int
    certificates_: dict[str, dict[str, Any]]
    _placement: Placement

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        strength: float | None = None,
        direction: str = "auto",
        learning_rate: float | None = None,
        exaggeration: float | None = None,
        exaggerated_iterations: int | None = None,
        homotopy: int = 1,
        max_iter: int = 1000,
        converged: float | None = None,
        repulsion: str = "auto",
        tolerance: float = 1e-3,
        neighbors_method: str = "auto",
        recall: float = 0.95,
        disconnected: str = "connect",
        random_state: Any = 0,
        scheduler: Any = None,
        store: str | Path | None = None,
        workers: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_neighbors = n_neighbors
        self.strength = strength
        self.direction = direction
        self.learning_rate = learning_rate
        self.exaggeration = exaggeration
        self.exaggerated_iterations = exaggerated_iterations
        self.homotopy = homotopy
        self.max_iter = max_iter
        self.converged = converged
        self.repulsion = repulsion
        self.tolerance = tolerance
        self.neighbors_method = neighbors_method
        self.recall = recall
        self.disconnected = disconnected
        self.random_state = random_state
        self.scheduler = scheduler
        self.store = store
        self.workers = workers
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> "NonlinearEmbedding":
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path. `y` is not used."""
        asked = {
            "strength": self.strength,
            "direction": self.direction,
            "learning_rate": self.learning_rate,
            "exaggeration": self.exaggeration,
            "exaggerated_iterations": self.exaggerated_iterations,
            "homotopy": self.homotopy,
            "max_iterations": self.max_iter,
            "converged": self.converged,
            "repulsion": self.repulsion,
            "tolerance": self.tolerance,
        }
        with fitted(self, X, self._method, {"layout": asked}):
            pass
        self.objective_ = self.certificates_["layout"]["objective"]
        self.n_iter_ = self.certificates_["layout"]["iterations"]
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Embed points and return their embedding (N, d)."""
        return self.fit(X).embedding_

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

        Source: Vladymyrov, thesis 2014, eq. (5.9).
        """
        return placed(self, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


@functools.cache
def estimator_of(method: str) -> type[NonlinearEmbedding]:
    """Return the estimator of a method: a class with the name, the formula and the source of its objective."""
    row = OBJECTIVES[method]
    described = f"{row.name}: {row.formula[0]} + strength {row.formula[1]}."
    content = {"_method": method, "__module__": __name__}
    content["__doc__"] = f"{described}\n\n    References\n    ----------\n    {row.source}\n    "
    return type(row.estimator, (NonlinearEmbedding,), content)


METHODS = {row.estimator: method for method, row in OBJECTIVES.items()}


def __getattr__(name: str) -> type[NonlinearEmbedding]:
    """Return an estimator by its name in the table of objectives: `TSNE`, `ElasticEmbedding`, ..."""
    if name not in METHODS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return estimator_of(METHODS[name])
