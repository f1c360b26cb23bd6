"""Methods that unroll a manifold by its neighbour graph and landmarks, as scikit-learn estimators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalemani.estimators.linear import LinearEmbedder
from scalemani.estimators.parameters import keep_parameters


class LandmarkLLE(LinearEmbedder):
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

    The others are those of `LaplacianEigenmaps`.

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
        reg: float = 1e-3,
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


class LandmarkIsomap(LinearEmbedder):
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
    n_landmarks, landmarks : int or None, str
        As in `LaplacianEigenmaps`; landmarks are points. A landmark takes one search of the whole graph, and 4 or 8
        bytes a point in the store.
    n_neighbors : int or None
        Neighbours a point, k. None: 15, or all other points where these are fewer. Too many lead from one sheet of a
        roll to the next.

    The others are those of `LaplacianEigenmaps`.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        metric: str = "euclidean",
        n_landmarks: int | None = None,
        landmarks: Any = "random",
        landmark_sample: int = 100_000,
        n_neighbors: int | None = None,
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
