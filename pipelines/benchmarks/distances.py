"""Graphs in distances that no Euclidean one stands for, out of core: certified and true recall, seconds, peak memory.

    python pipelines/benchmarks/distances.py WORK_FOLDER --points 200000 --memory 1GB

Rows of 64 amounts about 2,000 centres, by six metrics and a function of the user's, the sum of differences with large
ones at their root. Ours is the whole command `embed --method knn-graph`, pynndescent its search alone, in memory; both
have their machine code before, from a first call on few points, and run on --workers threads. The judge is SciPy's
`cdist` (NumPy for the function) from 500 rows that are drawn after the searches, to all rows; listed rows count once.
Then t-SNE and clusters by Canberra's distance run from the command line, and t-SNE by an estimator with the function.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Measured, measured, scalemani, show
from scipy.spatial.distance import cdist

import scalemani as sm

N_NEIGHBORS, N_COLUMNS, N_CENTERS, N_JUDGED, FEW = 15, 64, 2000, 500, 3000
SCIPY = {"manhattan": "cityblock", "wasserstein": "cityblock", "minkowski:3": "minkowski"}
METRICS = ("manhattan", "chebyshev", "canberra", "braycurtis", "wasserstein", "minkowski:3")
FAR = """
import numba
import numpy as np

@numba.njit
def far(one, other):
    total = 0.0
    for d in range(one.size):
        away = abs(one[d] - other[d])
        total += away if away < 1.0 else np.sqrt(away)
    return total
"""
PEER = """
import json, sys, time
import numpy as np
from pynndescent import NNDescent
path, out, metric, power, k, few, threads = sys.argv[1:8]
points = np.load(path)
if metric == "far":
    from mine import far as metric
arguments = {"metric_kwds": {"p": float(power)}} if float(power) else {}
NNDescent(points[: int(few)], metric, n_neighbors=int(k) + 1, n_jobs=int(threads), **arguments)
begun, used = time.time(), time.process_time()
index = NNDescent(points, metric, n_neighbors=int(k) + 1, n_jobs=int(threads), low_memory=True, **arguments)
np.save(out, index.neighbor_graph[0])
print(json.dumps({"seconds": time.time() - begun, "processor": time.process_time() - used}))
"""


def amounts(n_points: int) -> np.ndarray:
    """Return rows (N, 64) float32 of amounts about centres."""
    draws = np.random.default_rng(48)
    centers = draws.gamma(1.0, size=(N_CENTERS, N_COLUMNS)) + 0.01
    return (centers[draws.integers(0, N_CENTERS, n_points)] * draws.gamma(4.0, 0.25, (n_points, N_COLUMNS))).astype(
        "f4"
    )


def away_from(metric: str, queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the distances (q, N) float64 of a metric, by SciPy."""
    if metric == "far":  # anew, in NumPy
        apart = (np.abs(points - query) for query in queries)
        return np.array([np.where(one < 1.0, one, np.sqrt(one)).sum(axis=1) for one in apart])
    if metric == "wasserstein":
        queries, points = (np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1) for rows in (queries, points))
    _, _, power = metric.partition(":")
    return cdist(queries, points, SCIPY.get(metric, metric), **({"p": float(power)} if power else {}))


def true_recall(metric: str, points: np.ndarray, lists: np.ndarray) -> float:
    """Return the share of distinct listed rows that are no farther than the true k-th, of rows drawn by a new seed."""
    queries = np.random.default_rng().choice(len(points), N_JUDGED, replace=False)
    wide, shares = points.astype(float), []
    for query in queries:
        away = away_from(metric, wide[query : query + 1], wide)[0]
        away[query] = np.inf
        reach = np.partition(away, N_NEIGHBORS - 1)[N_NEIGHBORS - 1] * (1 + 1e-6)
        listed = {row for row in lists[query].tolist() if row >= 0 and row != query}
        shares.append(sum(away[row] <= reach for row in listed) / N_NEIGHBORS)
    return float(np.mean(shares))


def ours(folder: Path, file: Path, metric: str, options: list[str]) -> tuple[dict[str, Any], np.ndarray]:
    """Return what the whole command took, its certificate, and the lists."""
    run, named = folder / f"run-{metric.replace(':', '-')}", f"{folder / 'mine.py'}::far" if metric == "far" else metric
    shutil.rmtree(run, ignore_errors=True)
    total = scalemani(
        *("embed", str(file), str(run), "--method", "knn-graph", "--metric", named, "--quiet"),
        *(f"--set=neighbors.n_neighbors={N_NEIGHBORS}", *options),
    )
    opened = sm.open_run(run)
    certificate = opened.certificates["neighbors"]
    found = {"how": certificate["method"], "certified": certificate["recall"], **taken(total)}
    return found, opened.graph.indices[...]


def taken(total: Measured) -> dict[str, float]:
    """Return seconds, processor seconds and peak memory of a command."""
    return {"seconds": total.seconds, "processor": total.processor_seconds, "peak GB": total.peak_bytes / 1e9}


def peer(folder: Path, file: Path, metric: str, threads: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return what pynndescent took from the file on, and its lists."""
    name, _, power = metric.partition(":")
    name = {"wasserstein": "wasserstein_1d"}.get(name, name)
    out = folder / "lists.npy"
    arguments = [str(file), str(out), name, power or "0", str(N_NEIGHBORS), str(FEW), str(threads)]
    total = measured(
        [sys.executable, "-c", PEER, *arguments], {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    )
    inner = json.loads(total.output.splitlines()[-1])
    return {"how": "pynndescent", **taken(total), **inner}, np.load(out)


def maps(folder: Path, file: Path, options: list[str]) -> list[dict[str, Any]]:
    """Return what t-SNE and clusters of the command line took, and t-SNE of an estimator by a function."""
    rows = []
    for method in ("t-sne", "spectral-clustering"):
        run = folder / f"run-{method}"
        shutil.rmtree(run, ignore_errors=True)
        total = scalemani("embed", str(file), str(run), "--method", method, "--metric", "canberra", "--quiet", *options)
        rows.append({"metric": "canberra", "how": method, **taken(total)})
    begun, used = time.perf_counter(), time.process_time()
    sm.TSNE(metric=f"{folder / 'mine.py'}::far").fit(np.load(file))
    used = time.process_time() - used
    return [*rows, {"metric": "far", "how": "sm.TSNE", "seconds": time.perf_counter() - begun, "processor": used}]


def main() -> None:
    """Measure both sides in turn, a metric at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--metrics", nargs="*", default=[*METRICS, "far"])
    parser.add_argument("--without-maps", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    points, rows = amounts(asked.points), []
    file, few = asked.folder / "points.npy", asked.folder / "few.npy"
    np.save(file, points)
    np.save(few, points[:FEW])
    (asked.folder / "mine.py").write_text(FAR)
    options = ["--memory", asked.memory, "--workers", str(asked.workers)]
    for metric in asked.metrics:
        ours(asked.folder, few, metric, [*options, "--set=neighbors.method=leaves"])  # compiles
        sides = ours(asked.folder, file, metric, options), peer(asked.folder, file, metric, asked.workers)
        rows += [{"metric": metric, "true": true_recall(metric, points, lists), **row} for row, lists in sides]
        show(rows[-2:])
    show([*rows, *([] if asked.without_maps else maps(asked.folder, file, options))])


if __name__ == "__main__":
    main()
