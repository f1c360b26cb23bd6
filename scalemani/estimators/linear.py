"""Principal components and linear discriminants by landmarks, as scikit-learn estimators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from scalemani.errors import ConfigError
from scalemani.estimators.fitting import Embedder, fit_run, transform_points
from scalemani.estimators.parameters import keep_parameters


class LinearEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Embedder):
    """What the linear methods share: points as combinations of landmarks, no neighbour graph.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d. None: two, or as many as features, landmarks and classes allow.
    metric : {"euclidean", "cosine", "correlation", "hellinger", "hamming"}
        The geometry that points are taken in, as in `LaplacianEigenmaps`.
    n_landmarks, landmarks, landmark_neighbors, landmark_sample, regularization : int or None, str, int or None, int, \
            float or None
        The landmarks and Z, as in `LaplacianEigenmaps`.
    tuning, random_state, use_rep, scheduler, store, workers, memory, verbose
        As in `LaplacianEigenmaps`.
    """

    eigenvalues_: np.ndarray

    def __init__(
        self,
        n_components: int | None = None,
        *,
        metric: str = "euclidean",
        n_landmarks: int | None = None,
        landmarks: Any = "random",
        landmark_neighbors: int | None = None,
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

    def fit(self, X: Any, y: Any = None) -> "LinearEmbedder":
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path. `y` is not used."""
        with fit_run(self, X) as finished:
            self.eigenvalues_ = finished.eigenvalues
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Embed points and return their embedding (N, d)."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.
        """
        return transform_points(self, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


class LandmarkPCA(LinearEmbedder):
    """Principal components of millions of points of any number of features, by locally linear landmarks.

    Scores are Z times the scores of the landmarks, which solve G G^T v = lambda Z^T Z v with G = Z^T Y of the centred
    points Y: no covariance of features is formed. Where the landmarks reconstruct all points they are the principal
    components. New points get their weights over the landmarks times the landmarks' scores, which training points
    have too.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two, or as many as features and landmarks allow.

    The others are those of `LaplacianEigenmaps`, as far as they concern landmarks and Z.

    Attributes
    ----------
    embedding_ : (N, d) float64, the scores in input order, centred and uncorrelated
    eigenvalues_ : (d,) variance along each component, descending, over N - 1
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.6.2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> LandmarkPCA(3, n_landmarks=200).fit_transform(load_digits().data).shape
    (1797, 3)
    """

    _method = "pca"


class LandmarkLDA(LinearEmbedder):
    """Linear discriminants of millions of labelled points of any number of features, by locally linear landmarks.

    Directions are looked for in the span of Z^T Y, Y the centred points: all directions where there are as many
    landmarks as features, and no more than landmarks where there are fewer. All points and all labels count. New
    points are projected as training points are.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the number of classes. None: two, or one for two classes.

    The others are those of `LaplacianEigenmaps`, as far as they concern landmarks and Z.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, centred, with a variance of one within classes
    eigenvalues_ : (d,) the share of the scatter along each direction that lies between classes, descending, in [0, 1]
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.6.3.
    Baudat and Anouar, Generalized discriminant analysis using a kernel approach, Neural Computation 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> LandmarkLDA(3, n_landmarks=200).fit_transform(*load_digits(return_X_y=True)).shape
    (1797, 3)
    """

    _method = "lda"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None) -> "LandmarkLDA":
        """Embed points (N, D), as `LaplacianEigenmaps.fit` takes them, with labels y (N,) or a file of them."""
        if y is None:
            raise ConfigError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give fit one label for each "
                "point"
            )
        with fit_run(self, X, y) as finished:
            self.eigenvalues_ = finished.eigenvalues
        return self
