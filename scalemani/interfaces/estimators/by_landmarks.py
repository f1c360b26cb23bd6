"""Methods by landmarks alone, as scikit-learn estimators: components, discriminants, their kernels, and manifolds."""

from dataclasses import field
from typing import Any, Self

from sklearn.utils import Tags

from scalemani.errors import ConfigError
from scalemani.interfaces.estimators.fitting import Embedder
from scalemani.interfaces.estimators.parameters import arguments


@arguments
class LandmarkEmbedder(Embedder):
    """What the methods by landmarks share: points are combinations of landmarks.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d. None: two, or as many as features, landmarks and classes allow.
    landmarks : str, array (L, D), or path, default "random"
        As in `LaplacianEigenmaps`.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: 90, or all other points if fewer.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one "affinities.sigma", or of the distance to the "affinities.bandwidth_neighbor"-th neighbour as
        each point's sigma.
    disconnected : {"connect", "largest", "error"}
        What is done where the graph falls into pieces, as in `LaplacianEigenmaps`.
    """

    n_components: int | None = field(default=None, kw_only=False)
    landmarks: Any = "random"


@arguments
class LandmarkPCA(LandmarkEmbedder):
    """Principal components of millions of points of any number of features, by locally linear landmarks.

    Scores are Z times the scores of the landmarks, which solve G G^T v = lambda Z^T Z v with G = Z^T Y of the centred
    points Y: no covariance of features is formed. Where the landmarks reconstruct all points they are the principal
    components. New points get their weights over the landmarks times the landmarks' scores, which training points
    have too.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two, or as many as features and landmarks allow.

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


@arguments
class LandmarkLDA(LandmarkEmbedder):
    """Linear discriminants of millions of labelled points of any number of features, by locally linear landmarks.

    Directions are looked for in the span of Z^T Y, Y the centred points: all directions where there are as many
    landmarks as features, and no more than landmarks where there are fewer. All points and all labels count. New
    points are projected as training points are.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the number of classes. None: two, or one for two classes.

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

    def fit(self, X: Any, y: Any = None, **side_data: Any) -> Self:
        """Embed points (N, D), as `LaplacianEigenmaps.fit` takes them, with labels y (N,) or a file of them."""
        if y is None:
            raise ConfigError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give fit one label for each "
                "point"
            )
        return super().fit(X, y, **side_data)


@arguments
class LandmarkKernelPCA(LandmarkEmbedder):
    """Kernel principal components of millions of points, for a sparse Gaussian kernel, by locally linear landmarks.

    The kernel is one where a point meets itself, exp(-d^2 / (2 sigma^2)) between neighbours in the graph (half of it
    where only one of two points has the other among its neighbours), and zero elsewhere; it is centred without a dense
    matrix. Scores are Z times the scores of the landmarks. New points get their weights over the landmarks times the
    landmarks' scores, which training points have too.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.

    Attributes
    ----------
    embedding_ : (N, d) float64, the scores in input order, centred and uncorrelated
    eigenvalues_ : (d,) of the centred kernel, descending, as scikit-learn's KernelPCA has them
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Schoelkopf, Smola and Mueller, Nonlinear component analysis as a kernel eigenvalue problem, Neural Computation 1998.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.6.4.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> LandmarkKernelPCA(3, n_landmarks=200).fit_transform(load_digits().data).shape
    (1797, 3)
    """

    _method = "kernel-pca"

    n_neighbors: int | None = None
    affinity: str = "gaussian"
    disconnected: str = "connect"


