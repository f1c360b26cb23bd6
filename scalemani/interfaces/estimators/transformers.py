"""The neighbour graph: a function, and a transformer for pipelines that embed later."""

import contextlib
import weakref
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from scalemani.config.choices import NeighborSearch, PointMetric, Seed
from scalemani.config.metrics import lists_metrics
from scalemani.config.params import Parameters
from scalemani.errors import check_known
from scalemani.interfaces.estimators.fitting import (
    keep_columns,
    open_new_points,
    open_training_points,
    requested_of,
)
from scalemani.interfaces.estimators.parameters import (
    RunEstimator,
    arguments,
    defaults_of,
    settings_of,
)
from scalemani.interfaces.estimators.running import finished_run, resources_of
from scalemani.interfaces.wording import PARAMETERS, names_arguments
from scalemani.io.sources import (
    is_in_memory,
    map_points,
    open_points,
    take_representation,
)
from scalemani.io.sources.side_data import LEFT_OUT
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.runs.input_order import Graph, row_array
from scalemani.runs.new_points.neighbors import InputNeighbors, KnnGraph, read_input_neighbors
from scalemani.runs.opened import Run
from scalemani.stages.arrays.graph import StoredGraph

OF_SEARCH = {"method": "neighbors.method", "recall": "neighbors.recall", "max_rounds": "neighbors.max_rounds"}


@names_arguments(**OF_SEARCH)
@lists_metrics
def knn_graph(
    points: Any,
    n_neighbors: int | None = None,
    method: NeighborSearch = "auto",
    recall: float = 0.95,
    random_state: Seed = 0,
    *,
    metric: PointMetric = "euclidean",
    max_rounds: int = 6,
    settings: Mapping[str, Any] | None = None,
    use_rep: str | None = None,
    scheduler: Any = None,
    store: str | Path | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> KnnGraph:
    """Return the k-nearest-neighbour graph of points, built out of core with certified recall.

    Parameters
    ----------
    points : array (N, D) of NumPy, Dask or zarr, an AnnData, or a path
        See `scalemani.io.sources.open_points`.
    n_neighbors : int or None
        k, below N. None: 90, or all other points if fewer.
    method : {"auto", "exact", "pynndescent", "partition", "leaves"}
        Exact for small data; pynndescent in memory; partition out of core; leaves out of core for dense points without
        leading axes, such as vectors of language and image models. auto: exact up to 20,000 points, then partition.
    recall : float, default 0.95
        The measured share of true neighbours at which refinement stops.
    random_state : int, generator or None, default 0
        Seed of every random draw; the same seed gives the same graph on any machine layout.
    metric : METRICS
        What distances are. METRIC_TEXTS.
        float64 rows are compared in float64, near duplicates too, all others as rows of float32. COMPARED_METRICS,
        "minkowski:P" with a power P and functions of two rows (D,) float64 that numba compiles, or their names as
        "module:function" or "path.py::function", take exact search, leaves or pynndescent, of dense rows.
    max_rounds : int, default 6
        Rounds among neighbours of neighbours, at most.
    settings : mapping or None
        Any other parameter by the name that `--set` has for it: {"neighbors.n_probes": 16}.
    use_rep : str or None
        Of an AnnData: "X", or a name in `obsm`. None: "X_pca" where there is one, else "X".
    scheduler : None, "processes", "distributed", a Dask client or cluster, or the address of a scheduler
        Where tasks run; None for local threads, "distributed" for Dask's current client.
    store : path, URL or None
        Folder of the run, which is resumed. None for a temporary one, which lives as long as one of the arrays.
    workers, memory : int or None, str or int or None
        Tasks at the same moment, and a budget such as "4GB".
    verbose : bool, default False
        Whether progress is shown on standard error.

    Raises
    ------
    ConfigError, DataError, MemoryBudgetError
        Before any work, saying what came, what is allowed and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> graph = knn_graph(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> graph.indices.ravel(), graph.distances.ravel(), graph.recall
    (array([1, 0, 1]), array([1., 1., 2.]), 1.0)
    """
    params = Parameters().with_values(settings_of(dict(locals()), defaults_of(knn_graph), PARAMETERS | OF_SEARCH))
    with contextlib.ExitStack() as stack:
        resources = {"scheduler": scheduler, "workers": workers, "memory": memory, "verbose": verbose}
        source = open_points(points, params.leaves_out_gaps, use_rep)
        finished = stack.enter_context(finished_run(source, store, "knn-graph", params, **resources))
        stored = finished.stored(StoredGraph)
        measured, run = stored.group.certificate("recall", float), None if store is None else finished
        lists = graph_by_input_rows(finished, stored)
        if is_in_memory(take_representation(points, use_rep, params.leaves_out_gaps)):
            return KnnGraph(lists.indices[...], lists.distances[...], measured, run)
        weakref.finalize(stored.indices.zarr().store, stack.pop_all().close)
    return KnnGraph(lists.indices, lists.distances, measured, finished)


def graph_by_input_rows(run: Run, stored: StoredGraph) -> Graph:
    """Return the lists of a graph by input rows, read on access; -1 and NaN for rows that were left out."""
    where = f"the neighbour graph in {run.store.root}"
    indices = run.rows.by_input_rows(row_array(stored.indices), LEFT_OUT, where, numbered=True)
    return Graph(indices, run.rows.by_input_rows(row_array(stored.distances), np.nan, where))


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
    metric : METRICS
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
    mode: Literal["distance", "connectivity"] = "distance"
    metric: PointMetric = "euclidean"

    @names_arguments()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of points (N, D): an array of NumPy, SciPy, Dask or zarr, a data frame, or a path."""
        check_known(self.mode, MODES, f"unknown mode {self.mode!r}")
        requested = requested_of(self)
        source = open_training_points(X, self.use_rep, requested.gaps)
        params = requested.params
        with finished_run(source, self.store, "knn-graph", params, **resources_of(self)) as finished:
            stored = finished.stored(StoredGraph)
            lists = graph_by_input_rows(finished, stored)
            self._graph = Neighbors(lists.indices[...], lists.distances[...])
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
        indices = np.insert(self._graph.indices, 0, np.arange(self.n_samples_fit_), axis=1)
        lists = Neighbors(indices, np.insert(self._graph.distances, 0, 0, axis=1))
        return graph_matrix(lists, self._n_entries, self.mode, self.n_samples_fit_)

    @names_arguments()
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
        check_known(self.mode, MODES, f"unknown mode {self.mode!r}")
        new = map_points(self._search.metric, open_new_points(self, X))
        neighbors = self._search.find(new, self._n_entries)
        return graph_matrix(neighbors, self._n_entries, self.mode, self.n_samples_fit_)

    @property
    def _n_entries(self) -> int:
        return int(self._graph.indices.shape[1]) + (self.mode == "distance")

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_


def graph_matrix(lists: Neighbors, n_entries: int, mode: str, n_columns: int) -> sparse.csr_matrix:
    """Return the first entries of lists of neighbours as a matrix (n, N), in the order of the lists.

    Rows that were left out have no entries.
    """
    there = lists.indices[:, -1] != LEFT_OUT
    columns, distances = (part[there, :n_entries] for part in lists)
    values = distances.ravel() if mode == "distance" else np.ones(columns.size)
    bounds = np.concatenate([[0], np.cumsum(n_entries * there)])
    return sparse.csr_matrix((values, columns.ravel(), bounds), shape=(len(there), n_columns))
