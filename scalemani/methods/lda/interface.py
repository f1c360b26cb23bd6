"""`LandmarkLDA` as a scikit-learn estimator."""

from typing import Any, Self

from sklearn.utils import Tags

from scalemani.errors import ConfigError
from scalemani.interfaces.estimators.fitting import LandmarkEmbedder
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning


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


MEANINGS = {
    "discriminants": {
        "between_shares": Meaning("share of the variance along each axis that lies between classes"),
        "residual": Meaning(
            "|S_b w - lambda S_t w| of the worst direction w, of the scatter of all features and points, as a share of "
            "(|S_b| + lambda |S_t|) |w|: by how much these matrices have to change for it to be exact"
        ),
        "share_error_bound": Meaning("an exact share lies within this of each share between classes"),
        "outside_share": Meaning("share of the scatter that landmarks do not span, where no direction is looked for"),
    },
}
