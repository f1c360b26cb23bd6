"""Laplacian eigenmaps, diffusion maps and spectral clustering as scikit-learn estimators."""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin

from scalemani.interfaces.estimators.fitting import GraphEmbedder, transform_points
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.runs.new_points import centers_of, nearest_clusters
from scalemani.runs.opened import Run


@arguments
class LaplacianEigenmaps(GraphEmbedder):
    """Laplacian eigenmaps of millions of points, to a requested residual, or by locally linear landmarks.

    A value that was given and does not fit the points is an error; only what was left open follows them. A setting that
    has no effect with the others, as "affinities.sigma" with entropic affinities, is a warning.

    X may be the pixels of an image with settings={"neighbors.method": "window"}: an array (rows, columns) or (rows,
    columns, colours), or a video of such frames, with affinity="gaussian" or "ensemble"; or a table of them (N, D), row
    by row and frame by frame, with "neighbors.image_rows" and "neighbors.image_columns".

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d.

    Attributes
    ----------
    embedding_ : (N, d) float64, eigenvectors of L v = lambda D v in input order, the constant one left out
    eigenvalues_ : (d,) ascending, in [0, 2]
    certificates_ : what each stage measured about how good its result is; of `embedding` the residual, the eigengap
        after the last column, and what these bound: the angle to the exact eigenvectors (radians) and the error of the
        eigenvalues
    run_ : the run in `store`, opened, with its `graph`, `affinities` and `landmarks`; there with `store` alone
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

    _method = "laplacian-eigenmaps"

    n_components: int = field(default=2, kw_only=False)
    landmarks: Any = "random"
    residual: float | None = None
    deduplicate: bool | float | None = None

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
        return super().transform(X)


@arguments
class DiffusionMaps(LaplacianEigenmaps):
    """Diffusion maps of millions of points: Laplacian eigenmaps of W over (q_n q_m)^alpha, scaled by |mu|^time.

    q are the degrees of W, and mu = 1 - lambda the eigenvalues of the random walk on what is left of it. Distances
    between rows of `embedding_` approach the distances of diffusion after `time` steps. With `alpha` 0 and `time` 0 the
    embedding is that of `LaplacianEigenmaps` to the last bit. Entropic affinities have degrees near one: where `alpha`
    is to undo an uneven density, take affinity="gaussian".

    Parameters
    ----------
    alpha : float in [0, 1], default 1.0
        How much of the density is divided out: 0 for the normalised graph Laplacian, 1/2 for the Fokker-Planck
        operator, 1 for the Laplace-Beltrami operator, whatever the density.
    time : float, default 1.0
        Steps of diffusion, t; 0 scales nothing.

    Attributes
    ----------
    embedding_ : (N, d) float64, v_k |1 - lambda_k|^time in input order, with V^T D V = I, the constant one left out
    eigenvalues_ : (d,) lambda, ascending, in [0, 2]
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Coifman and Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 21, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> points, _ = make_swiss_roll(300, random_state=0)
    >>> DiffusionMaps(affinity="gaussian", time=2).fit_transform(points).shape
    (300, 2)
    """

    _method = "diffusion-maps"

    alpha: float = 1.0
    time: float = 1.0


NO_CLUSTER = -1  # of points of components that are left out, as scikit-learn says of noise


@arguments
class SpectralClustering(ClusterMixin, GraphEmbedder):
    """Spectral clustering of millions of points: K eigenvectors by landmarks, k-means warm-started from the landmarks.

    The eigenvectors are those of `LaplacianEigenmaps`, the constant one left out, and rows are taken at unit length.
    k-means runs "clustering.n_restarts" (20) times on the landmarks only, then once over all points from the best
    centres found.

    Parameters
    ----------
    n_clusters : int, default 10
        Clusters, K.
    n_components : int or None
        Eigenvectors. None: as many as clusters, or one less than landmarks where these are no more than K.

    Attributes
    ----------
    labels_ : (N,) int32, the cluster of each point, in input order; -1 where disconnected="largest" leaves it out
    embedding_, eigenvalues_, certificates_, run_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 4.7 and 4.7.1.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> points, moons = make_moons(400, noise=0.05, random_state=0)
    >>> labels = SpectralClustering(2, n_landmarks=100, perplexity=10).fit_predict(points)
    >>> bool((labels == moons).all() or (labels != moons).all())
    True
    """

    _method = "spectral-clustering"

    n_clusters: int = field(default=10, kw_only=False)
    n_components: int | None = None
    landmarks: Any = "random"
    residual: float | None = None

    def _keep_results(self, finished: Run) -> None:
        super()._keep_results(finished)
        self.labels_: np.ndarray = finished.of_input(np.asarray(finished.labels[...]), NO_CLUSTER)
        self._centers: np.ndarray = centers_of(finished)

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters (n,) int32 of new points (n, D), of any kind that `fit` takes.

        Each point is placed among the landmarks as `LaplacianEigenmaps.transform` does, and gets the cluster whose
        centre is nearest. Landmarks get their label; other points of the training data nearly always do.
        """
        return nearest_clusters(transform_points(self, X), self._centers)
