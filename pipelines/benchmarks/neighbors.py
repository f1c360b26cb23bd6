"""The neighbour graph of the million digits beside pynndescent: seconds, peak memory, certified and true recall.

python pipelines/benchmarks/neighbors.py WORK_FOLDER --neighbors 15 --peer-python PYTHON_WITH_PYNNDESCENT
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import numpy as np
from digits import million_digits
from measuring import THREAD_VARIABLES, measured, records, scalemani, show

from scalemani.run import open_run

N_QUERIES = 1000
QUERY_SEED = 20_261  # not the seed of the certificate: its sample must be another
ROWS_AT_ONCE = 20_000
SPARE = 30

PEER = """
import json, sys, time
import numpy as np
started = time.perf_counter()
from pynndescent import NNDescent
imported = time.perf_counter()
points = np.load(sys.argv[1]).astype(np.float32)
k, queries = int(sys.argv[2]), np.load(sys.argv[3])
begun = time.perf_counter()
index = NNDescent(points, n_neighbors=k + 1, random_state=0)
indices, distances = index.neighbor_graph
ended = time.perf_counter()
found = [[j for j in indices[q] if j != q][:k] for q in queries]
np.save(sys.argv[4], np.array(found))
print(json.dumps({"import": imported - started, "build": ended - begun}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--points", type=int, default=1_020_000)
    parser.add_argument("--peer-python", type=Path, default=Path(sys.executable))
    parser.add_argument("--memory", default="2GB")
    arguments = parser.parse_args()
    k, path = arguments.neighbors, million_digits(arguments.folder, arguments.points)
    points = np.load(path, mmap_mode="r")
    queries = np.sort(np.random.default_rng(QUERY_SEED).choice(len(points), N_QUERIES, replace=False))
    truth = true_squares(points, queries, k)

    run = arguments.folder / f"graph-{k}"
    shutil.rmtree(run, ignore_errors=True)
    setting = [f"--set=neighbors.n_neighbors={k}", "--set=affinities.perplexity=2", "--memory", arguments.memory]
    ours = scalemani("embed", str(path), str(run), "--method", "knn-graph", *setting)
    opened = open_run(run)
    found = opened.group("graph").array("indices").oindex[queries]
    certificate = opened.certificates["neighbors"]["recall"]
    stages = {name: record["seconds"] for name, record in records(run)["stages"].items()}
    rows = [
        {
            "method": "scalemani",
            "k": k,
            "seconds": ours.seconds,
            "peak GB": ours.peak_bytes / 1e9,
            "recall": recall(points, queries, found, truth),
            "certificate": certificate,
            "build": stages["neighbors"],
        }
    ]
    files = [arguments.folder / name for name in ("queries.npy", "found.npy")]
    np.save(files[0], queries)
    command = [str(arguments.peer_python), "-c", PEER, str(path), str(k), str(files[0]), str(files[1])]
    peer = measured(command, dict.fromkeys(THREAD_VARIABLES, "2"))
    rows.append(
        {
            "method": "pynndescent",
            "k": k,
            "seconds": peer.seconds,
            "peak GB": peer.peak_bytes / 1e9,
            "recall": recall(points, queries, np.load(files[1]), truth),
            "build": json.loads(peer.output.splitlines()[-1])["build"],
        }
    )
    ratios = {name: rows[0][name] / rows[1][name] for name in ("seconds", "peak GB", "build")}
    show([*rows, {"method": "ratio", **ratios}])


def true_squares(points: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Return the squared distance to the k-th nearest neighbour of each query, exact: (Q,) int64."""
    wanted = points[queries].astype(np.float32)
    candidates = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(points), ROWS_AT_ONCE):
        rows = points[start : start + ROWS_AT_ONCE].astype(np.float32)
        block = np.einsum("ij,ij->i", rows, rows) - 2 * (wanted @ rows.T)
        scores = np.hstack([scores, block])
        candidates = np.hstack([candidates, np.broadcast_to(np.arange(start, start + len(rows)), block.shape)])
        kept = np.argpartition(scores, k + SPARE, axis=1)[:, : k + SPARE + 1]
        scores, candidates = np.take_along_axis(scores, kept, 1), np.take_along_axis(candidates, kept, 1)
    squares = squared(points, queries, candidates)
    squares[candidates == queries[:, None]] = np.iinfo(np.int64).max
    return np.sort(squares, axis=1)[:, k - 1]


def squared(points: np.ndarray, queries: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return exact squared distances of each query to its neighbours: (Q, m) int64."""
    found = np.empty(neighbors.shape, dtype=np.int64)
    for i, query in enumerate(queries):
        difference = points[np.sort(neighbors[i])].astype(np.int64) - points[query].astype(np.int64)
        found[i, np.argsort(neighbors[i], kind="stable")] = np.einsum("ij,ij->i", difference, difference)
    return found


def recall(points: np.ndarray, queries: np.ndarray, found: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of found neighbours that are no farther than the true k-th."""
    return float(np.mean(squared(points, queries, np.asarray(found, dtype=np.int64)) <= truth[:, None]))


if __name__ == "__main__":
    main()
