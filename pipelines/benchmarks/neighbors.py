"""The neighbour graph of the million digits beside pynndescent: seconds, peak memory, certified and true recall.

python pipelines/benchmarks/neighbors.py WORK_FOLDER --neighbors 15 --peer-python PYTHON_WITH_PYNNDESCENT

pynndescent runs for every --peer-setting, its defaults ({}) where none is given; --only-peer and --no-peer leave out a
side, so that each can be timed by itself. Both sides are timed cold, compiling what they run, and warm: ours with an
empty cache of kernels and then with what that run left, pynndescent in the first and the second call of one process
(it keeps nothing between processes). "search" is the same work on both sides, from points at hand to the graph: ours
holds the cells and the order of the points, pynndescent's the forest of trees.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits
from judging import Judged, judged, recall
from measuring import THREAD_VARIABLES, measured, records, show

from scalemani.runs.opened import open_run
from scalemani.stages.arrays.graph import StoredGraph

SEARCH = ("partition", "work_points", "neighbors")

PEER = """
import json, sys, time
import numpy as np
from pynndescent import NNDescent
points = np.load(sys.argv[1]).astype(np.float32)
k, queries = int(sys.argv[2]), np.load(sys.argv[3])
seconds = []
for call in range(2):
    begun = time.perf_counter()
    index = NNDescent(points, n_neighbors=k + 1, random_state=0, **json.loads(sys.argv[5]))
    indices, distances = index.neighbor_graph
    seconds.append(time.perf_counter() - begun)
found = [[j for j in indices[q] if j != q][:k] for q in queries]
np.save(sys.argv[4], np.array(found))
print(json.dumps({"search": seconds}))
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
    graph = judged(arguments.folder, path.stem, points, k)
    rows = [] if arguments.only_peer else ours(arguments.folder, path, graph, arguments.memory)
    our_rows = {row["kernels"]: row for row in rows}
    peer_settings = [] if arguments.no_peer else arguments.peer_setting or ["{}"]
    for setting in peer_settings:
        for row in peer(arguments.folder, path, graph, arguments.peer_python, setting):
            rows.append(row)
            if our_rows:
                own = our_rows[row["kernels"]]
                ratios = {name: own[name] / row[name] for name in ("seconds", "peak GB", "search")}
                rows.append({"method": "ratio", "kernels": row["kernels"], **ratios})
    show(rows)


def ours(folder: Path, path: Path, graph: Judged, memory: str) -> list[dict[str, Any]]:
    """Return rows of the table for the command line of this environment, from the file to the graph on disk."""
    with tempfile.TemporaryDirectory() as cache:
        return [our_row(folder, path, graph, memory, kernels, cache) for kernels in ("cold", "warm")]


def our_row(folder: Path, path: Path, graph: Judged, memory: str, kernels: str, cache: str) -> dict[str, Any]:
    """Return a row for one run, whose kernels are compiled in it or lie in the cache."""
    run = folder / f"graph-{graph.k}"
    shutil.rmtree(run, ignore_errors=True)
    setting = [f"--set=neighbors.n_neighbors={graph.k}", "--set=affinities.perplexity=2", "--memory", memory]
    words = [sys.executable, "-m", "scalemani", "embed", str(path), str(run), "--method", "knn-graph", *setting]
    command = measured(words, {"SCALEMANI_CACHE": cache})
    opened, stages = open_run(run), records(run)["stages"]
    return {
        "method": "scalemani",
        "kernels": kernels,
        "setting": memory,
        "k": graph.k,
        "seconds": command.seconds,
        "peak GB": command.peak_bytes / 1e9,
        "recall": recall(graph, StoredGraph(opened.group("graph")).indices.zarr().oindex[graph.queries]),
        "certificate": opened.certificates["neighbors"]["recall"],
        "search": sum(stages[name]["seconds"] for name in SEARCH),
    }


def peer(folder: Path, path: Path, graph: Judged, python: Path, setting: str) -> list[dict[str, Any]]:
    """Return rows of the table for pynndescent on two threads, from the file to the graph in memory."""
    queries, found = folder / "queries.npy", folder / "found.npy"
    np.save(queries, graph.queries)
    command = [str(python), "-c", PEER, str(path), str(graph.k), str(queries), str(found), setting]
    run = measured(command, dict.fromkeys(THREAD_VARIABLES, "2"))
    searches = json.loads(run.output.splitlines()[-1])["search"]
    common = {"method": "pynndescent", "setting": setting, "k": graph.k, "recall": recall(graph, np.load(found))}
    peak = run.peak_bytes / 1e9
    return [
        {
            **common,
            "kernels": kernels,
            "seconds": run.seconds - sum(searches) + search,
            "peak GB": peak,
            "search": search,
        }
        for kernels, search in zip(("cold", "warm"), searches, strict=True)
    ]


if __name__ == "__main__":
    main()
