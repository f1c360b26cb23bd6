"""Spectral clustering as a scikit-learn estimator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from scalemani.estimators.fitting import Embedder, fit_run, transform_points
from scalemani.estimators.parameters import keep_parameters
from scalemani.new_points.clusters import centers_of, nearest_clusters

NO_CLUSTER = -1  # of points of components that are left out, as scikit-learn says of noise


class SpectralClustering(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Embedder):
    """Spectral clustering of millions of points: K eigenvectors by landmarks, k-means warm-started from the landmarks.

    The eigenvectors are those of `LaplacianEigenmaps`, the constant one left out, and rows are taken at unit length.
    k-means runs `n_restarts` times on the landmarks only, then once over all points from the best centres found.

    Parameters
    ----------
    n_clusters : int, default 10
        Clusters, K.
    n_restarts : int, default 20
        Runs of k-means on the landmarks.
    n_components : int or None
        Eigenvectors. None: as many as clusters, or one less than landmarks where these are no more than K.

    The others are those of `LaplacianEigenmaps`.

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

    labels_: np.ndarray
    eigenvalues_: np.ndarray
    _centers: np.ndarray

    def __init__(
        self,
        n_clusters: int = 10,
        *,
        n_restarts: int = 20,
        n_components: int | None = None,
        n_landmarks: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        landmarks: Any = "random",
        landmark_neighbors: int | None = None,
        affinity: str = "entropic",
        sigma: float | None = None,
        metric: str = "euclidean",
        neighbors_method: str = "auto",
        neighbors_window: int = 11,
        neighbors_frames: int = 1,
        image_rows: int | None = None,
        image_columns: int | None = None,
        recall: float = 0.95,
        landmark_graph: str = "euclidean",
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
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any = None) -> "SpectralClustering":
        """Cluster points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path.

        The labels y (N,), or a file of them, are used with `target_weight` alone.
        """
        with fit_run(self, X, y) as finished:
            self.eigenvalues_ = finished.eigenvalues
            self.labels_ = finished.of_input(np.asarray(finished.labels[...]), NO_CLUSTER)
            self._centers = centers_of(finished)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Cluster points and return their spectral embedding (N, d)."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D) in the spectral embedding.

        See `LaplacianEigenmaps.transform`.
        """
        return transform_points(self, X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters (n,) int32 of new points (n, D), of any kind that `fit` takes.

        Each point is placed among the landmarks as `LaplacianEigenmaps.transform` does, and gets the cluster whose
        centre is nearest. Landmarks get their label; other points of the training data nearly always do.
        """
        return nearest_clusters(transform_points(self, X), self._centers)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
