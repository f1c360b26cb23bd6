"""Nonlinear embeddings as scikit-learn estimators, a class for each row of the table of objectives."""

import functools
import inspect
from dataclasses import field
from typing import Any

import numpy as np

from scalemani.config.objectives import OBJECTIVES
from scalemani.interfaces.estimators.fitting import GraphEmbedder, requested_of
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.runs.opened import Curve, Run

EXAMPLE = """Examples
--------
>>> from sklearn.datasets import load_digits
>>> import scalemani as sm
>>> model = sm.{}(perplexity=10, max_iter=20, settings={{"layout.converged": 0}}).fit(load_digits().data[:200])
>>> model.embedding_.shape, model.n_iter_
((200, 2), 20)
"""


@arguments
class NonlinearEmbedding(GraphEmbedder):
    """A descent from the spectral embedding of the same affinities, or from another start.

    `settings` has the other numbers of the descent, "layout.direction", "layout.converged", "layout.repulsion",
    "layout.homotopy" ..., and of the spectral start, whose "embedding.residual" is 1e-2 here. An array of landmarks for
    that start is {"landmarks.method": array}.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d; in 2 and 3 the repulsion is summed by a particle mesh, else exactly.
    strength : float or None
        Weight of the repulsion. None: 1, and 1e-4 where the objective is not normalised.
    learning_rate : float, "auto" or None
        Of momentum (None, "auto": N / exaggeration); a fixed step for other directions (None: a line search).
    exaggeration : float, "auto" or None
        How much stronger the attraction is for the first "layout.exaggerated_iterations". None, "auto": 12 for 75 in
        t-SNE with momentum.
    init : {"spectral", "pca", "random"}, array-like (N, d), `Run` or path
        The start: the spectral embedding, the first principal components of the points, or normal draws; or given
        coordinates, in an array, a file or another run, of which row n is point n. A row of NaN, or one beyond those of
        the other run, starts among its neighbours. Given coordinates stay as they are, and no exaggeration is the
        default; with "layout.freeze" their points stay where they are.
    max_iter : int, default 1000
        Iterations at most, "layout.max_iterations"; the descent ends before when it has converged.
    callbacks : callable, list of callables or None
        Called during the descent with the iteration, the objective as it was last computed (NaN before) and the
        embedding (N, d) in input order; what they return is not used.
    callbacks_every : int, default 50
        Iterations between two calls.

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

    n_components: int = field(default=2, kw_only=False)
    strength: float | None = None
    learning_rate: float | str | None = None
    exaggeration: float | str | None = None
    init: Any = "spectral"
    max_iter: int = 1000
    deduplicate: bool | float | None = None
    callbacks: Any = None
    callbacks_every: int = 50

    def _keep_results(self, finished: Run) -> None:
        self.curve_: Curve = finished.curve
        self.objective_: float = self.certificates_["layout"]["objective"]
        self.n_iter_: int = self.certificates_["layout"]["iterations"]

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
        return super().transform(X)

    @property
    def kl_divergence_(self) -> float:
        """The objective at the end, where it is a Kullback-Leibler divergence."""
        if OBJECTIVES[self._method].total != "one" or requested_of(self).params.layout.strength not in (None, 1):
            raise AttributeError(
                "kl_divergence_ is there for t-SNE and s-SNE of strength 1, whose objective is a divergence: "
                "take objective_"
            )
        return self.objective_


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
