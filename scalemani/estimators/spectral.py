"""Laplacian eigenmaps as a scikit-learn estimator."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from scalemani.estimators.fitting import TakesSparse, fitted, placed
from scalemani.new_points import Placement


class LaplacianEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesSparse):
    """Laplacian eigenmaps of millions of points, to a residual asked for, or by locally linear landmarks.

    Parameters
    ----------
    n_components : dimensions of the embedding, d
    n_landmarks : landmarks, L; None: 1,000, or all distinct points where there are no more than 1,000 points
    perplexity : effective number of neighbours, K; None: 30, or a third of the neighbours where these are fewer than 90
    n_neighbors : neighbours a point in the graph, k; None: three times the perplexity, or all other points if fewer
    landmarks : "random", "spread", "kmeans", "kmeans++", "kmeans++ seeding" or "minmax"
    landmark_neighbors : landmarks a point is a combination of, K_Z; None: 5, or L where there are fewer
    affinity, sigma : "entropic", "gaussian" (one `sigma`) or "self-tuning"
    neighbors_method, recall : how the graph is built ("auto", "exact", "pynndescent", "partition"), and the measured
        recall at which it is good enough
    solver, residual : "refine" (from coarse graphs, by passes over the graph to |S u - theta u| <= `residual`), "lll"
        (by the landmarks alone), "lll+refine" (from both) or "exact"
    disconnected : "connect" pieces of the graph through their closest pairs, embed the "largest" alone (rows of the
        others are NaN in `embedding_`), or "error"
    random_state : seed of every random draw: an integer, or None or a generator to draw one
    scheduler : None for local threads, "processes", a Dask client, or the address of a scheduler
    store : folder of the run, kept and resumed from; None for a temporary one. Workers on other machines need to see it
    workers, memory : tasks at the same moment, and a budget such as "4GB"

    A value that was given and does not fit the points is an error; only what was left open follows them.

    Attributes
    ----------
    embedding_ : (N, d) float64, eigenvectors of L v = lambda D v in input order, the constant one left out
    eigenvalues_ : (d,) ascending, in [0, 2]
    certificates_ : what each stage measured about how good its result is
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Vladymyrov and Carreira-Perpinan, Locally linear landmarks for large-scale manifold learning, ECML PKDD 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> points, _ = make_swiss_roll(300, random_state=0)
    >>> LaplacianEigenmaps(n_landmarks=100).fit_transform(points).shape
    (300, 2)
    """

    embedding_: np.ndarray
    eigenvalues_: np.ndarray
    certificates_: dict[str, dict[str, Any]]
    _placement: Placement

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_landmarks: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        landmarks: str = "random",
        landmark_neighbors: int | None = None,
        affinity: str = "entropic",
        sigma: float = 1.0,
        neighbors_method: str = "auto",
        recall: float = 0.95,
        solver: str = "refine",
        residual: float = 1e-3,
        disconnected: str = "connect",
        random_state: Any = 0,
        scheduler: Any = None,
        store: str | Path | None = None,
        workers: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.perplexity = perplexity
        self.n_neighbors = n_neighbors
        self.landmarks = landmarks
        self.landmark_neighbors = landmark_neighbors
        self.affinity = affinity
        self.sigma = sigma
        self.neighbors_method = neighbors_method
        self.recall = recall
        self.solver = solver
        self.residual = residual
        self.disconnected = disconnected
        self.random_state = random_state
        self.scheduler = scheduler
        self.store = store
        self.workers = workers
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> "LaplacianEigenmaps":
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path. `y` is not used."""
        with fitted(self, X, "laplacian-eigenmaps", {}) as finished:
            self.eigenvalues_ = finished.eigenvalues
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Embed points and return their embedding (N, d)."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        Each point is placed on its own, by its weights over its nearest landmarks, whatever else comes with it. A
        landmark gets the coordinates that it has in `embedding_`; other points of the training data get what the
        landmarks say of them, which is close to, but after refinement not equal to, their row of `embedding_`. Far from
        all landmarks the weights extrapolate linearly.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.
        """
        return placed(self, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
