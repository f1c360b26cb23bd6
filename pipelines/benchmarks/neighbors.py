"""The neighbour graph of the million digits beside pynndescent: seconds, peak memory, certified and true recall.

python pipelines/benchmarks/neighbors.py WORK_FOLDER --neighbors 15 --peer-python PYTHON_WITH_PYNNDESCENT

pynndescent runs once for every --peer-setting, its defaults ({}) where none is given; --only-peer and --no-peer leave
out a side, so that each can be timed by itself.
"""

import argparse
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits
from measuring import THREAD_VARIABLES, measured, records, scalemani, show

from scalemani.records.graph import StoredGraph
from scalemani.runs.opened import open_run

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
index = NNDescent(points, n_neighbors=k + 1, random_state=0, **json.loads(sys.argv[5]))
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
    parser.add_argument("--peer-setting", action="append", help="arguments of NNDescent as JSON; may be repeated")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--only-peer", action="store_true")
    sides.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    k, path = arguments.neighbors, million_digits(arguments.folder, arguments.points)
    points = np.load(path, mmap_mode="r")
    queries = np.sort(np.random.default_rng(QUERY_SEED).choice(len(points), N_QUERIES, replace=False))
    graph = Judged(points, queries, true_squares_at_hand(arguments.folder, points, queries, k), k)

    rows = [] if arguments.only_peer else [ours(arguments.folder, path, graph, arguments.memory)]
    peer_settings = [] if arguments.no_peer else arguments.peer_setting or ["{}"]
    for setting in peer_settings:
        rows.append(peer(arguments.folder, path, graph, arguments.peer_python, setting))
        if not arguments.only_peer:
            ratios = {name: rows[0][name] / rows[-1][name] for name in ("seconds", "peak GB", "build")}
            rows.append({"method": "ratio", **ratios})
    show(rows)


@dataclass(frozen=True)
class Judged:
    """Points, rows among them whose neighbours are judged, and the squares of their true k-th distances."""

    points: np.ndarray
    queries: np.ndarray
    truth: np.ndarray
    k: int


def ours(folder: Path, path: Path, graph: Judged, memory: str) -> dict[str, Any]:
    """Return a row of the table for the command line of this environment, from the file to the graph on disk."""
    run = folder / f"graph-{graph.k}"
    shutil.rmtree(run, ignore_errors=True)
    setting = [f"--set=neighbors.n_neighbors={graph.k}", "--set=affinities.perplexity=2", "--memory", memory]
    command = scalemani("embed", str(path), str(run), "--method", "knn-graph", *setting)
    opened = open_run(run)
    return {
        "method": "scalemani",
        "setting": memory,
        "k": graph.k,
        "seconds": command.seconds,
        "peak GB": command.peak_bytes / 1e9,
        "recall": recall(graph, StoredGraph(opened.group("graph")).indices.zarr().oindex[graph.queries]),
        "certificate": opened.certificates["neighbors"]["recall"],
        "build": records(run)["stages"]["neighbors"]["seconds"],
    }


def peer(folder: Path, path: Path, graph: Judged, python: Path, setting: str) -> dict[str, Any]:
    """Return a row of the table for pynndescent on two threads, from the file to the graph in memory."""
    queries, found = folder / "queries.npy", folder / "found.npy"
    np.save(queries, graph.queries)
    command = [str(python), "-c", PEER, str(path), str(graph.k), str(queries), str(found), setting]
    run = measured(command, dict.fromkeys(THREAD_VARIABLES, "2"))
    return {
        "method": "pynndescent",
        "setting": setting,
        "k": graph.k,
        "seconds": run.seconds,
        "peak GB": run.peak_bytes / 1e9,
        "recall": recall(graph, np.load(found)),
        "build": json.loads(run.output.splitlines()[-1])["build"],
    }


def true_squares_at_hand(folder: Path, points: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Return what `true_squares` does, kept beside the points: (Q,) int64."""
    path = folder / f"true-squares-{len(points)}-{k}.npy"
    if not path.exists():
        np.save(path, true_squares(points, queries, k))
    return np.load(path)


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


def recall(graph: Judged, found: np.ndarray) -> float:
    """Return the share of found neighbours that are no farther than the true k-th."""
    squares = squared(graph.points, graph.queries, np.asarray(found, dtype=np.int64))
    return float(np.mean(squares <= graph.truth[:, None]))


if __name__ == "__main__":
    main()
