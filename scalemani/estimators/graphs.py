"""The neighbour graph as a product in itself."""

import contextlib
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from dask.array import Array as DaskArray

from scalemani.estimators.running import executor_for, seed_of, store_or_temporary
from scalemani.params import Parameters
from scalemani.records.graph import StoredGraph
from scalemani.runs.walk import run
from scalemani.sources import PointsSource, open_points


@dataclass(frozen=True)
class KnnGraph:
    """A k-nearest-neighbour graph, rows and neighbours numbered as the points came.

    indices : (N, k) int64, neighbours of each point, itself excluded
    distances : (N, k) float32 (float64 for float64 points), Euclidean, ascending
    recall : share of the true neighbours that are in the graph, measured on a random sample against exact search
    Arrays are NumPy for points in memory and zarr for points on disk or in Dask.
    """

    indices: np.ndarray | zarr.Array
    distances: np.ndarray | zarr.Array
    recall: float


def knn_graph(
    points: Any,
    n_neighbors: int = 90,
    method: str = "auto",
    recall: float = 0.95,
    random_state: Any = 0,
    *,
    scheduler: Any = None,
    store: str | Path | None = None,
    workers: int | None = None,
    memory: str | int | None = None,
) -> KnnGraph:
    """Return the k-nearest-neighbour graph of points, built out of core with certified recall.

    Parameters
    ----------
    points : array (N, D) of NumPy, Dask or zarr, or a path; see `scalemani.sources.open_points`
    n_neighbors : k, below N
    method : "auto", "exact", "pynndescent" (in memory) or "partition" (out of core)
    recall : the measured share of true neighbours at which refinement stops
    random_state : seed of every random draw; the same seed gives the same graph on any machine layout
    scheduler : None for local threads, a Dask client, or the address of one
    store : folder of the run, kept and resumed from; None for a temporary one, which lives as long as one of the arrays
    workers, memory : tasks at the same moment, and a budget such as "4GB"

    Raises
    ------
    ConfigError, DataError, MemoryBudgetError
        Before any work, saying what came, what is allowed and what to do.
    """
    values = {
        "seed": seed_of(random_state),
        "neighbors": {"n_neighbors": n_neighbors, "method": method, "recall": recall},
    }
    params, executor = Parameters().with_values(values), executor_for(scheduler, workers, memory)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store_or_temporary(store))
        finished = run(open_points(points), folder, "knn-graph", params, executor)
        stored = StoredGraph(finished.group(StoredGraph.STAGE))
        measured = stored.group.certificate("recall", float)
        if not isinstance(points, zarr.Array | DaskArray | PointsSource | str | Path):
            return KnnGraph(stored.indices.read(), stored.distances.read(), measured)
        graph = KnnGraph(stored.indices.zarr(), stored.distances.zarr(), measured)
        weakref.finalize(stored.indices.zarr().store, stack.pop_all().close)
    return graph
