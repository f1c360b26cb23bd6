"""The neighbour graph as a step of scikit-learn's pipelines and of scanpy."""

from dataclasses import field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from scalemani.errors import ConfigError, nearest_name
from scalemani.interfaces.estimators.fitting import (
    keep_columns,
    open_new_points,
    open_training_points,
    requested_of,
)
from scalemani.interfaces.estimators.parameters import RunEstimator, arguments
from scalemani.interfaces.estimators.running import executor_for, resources_of, store_or_temporary
from scalemani.io.sources import map_points
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.runs.new_points.queries import InputNeighbors, read_input_neighbors
from scalemani.runs.walk import run
from scalemani.stages.arrays.graph import StoredGraph

MODES = ("distance", "connectivity")


@arguments
class KNeighborsTransformer(RunEstimator):
    """The k-nearest-neighbour graph as a sparse matrix, built out of core with certified recall.

    It stands wherever scikit-learn's class of this name does: before estimators with metric="precomputed", and as
    `scanpy.pp.neighbors(transformer=...)`.

    Parameters
    ----------
    n_neighbors : int, default 5
        k, below N.
    mode : {"distance", "connectivity"}
        Distances to the k nearest points, and of each point to itself, k + 1 entries a row; or ones, k entries a row,
        the point itself among them.
    metric : {"euclidean", "cosine", "correlation", "hellinger", "hamming"}
        As in `knn_graph`.

    Attributes
    ----------
    recall_ : share of the true neighbours that are in the graph, measured on a sample against exact search
    n_samples_fit_ : N
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> KNeighborsTransformer(1).fit_transform(np.array([[0.0], [1.0], [3.0]])).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 2., 0.]])
    """

    n_neighbors: int = field(default=5, kw_only=False)
    mode: str = "distance"
    metric: str = "euclidean"

    def fit(self, X: Any, y: Any = None) -> "KNeighborsTransformer":
        """Build the graph of points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path."""
        check_mode(self.mode)
        source = open_training_points(X, self.use_rep)
        with store_or_temporary(self.store) as folder:
            with executor_for(**resources_of(self.get_params(deep=False))) as executor:
                finished = run(source, folder, "knn-graph", requested_of(self).params, executor)
            stored = StoredGraph(finished.group(StoredGraph.STAGE))
            self._graph = Neighbors(stored.indices.read(), stored.distances.read())
            self._search: InputNeighbors = read_input_neighbors(finished, in_memory=self.store is None)
            self.recall_: float = stored.group.certificate("recall", float)
        self.n_samples_fit_ = source.shape[0]
        keep_columns(self, X, source)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sparse.csr_matrix:
        """Return the graph (N, N) of points (N, D), the entries of a row by ascending distance, the point itself first.

        The distance of a point to itself is a stored zero.
        """
        self.fit(X)
        themselves = np.arange(self.n_samples_fit_)[:, np.newaxis]
        indices, distances = self._graph
        lists = Neighbors(
            np.concatenate([themselves, indices], axis=1),
            np.concatenate([np.zeros_like(distances, shape=themselves.shape), distances], axis=1),
        )
        return graph_matrix(lists, self._n_entries, self.mode, self.n_samples_fit_)

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return the nearest points of `fit` of new points (n, D), of any kind that `fit` takes: (n, N) as above.

        Points of `fit` find themselves first, as the points that they equal.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For another number of columns, values that are not finite, and rows that the metric cannot take.
        """
        check_is_fitted(self)
        check_mode(self.mode)
        new = map_points(self._search.metric, open_new_points(self, X))
        found = self._search.find(new, self._n_entries)
        return graph_matrix(found, self._n_entries, self.mode, self.n_samples_fit_)

    @property
    def _n_entries(self) -> int:
        return int(self._graph.indices.shape[1]) + (self.mode == "distance")

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_


def check_mode(mode: Any) -> None:
    """Refuse what is no mode of the matrix."""
    if mode not in MODES:
        raise ConfigError(f"unknown mode {mode!r}: {nearest_name(mode, MODES)}")


def graph_matrix(lists: Neighbors, n_entries: int, mode: str, n_columns: int) -> sparse.csr_matrix:
    """Return the first entries of lists of neighbours as a matrix (n, N), in the order of the lists."""
    columns, distances = (part[:, :n_entries] for part in lists)
    values = distances.ravel() if mode == "distance" else np.ones(columns.size)
    bounds = np.arange(0, columns.size + 1, n_entries)
    return sparse.csr_matrix((values, columns.ravel(), bounds), shape=(len(columns), n_columns))
