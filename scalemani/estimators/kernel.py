"""Kernel principal components and kernel discriminants by landmarks, as scikit-learn estimators."""

from scalemani.estimators.linear import LandmarkLDA, LinearEmbedder
from scalemani.estimators.parameters import arguments


@arguments
class LandmarkKernelPCA(LinearEmbedder):
    """Kernel principal components of millions of points, for a sparse Gaussian kernel, by locally linear landmarks.

    The kernel is one where a point meets itself, exp(-d^2 / (2 sigma^2)) between neighbours in the graph (half of it
    where only one of two points has the other among its neighbours), and zero elsewhere; it is centred without a dense
    matrix. Scores are Z times the scores of the landmarks. New points get their weights over the landmarks times the
    landmarks' scores, which training points have too.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: 90, or all other points if fewer.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one "affinities.sigma", or of the distance to the "affinities.bandwidth_neighbor"-th neighbour as
        each point's sigma.
    disconnected : {"connect", "largest", "error"}
        What is done where the graph falls into pieces, as in `LaplacianEigenmaps`.

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
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: 90, or all other points if fewer.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one "affinities.sigma", or of the distance to the "affinities.bandwidth_neighbor"-th neighbour as
        each point's sigma.
    disconnected : {"connect", "largest", "error"}
        What is done where the graph falls into pieces, as in `LaplacianEigenmaps`.

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
