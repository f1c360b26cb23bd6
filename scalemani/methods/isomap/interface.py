"""`LandmarkIsomap` as a scikit-learn estimator."""

from scalemani.config.choices import Disconnected
from scalemani.interfaces.estimators.fitting import LandmarkEmbedder
from scalemani.interfaces.estimators.parameters import arguments
from scalemani.interfaces.report.certificates import Meaning


@arguments
class LandmarkIsomap(LandmarkEmbedder):
    """Isomap of millions of points, by landmarks.

    Distances along the neighbour graph are computed from each landmark to all points, by Dijkstra's algorithm, and
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
        1,000, or all distinct points where there are no more than 1,000.
    landmarks : str, array (L, D) or (L,), or path, default "random"
        As in `LaplacianEigenmaps`; landmarks are points: rows of X, or equal to some.
    n_neighbors : int or None
        Neighbours a point, k. None: 15, or all other points where these are fewer. Too many lead from one sheet of a
        roll to the next.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, in the units of the points
    eigenvalues_ : (d,) descending, the sum of squares of the landmarks' coordinates in each dimension
    certificates_, n_features_in_, feature_names_in_ : as in `LaplacianEigenmaps`; that of `isomap` has the
        `residual_variance`, 1 - r^2 of distances along the graph and in the embedding, and the `residual` of the
        eigenproblem of all points

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
    disconnected: Disconnected = "connect"


@arguments
class CombinedIsomap(LandmarkIsomap):
    """Isomap of points that are combinations of landmarks, by the shortest paths between all points.

    Of all coordinates that are Z times coordinates of landmarks, Z the weights of `sm.landmark_weights`, the best ones
    for classical scaling of all distances along the graph. At equal landmarks that is nearer to an Isomap of all
    points than `LandmarkIsomap`, which computes paths from the landmarks alone. Paths start at each point here, so that
    the time grows with N^2: it is for up to some 20,000 points, and beyond some hundred thousand take `LandmarkIsomap`.
    New points get their weights over the landmarks times the landmarks' coordinates, which training points have too.

    Classical scaling of Euclidean distances in the place of paths is `LandmarkPCA`.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d, below the landmarks. None: two.

    Attributes
    ----------
    embedding_ : (N, d) float64 in input order, centred and uncorrelated, in the units of the points
    eigenvalues_ : (d,) descending, the sum of squares of the points' coordinates in each dimension
    certificates_, n_features_in_, feature_names_in_ : as in `LandmarkIsomap`, without that of landmarks alone

    References
    ----------
    Tenenbaum, de Silva and Langford, A global geometric framework for nonlinear dimensionality reduction, Science 2000.
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 4.1 to 4.3.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> CombinedIsomap(2, n_landmarks=100).fit_transform(make_swiss_roll(1000, random_state=0)[0]).shape
    (1000, 2)
    """

    _method = "combined-isomap"


OF_SAMPLED_PATHS = {
    "residual": Meaning(
        "|B u - |x|^2 u| of the worst column x, u at unit length, B = -J D^2 J / 2 of the squares of all shortest "
        "paths, by sampled points, as a share of the largest |x|^2: within it lies an eigenvalue of an Isomap "
        "whose landmarks are all points"
    ),
    "residual_error": Meaning("standard error of it"),
    "points_residual_variance": Meaning(
        "1 - r^2 of distances along the graph and in the embedding, from sampled points to all"
    ),
    "points_residual_variance_error": Meaning("standard error of it"),
}
MEANINGS = {
    "geodesics": {"longest_path": Meaning("the longest of the shortest paths between two landmarks")},
    "isomap": {
        "residual_variance": Meaning("1 - r^2 of distances along the graph and in the embedding, between landmarks"),
        **OF_SAMPLED_PATHS,
        "least_eigenvalue": Meaning("below zero, by as much as no coordinates at all have these distances"),
    },
    "combined_isomap": OF_SAMPLED_PATHS,
}
