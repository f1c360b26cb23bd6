"""`LandmarkPCA` as a scikit-learn estimator."""

from scalemani.interfaces.estimators.fitting import LandmarkEmbedder
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning, subspace_meanings


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


MEANINGS = {
    "principal_components": {
        "explained_share": Meaning("share of the variance that the components explain"),
        **subspace_meanings(
            "|Y Y^T u - lambda u| of the worst column u at unit length, over all points, as a share of the "
            "largest lambda: how far scores are from exact principal components"
        ),
    },
}
