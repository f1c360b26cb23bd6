"""Diffusion maps as a scikit-learn estimator."""

from scalemani.estimators.parameters import arguments
from scalemani.estimators.spectral import LaplacianEigenmaps


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
