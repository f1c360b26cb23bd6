"""`LandmarkKernelPCA` and `KernelFunctionPCA` as scikit-learn estimators."""

from collections.abc import Callable

from scalemani.config.choices import Disconnected, KernelKind
from scalemani.interfaces.estimators.fitting import LandmarkEmbedder
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning, good_if, subspace_meanings


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
    affinity: KernelKind = "gaussian"
    disconnected: Disconnected = "connect"


@arguments
class KernelFunctionPCA(LandmarkEmbedder):
    """Kernel principal components for a kernel between all points, which may be a function of yours, by landmarks.

    Of all scores that are Z times scores of landmarks, Z the weights of `sm.landmark_weights`, the best ones for the
    kernel between all points. The kernel is computed between each two points, twice, and never held, so that the time
    grows with N^2: it is for up to some 20,000 points, and beyond some hundred thousand take `LandmarkKernelPCA`, whose
    kernel is sparse. Where all points are landmarks, the scores are those of scikit-learn's KernelPCA. New points get
    their weights over the landmarks times the landmarks' scores, which training points have too: the kernel is not
    computed of them. Kernel discriminants are linear ones of many scores.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.
    kernel : str or function, default "gaussian"
        "gaussian", exp(-d^2 / (2 sigma^2)) with the setting "function_components.sigma" (None: the median distance
        between landmarks), or a function k(x, y) of two rows (D,) float64 that numba compiles, at the top level of a
        module or file: it, or its name as module:function or path.py::function. It has to be symmetric and positive
        semidefinite, which is checked on the landmarks.

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
    >>> KernelFunctionPCA(3, n_landmarks=200).fit_transform(load_digits().data).shape
    (1797, 3)
    """

    _method = "kernel-function-pca"

    kernel: str | Callable[..., float] = "gaussian"


LEAST_EIGENVALUE = good_if(
    lambda value, run: -value <= run.eigenvalues[-1],
    "no farther from zero than the last component: else the kernel is not positive semidefinite",
)

OF_SCORES = subspace_meanings(
    "|J K J u - lambda u| of the worst column u at unit length, over all points, as a share of the largest "
    "lambda: how far scores are from exact eigenvectors of the centred kernel"
)

MEANINGS = {
    "kernel_components": {
        "least_eigenvalue": Meaning("least eigenvalue of the kernel on the landmarks", LEAST_EIGENVALUE),
        **OF_SCORES,
    },
    "function_components": {
        "sigma": Meaning("the bandwidth of the Gaussian kernel"),
        "least_share": Meaning("the least eigenvalue of the kernel between landmarks, as a share of the largest"),
        **OF_SCORES,
    },
}
