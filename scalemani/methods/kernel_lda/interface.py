"""`LandmarkKernelLDA` as a scikit-learn estimator."""

from scalemani.config.choices import Disconnected, KernelKind
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning
from scalemani.methods.lda.interface import LandmarkLDA


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
    affinity: KernelKind = "gaussian"
    disconnected: Disconnected = "connect"


MEANINGS = {
    "kernel_discriminants": {
        "between_shares": Meaning("share of the variance along each axis that lies between classes"),
        "residual": Meaning(
            "at least |S_b a - lambda S_t a| of the worst direction a, over all points, in the norm of the inverse of "
            "S_t, where |a| is one in that of S_t: an exact lambda lies within it"
        ),
        "share_error_bound": Meaning("an exact share lies within this of each share between classes"),
    },
}
