"""Kernel principal components and kernel discriminants by landmarks, as scikit-learn estimators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalemani.estimators.linear import LandmarkLDA, LinearEmbedder
from scalemani.estimators.parameters import keep_parameters


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
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one `sigma`, or of the distance to the `bandwidth_neighbor`-th neighbour as each point's sigma.

    The others are those of `LaplacianEigenmaps`.

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
        n_neighbors: int | None = None,
        perplexity: float | None = None,
        affinity: str = "gaussian",
        sigma: float | None = None,
        bandwidth_neighbor: int = 7,
        affinity_neighbors: int | None = None,
        affinity_solver: str = "halley",
        affinity_order: str = "density",
        affinity_tolerance: float = 1e-10,
        disconnected: str = "connect",
        neighbors_method: str = "auto",
        recall: float = 0.95,
        n_probes: int | None = None,
        max_rounds: int = 6,
        sampled_queries: int = 1000,
        sketch_dimensions: int = 64,
        cell_points: int = 600,
        cell_sample: int = 50_000,
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


class LandmarkKernelLDA(LandmarkLDA):
    """Kernel discriminants of millions of labelled points, for a sparse Gaussian kernel, by locally linear landmarks.

    The kernel is that of `LandmarkKernelPCA`. Directions are combinations of its columns that landmarks say, by Z; all
    points and all labels count. New points get their weights over the landmarks times the landmarks' coordinates.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the number of classes. None: two, or one for two classes.
    ridge : float, default 1e-3
        Share of the mean scatter that is added to the scatter in every direction, without which smooth kernels tell
        any classes apart.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one `sigma`, or of the distance to the `bandwidth_neighbor`-th neighbour as each point's sigma.

    The others are those of `LaplacianEigenmaps`.

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
        n_neighbors: int | None = None,
        perplexity: float | None = None,
        ridge: float = 1e-3,
        affinity: str = "gaussian",
        sigma: float | None = None,
        bandwidth_neighbor: int = 7,
        affinity_neighbors: int | None = None,
        affinity_solver: str = "halley",
        affinity_order: str = "density",
        affinity_tolerance: float = 1e-10,
        disconnected: str = "connect",
        neighbors_method: str = "auto",
        recall: float = 0.95,
        n_probes: int | None = None,
        max_rounds: int = 6,
        sampled_queries: int = 1000,
        sketch_dimensions: int = 64,
        cell_points: int = 600,
        cell_sample: int = 50_000,
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