@arguments
class LandmarkKernelLDA(LandmarkLDA):
    """Kernel discriminants of millions of labelled points, for a sparse Gaussian kernel, by locally linear landmarks.

    The kernel is that of `LandmarkKernelPCA`. Directions are combinations of its columns that landmarks say, by Z; all
    points and all labels count. New points get their weights over the landmarks times the landmarks' coordinates. The
    share "kernel_discriminants.ridge" (1e-3) of the mean scatter is added to the scatter in every direction, without
    which smooth kernels tell any classes apart.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the number of classes. None: two, or one for two classes.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, centred
    eigenvalues_ : (d,) the share of the regularised scatter along each direction that lies between classes, descending
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Baudat and Anouar, Generalized discriminant analysis using a kernel approach, Neural Computation 2000.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.6.4.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> LandmarkKernelLDA(3, n_landmarks=200).fit_transform(*load_digits(return_X_y=True)).shape
    (1797, 3)
    """

    _method = "kernel-lda"

    n_neighbors: int | None = None
    affinity: str = "gaussian"
    disconnected: str = "connect"


@arguments
class LandmarkLLE(LandmarkEmbedder):
    """Locally linear embedding of millions of points, by locally linear landmarks.

    Each point is made up of its neighbours in the graph, and coordinates are those that these weights make up best.
    The coordinates of the landmarks solve a problem of their size, and points are combinations of them. Where all
    points are landmarks, the embedding is that of scikit-learn's LocallyLinearEmbedding (`method="standard"`) with the
    same `n_neighbors` and `reg`. New points get their weights over the landmarks times the landmarks' coordinates,
    which training points have too.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.
    n_neighbors : int or None
        Neighbours a point, k. None: 15, or all other points where these are fewer.
    reg : float, default 1e-3
        Share of the trace of a point's Gram matrix that is added to each entry of its diagonal, above 0 and below 1.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, centred, orthogonal columns of unit length
    eigenvalues_ : (d,) what neighbours leave of each column, the sum of squares, ascending
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`

    References
    ----------
    Roweis and Saul, Nonlinear dimensionality reduction by locally linear embedding, Science 2000.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, chapter 4.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> LandmarkLLE(2, n_landmarks=200).fit_transform(make_swiss_roll(1000, random_state=0)[0]).shape
    (1000, 2)
    """

    _method = "locally-linear-embedding"

    n_neighbors: int | None = None
    reg: float = 1e-3
    disconnected: str = "connect"


@arguments
class LandmarkIsomap(LandmarkEmbedder):
    """Isomap of millions of points, by landmarks.

    Distances along the neighbour graph are found from each landmark to all points, by Dijkstra's algorithm, and
    classical scaling gives the landmarks coordinates with the distances between them. Points are triangulated by their
    distances to the landmarks; new ones by those over their neighbours among the training points. Where all points are
    landmarks, the embedding is that of scikit-learn's Isomap with the same `n_neighbors`, up to signs. The graph of all
    points is in memory.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.
    n_landmarks : int or None
        Landmarks, L, each of which takes one search of the whole graph, and 4 or 8 bytes a point in the store. None:
        1,000, or all distinct points where there are no more than 1,000 points.
    landmarks : str, array (L, D), or path, default "random"
        As in `LaplacianEigenmaps`; landmarks are points.
    n_neighbors : int or None
        Neighbours a point, k. None: 15, or all other points where these are fewer. Too many lead from one sheet of a
        roll to the next.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, in the units of the points
    eigenvalues_ : (d,) descending, the sum of squares of the landmarks' coordinates in each dimension
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`; that of `isomap` has the
        `residual_variance`, 1 - r^2 of distances along the graph and in the embedding

    References
    ----------
    Tenenbaum, de Silva and Langford, A global geometric framework for nonlinear dimensionality reduction, Science 2000.
    De Silva and Tenenbaum, Global versus local methods in nonlinear dimensionality reduction, NIPS 2002.
    De Silva and Tenenbaum, Sparse multidimensional scaling using landmark points, 2004, for the triangulation.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> LandmarkIsomap(2, n_landmarks=100).fit_transform(make_swiss_roll(1000, random_state=0)[0]).shape
    (1000, 2)
    """

    _method = "isomap"

    n_neighbors: int | None = None
    disconnected: str = "connect"
