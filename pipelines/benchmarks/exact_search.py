"""Exact neighbours versus FAISS's flat index, NumPy blocks and a script of one's own: seconds in turn, and ratios.

    OPENBLAS_NUM_THREADS=1 python pipelines/benchmarks/exact_search.py POINTS.npz --repeats 5

POINTS is an .npz file with X, or an .npy file. All sides run in one process with --threads threads; every repeat runs
each once, and the least seconds count. "graph" are the neighbours of all points among themselves, ours and FAISS's from
the points in memory; of ours the sketches count too. "command" is `knn_graph(method="exact")`, with its stores and its
certificate. "queries" are the last --queries points among the others. --other FILE.py names a module whose
graph(points, k) joins. FAISS comes with `pip install faiss-cpu`.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import numpy as np
from measuring import show

import scalemani as sm
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among, paired_neighbors
from scalemani.kernels.neighbors.rerank import no_neighbors
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points

BLOCK = 1024
FEW_POINTS = 3000  # of a first call, which compiles


def sketched(points: np.ndarray) -> SketchedRows:
    """Return points with their sketches."""
    basis = fit_sketch(points[:: max(1, len(points) // 8192)])
    return SketchedRows(points, sketch_points(points, basis), basis.scale)


def flat(points: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Return the neighbours that FAISS finds by looking at all points."""
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points)
    return index.search(queries, k)[1]


def by_numpy(points: np.ndarray, k: int, pool: ThreadPoolExecutor) -> np.ndarray:
    """Return neighbours by products of blocks and a partition of each row."""
    squares = np.einsum("ij,ij->i", points, points)

    def nearest(rows: slice) -> np.ndarray:
        away = squares - 2.0 * (points[rows] @ points.T)
        return np.argpartition(away, k, axis=1)[:, : k + 1]

    return np.concatenate(list(pool.map(nearest, slices(len(points), BLOCK))))


def graphs(points: np.ndarray, k: int, pool: ThreadPoolExecutor, other: Path | None) -> dict[str, Callable[[], object]]:
    """Return the searches for a graph, by name."""
    single = points.astype(np.float32)
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: paired_neighbors(sketched(points), no_neighbors(len(points), k), pool.map),
        "ours, command": lambda: sm.knn_graph(points, k, method="exact"),
        "FAISS flat": lambda: flat(single, single, k + 1),
        "NumPy blocks": lambda: by_numpy(single, k, pool),
    }
    if other is not None:
        described = importlib.util.spec_from_file_location(other.stem, other)
        module = importlib.util.module_from_spec(described)
        described.loader.exec_module(module)
        sides[other.stem] = lambda: module.graph(single, k)
    return sides


def searches(points: np.ndarray, count: int, k: int, pool: ThreadPoolExecutor) -> dict[str, Callable[[], object]]:
    """Return the searches for the neighbours of the last points among the others, by name."""
    others, queries = sketched(points[:-count]), points[-count:].astype(np.float32)
    of_queries = sketched(points).part(slice(-count, None))
    single = others.points.astype(np.float32)

    def nearest(rows: slice) -> object:
        some = of_queries.part(rows)
        n_rows = len(some.sketches)
        none, limits = np.full(n_rows, -1), np.full(n_rows, np.inf)
        return nearest_among(some, none, others, 0, no_neighbors(n_rows, k), limits)

    return {
        "ours": lambda: list(pool.map(nearest, slices(count, BLOCK))),
        "FAISS flat": lambda: flat(single, queries, k),
    }


def least_seconds(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run every side once a repeat; return the least seconds of each."""
    least = dict.fromkeys(sides, np.inf)
    for _ in range(repeats):
        for name, search in sides.items():
            begun = time.perf_counter()
            search()
            least[name] = min(least[name], time.perf_counter() - begun)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path)
    parser.add_argument("--rows", type=int, help="the first points alone")
    parser.add_argument("--columns", type=int, help="the first features alone")
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--queries", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--other", type=Path)
    arguments = parser.parse_args()
    stored = np.load(arguments.points)
    points = stored["X"] if arguments.points.suffix == ".npz" else stored
    points = np.ascontiguousarray(points.reshape(len(points), -1)[: arguments.rows, : arguments.columns])
    if points.dtype == np.float16:
        points = points.astype(np.float32)
    k, rows = arguments.neighbors, []
    faiss.omp_set_num_threads(arguments.threads)
    with ThreadPoolExecutor(arguments.threads) as pool:
        least_seconds(graphs(points[:FEW_POINTS], k, pool, arguments.other), 1)
        for task, sides in (
            ("graph", graphs(points, k, pool, arguments.other)),
            ("queries", searches(points, arguments.queries, k, pool)),
        ):
            seconds = least_seconds(sides, arguments.repeats)
            rows += [
                {"task": task, "side": name, "seconds": least, "share of FAISS": least / seconds["FAISS flat"]}
                for name, least in seconds.items()
            ]
    show(rows)


if __name__ == "__main__":
    main()
