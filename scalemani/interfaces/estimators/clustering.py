"""Spectral clustering as a scikit-learn estimator."""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin

from scalemani.interfaces.estimators.fitting import GraphEmbedder, transform_points
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.runs.new_points.clusters import centers_of, nearest_clusters
from scalemani.runs.opened import Run

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
