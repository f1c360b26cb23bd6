"""`LandmarkLLE` as a scikit-learn estimator."""

from scalemani.config.choices import Disconnected
from scalemani.interfaces.estimators.fitting import LandmarkEmbedder
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning, none_of, subspace_meanings


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
    disconnected: Disconnected = "connect"


MEANINGS = {
    "local_reconstruction": {
        "zero_eigenvalues": Meaning(
            "eigenvalues that are zero to rounding, beside that of the constant vector",
            none_of("vectors of the same eigenvalue are one basis of many: raise local_reconstruction.reg"),
        ),
        **subspace_meanings(
            "|M u - lambda u| of the worst column u, M = (I - R)^T (I - R), over all points: how far coordinates are "
            "from those of all points as landmarks"
        ),
    },
}
