"""Laplacian eigenmaps as a scikit-learn estimator."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from scalemani.estimators.fitting import Embedder, fit_run, given_weights, transform_points
from scalemani.estimators.parameters import keep_parameters


class LaplacianEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Embedder):
    """Laplacian eigenmaps of millions of points, to a residual asked for, or by locally linear landmarks.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding, d.
    n_landmarks : int or None
        Landmarks, L. None: 1,000, or all distinct points where there are no more than 1,000 points.
    perplexity : float or None
        Effective number of neighbours, K. None: 30, or a third of the neighbours where these are fewer than 90.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: three times the perplexity, or all other points if fewer.
    landmarks : str, array (L, D), or path, default "random"
        The landmarks themselves, of any kind that X is given in, on the data or off it; a `pathlib.Path` is a file of
        them. Or how they are chosen, by a method of `scalemani.select_landmarks`: "random", "spread", "kmeans",
        "kmeans++", "kmeans++ seeding", "minmax", "dpp", "dpp-exact", "gp-active" or "gp". Those that look at a sample
        of the points look at `landmark_sample`.
    landmark_neighbors, regularization : int or None, float or None
        Landmarks a point is a combination of, K_Z (None: 5, or L where there are fewer), and the share of the mean
        diagonal added to their Gram matrix (None: 1e-3 where K_Z is above the number of features, else 1e-10).
    affinity : {"entropic", "gaussian", "self-tuning", "ensemble", "precomputed"}
        Weights of the edges: of the `perplexity`, of one `sigma`, or of the distance to the `bandwidth_neighbor`-th
        neighbour as each point's sigma. "ensemble", of images: the shares of minimum spanning trees of jittered pixels.
        "precomputed": X is W, a matrix of affinities (N, N), of SciPy or dense, an AnnData with obsp["connectivities"],
        the affinities of a run, or the path of one of these. It is held in memory while it is read, and used as it is:
        numbers of the graph have no effect. Of one that is not symmetric the mean with its transpose is taken, with a
        warning; the diagonal is left out; new points cannot be placed.
    affinity_neighbors : int or None
        Nearest of the `n_neighbors` that have an affinity, K_W, so that one graph serves several. None: all.
    affinity_solver, affinity_order, affinity_tolerance : str, str, float
        Of entropic affinities, as in `scalemani.entropic_affinities`.
    target_weight : float in [0, 1), default 0.0
        How much the labels y that `fit` is given count: affinities between points of different classes are multiplied
        by 1 - target_weight. Points without a label (-1, NaN, empty) keep theirs, as new points do. 0: y is not used.
    metric : {"euclidean", "cosine", "correlation", "hellinger", "hamming", "precomputed"}
        How points are compared. Rows are taken at unit length (cosine), less their mean at unit length (correlation),
        as square roots of their frequencies (hellinger), or as bits (hamming: zeros and ones, dense or sparse), new
        points too; landmarks and `sigma` are in that geometry.
        "precomputed": X are neighbour lists: a SciPy matrix of distances (N, N) with as many entries in each row, a
        `KnnGraph`, an AnnData with obsp["distances"], indices and distances (N, k) in any order, or the distances
        (N, N) between all points, or the path of any of these; new points cannot be placed then.
    deduplicate : bool, float or None
        None or False: each row is a point. True: equal rows are one point, whose weight is their number, or the sum of
        their `sample_weight`. A number above zero: so are rows in one cell of a grid, which lie within that distance.
        Results have all rows.
    neighbors_method : {"auto", "exact", "pynndescent", "partition", "window"}
        How the graph is built. "window": X is an image (rows, columns) or (rows, columns, colours), or a video of such
        frames; the neighbours of a pixel are those in a window around it, affinity="gaussian" or "ensemble". A
        point is a pixel: its row, column, in a video its frame, and its grey or colours.
    neighbors_window, neighbors_frames : int, int
        Of "window": the side of the square in pixels, odd, and the frames before and after, of which it holds the same
        pixel.
    image_rows, image_columns : int or None, int or None
        Of "window", where X is a table of pixels (N, D), row by row and frame by frame, with features of its own.
    recall, max_rounds, sampled_queries : float, int, int
        The recall at which the graph is good enough, measured on so many points, and the most rounds to get there.
    n_probes, sketch_dimensions, cell_points, cell_sample : int or None, int, int, int
        Of the partition: cells a point visits (None: by the number of points), principal components in which candidates
        are looked for, mean number of points a cell, and points that both are made of.
    landmark_graph : {"euclidean", "bhattacharyya"}
        Neighbours of the landmarks' own graph, for the solvers "nystrom" and "le-z": the nearest, or those of the
        nearest Gaussians around them, which tells neighbouring sheets apart. Its numbers are `tuning`:
        {"landmark_graph.n_neighbors": 25, "landmark_graph.neighborhood": 150}.
    solver : {"refine", "lll", "lll+refine", "variational-nystrom", "exact", "nystrom", "le-z"}
        From coarse graphs, by passes over the graph to |S u - theta u| <= `residual`; by the landmarks alone; from
        both; by the landmarks alone, points made of those among their neighbours by affinity; by an eigensolver in
        memory. Without a graph of the points, by that of the landmarks: carried to all points by Nystrom's formula or
        by their weights over the landmarks.
    residual, max_passes : float or None, int
        None: 1e-3. At most so many passes are made.
    disconnected : {"connect", "largest", "error"}
        Connect pieces of the graph through their closest pairs, embed the largest alone (rows of the others are NaN in
        `embedding_`), or raise DisconnectedGraphError.
    tuning : mapping or None
        Tuned numbers of stages, by the names that they have on the command line: {"neighbors.nearby_cells": 512}.
    random_state : int, generator or None, default 0
        Seed of every random draw; None or a generator to draw one.
    use_rep : str or None
        Of X that is an AnnData, or the path of one: "X", or a name in `obsm`. None: "X_pca" where there is one, else
        "X". Other X are taken as they are.
    scheduler : None, "processes", "distributed", a Dask client or cluster, or the address of a scheduler
        Where tasks run; None for local threads, "distributed" for Dask's current client.
    store : path, URL or None
        Folder of the run, kept and resumed from. None for a temporary one. Workers on other machines need to see it.
    workers, memory : int or None, str or int or None
        Tasks at the same moment, and a budget such as "4GB".
    verbose : bool, default False
        Whether progress is shown on standard error: bars on a terminal, lines elsewhere.

    A value that was given and does not fit the points is an error; only what was left open follows them. One that has
    no effect beside the others, as `sigma` beside entropic affinities, is told of in the log.

    Attributes
    ----------
    embedding_ : (N, d) float64, eigenvectors of L v = lambda D v in input order, the constant one left out
    eigenvalues_ : (d,) ascending, in [0, 2]
    certificates_ : what each stage measured about how good its result is; of `embedding` the residual, the eigengap
        after the last column, and what these bound: the angle to the exact eigenvectors (radians) and the error of the
        eigenvalues
    run_ : the run in `store`, opened, with its `graph`, `affinities` and `landmarks`; there with `store` alone
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Vladymyrov and Carreira-Perpinan, Locally linear landmarks for large-scale manifold learning, ECML PKDD 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> points, _ = make_swiss_roll(300, random_state=0)
    >>> LaplacianEigenmaps(n_landmarks=100).fit_transform(points).shape
    (300, 2)
    """

    _method = "laplacian-eigenmaps"

    eigenvalues_: np.ndarray

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_landmarks: int | None = None,
        perplexity: float | None = None,
        n_neighbors: int | None = None,
        landmarks: Any = "random",
        landmark_neighbors: int | None = None,
        affinity: str = "entropic",
        sigma: float | None = None,
        metric: str = "euclidean",
        deduplicate: bool | float | None = None,
        neighbors_method: str = "auto",
        neighbors_window: int = 11,
        neighbors_frames: int = 1,
        image_rows: int | None = None,
        image_columns: int | None = None,
        recall: float = 0.95,
        landmark_graph: str = "euclidean",
        solver: str = "refine",
        residual: float | None = None,
        max_passes: int = 200,
        disconnected: str = "connect",
        bandwidth_neighbor: int = 7,
        affinity_neighbors: int | None = None,
        affinity_solver: str = "halley",
        affinity_order: str = "density",
        affinity_tolerance: float = 1e-10,
        target_weight: float = 0.0,
        n_probes: int | None = None,
        max_rounds: int = 6,
        sampled_queries: int = 1000,
        sketch_dimensions: int = 64,
        cell_points: int = 600,
        cell_sample: int = 50_000,
        landmark_sample: int = 100_000,
        regularization: float | None = None,
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

    def fit(self, X: Any, y: Any = None, **beside: Any) -> "LaplacianEigenmaps":
        """Embed points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path.

        `sample_weight` (N,), real numbers of at least one or a file of them, says how many equal points each stands
        for: the embedding is that of the set in which each is repeated. `perplexity` then counts copies, and
        `n_neighbors` distinct points. The labels y (N,), or a file of them, are used with `target_weight` alone.
        """
        with fit_run(self, X, y, given_weights(beside)) as finished:
            self.eigenvalues_ = finished.eigenvalues
        return self

    def fit_transform(self, X: Any, y: Any = None, **beside: Any) -> np.ndarray:
        """Embed points, which may have a `sample_weight`, and return their embedding (N, d)."""
        return self.fit(X, y, **beside).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates (n, d) float64 of new points (n, D), of any kind that `fit` takes.

        Each point is placed on its own, by its weights over its nearest landmarks, whatever else comes with it. A
        landmark gets the coordinates that it has in `embedding_`; other points of the training data get what the
        landmarks say of them, which is close to, but after refinement not equal to, their row of `embedding_`. Far from
        all landmarks the weights extrapolate linearly.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, and for points that are not finite numbers.
        """
        return transform_points(self, X)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
