"""Neighbour graphs of pipnn, rinnd, usearch and pynndescent beside ours at equal true recall: seconds and peak memory.

    python pipelines/benchmarks/graph_peers.py WORK_FOLDER --points patches-200000 --pipnn PYTHON --rinnd PYTHON

POINTS is `patches-N` (hard points), `digits-N` (infinite digits), `components-N` (50 principal components of a million
digits, repeated with a tenth of each column's deviation as noise), `fingerprints-N` (made up: 2,048 bits of scaffolds
and substituents, by Jaccard, which pynndescent and usearch have) or the path of a .npy file. Every peer runs where an
interpreter of an environment with it is given, at settings of rising effort until its true recall reaches the highest
asked; what does not end within --patience seconds is stopped. Ours is asked for each recall. Whole commands read the
points from disk; a search has them in memory, and ours holds its cells and the order of the points. What a peer
compiles is compiled before, in the same process; ours finds its machine code in its cache. The last table has the
quickest setting of each side that reaches each recall.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from digits import components_file, million_digits
from judging import Judged, asked_for, judged, recall
from measuring import THREAD_VARIABLES, measured_within, scalemani, settings, show
from patches import patches_file

ASKED = (0.90, 0.95, 0.98)
SEARCH = ("partition", "work_points", "neighbors")
BITS, SCAFFOLDS, SUBSTITUENTS = 2048, 4000, 600
BITS_OF_SCAFFOLD, BITS_OF_SUBSTITUENT, MOST_SUBSTITUENTS = 24, 7, 6
FEW_POINTS = 2000  # of a first call of a peer, which compiles
COMPILING_POINTS = 30_000  # of our first command: enough that it looks for neighbours by cells
THREADS = 2

# "lists": of how many times the neighbours asked for, from which these are taken.
SETTINGS: dict[str, tuple[dict[str, float], ...]] = {
    "pipnn": ({"runs": 1}, {"runs": 2}, {"runs": 3}, {"runs": 4, "beam_L": 96}),
    "rinnd": (
        {"n_trees": 8},
        {"n_trees": 12, "max_candidates": 30},
        {"n_trees": 16, "max_candidates": 60, "lists": 1.5},
        {"n_trees": 16, "max_candidates": 60, "lists": 2.5},
    ),
    "pynndescent": (
        {"max_candidates": 20, "n_iters": 3},
        {"max_candidates": 30, "n_iters": 5},
        {},
        {"max_candidates": 90},
        {"max_candidates": 60, "lists": 3},
        {"max_candidates": 60, "lists": 6},
    ),
    "usearch": ({"expansion_add": 64}, {"expansion_add": 128}, {"expansion_add": 256}),
}

PEER = """
import json, sys, time
import numpy as np
name, path, k, queries, target, setting, threads, few = sys.argv[1:9]
points, k, n_jobs = np.load(path), int(k), int(threads)
setting = json.loads(setting)
setting["n_neighbors"] = int(setting.pop("lists", 1) * (k + 1))
def graph(points):
    if name == "pipnn":
        import pipnn
        return pipnn.self_knn_graph(points, n_jobs=n_jobs, **{**setting, "n_neighbors": k})[0]
    if name == "rinnd":
        from rinnd import RINND
        return RINND(points, n_jobs=n_jobs, random_state=0, **setting).neighbor_graph[0]
    if name == "usearch":
        from usearch.index import Index
        bits = points.dtype == np.uint8
        kind = {"metric": "tanimoto", "dtype": "b1"} if bits else {"metric": "l2sq", "dtype": "f32"}
        index = Index(ndim=points.shape[1] * (8 if bits else 1), expansion_search=setting["expansion_add"], **kind,
                      expansion_add=setting["expansion_add"])
        index.add(np.arange(len(points)), points, threads=n_jobs)
        return index.search(points, k + 1, threads=n_jobs).keys.astype(np.int64)
    from pynndescent import NNDescent
    if points.dtype == np.uint8:
        setting["metric"] = "bit_jaccard"
    return NNDescent(points, n_jobs=n_jobs, random_state=0, **setting).neighbor_graph[0]
points = np.packbits(points, axis=1) if points.dtype == bool else points.astype(np.float32, copy=False)
begun = time.perf_counter()
graph(points[:int(few)])
compiled = time.perf_counter() - begun
begun = time.perf_counter()
found = np.asarray(graph(points))
seconds = time.perf_counter() - begun
lists = [[j for j in found[q] if j != q][:k] for q in np.load(queries)]
np.save(target, np.array([row + [-1] * (k - len(row)) for row in lists]))  # some lists of pipnn are shorter
print(json.dumps({"search": seconds, "compiled": compiled}))
"""


def fingerprints_file(folder: Path, n_points: int) -> Path:
    """Return the file of fingerprints (N, 2048) bool, some fifty bits of each set, made where it is not there yet."""
    path = folder / f"fingerprints-{n_points}.npy"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    popular = 1 / np.arange(10, 10 + BITS)  # few bits are set in many rows, many in few
    shares = rng.permutation(popular / popular.sum())
    scaffolds = rng.choice(BITS, (SCAFFOLDS, BITS_OF_SCAFFOLD), p=shares)
    substituents = rng.choice(BITS, (SUBSTITUENTS, BITS_OF_SUBSTITUENT), p=shares)
    own = scaffolds[rng.integers(SCAFFOLDS, size=n_points)]
    added = substituents[rng.integers(SUBSTITUENTS, size=(n_points, MOST_SUBSTITUENTS))]
    there = rng.integers(1, MOST_SUBSTITUENTS + 1, n_points)[:, None] > np.arange(MOST_SUBSTITUENTS)
    added = np.where(there[:, :, None], added, added[:, :1]).reshape(n_points, -1)
    points = np.zeros((n_points, BITS), bool)
    np.put_along_axis(points, np.hstack([own, added]), True, axis=1)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(path, points)
    return path


def points_of(name: str, folder: Path) -> Path:
    """Return the file of a set of points, made where it is not there yet."""
    kind, _, count = name.partition("-")
    files = {"patches": patches_file, "digits": million_digits, "components": components_file}
    files["fingerprints"] = fingerprints_file
    return files[kind](folder, int(count)) if kind in files else Path(name)


def peer(
    name: str, python: Path, setting: dict[str, float], path: Path, graph: Judged, patience: int
) -> dict[str, Any]:
    """Return what a peer took at a setting, and its true recall if it got to its end."""
    queries, found = path.with_suffix(".queries.npy"), path.with_suffix(f".{name}.npy")
    np.save(queries, graph.queries)
    asked = [str(graph.k), str(queries), str(found), json.dumps(setting), str(THREADS), str(FEW_POINTS)]
    words = [str(python), "-c", PEER, name, str(path), *asked]
    row: dict[str, Any] = {"method": name, "setting": json.dumps(setting)}
    run = measured_within(patience, words, dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
    if isinstance(run, str):
        return {**row, "seconds": run}
    said = json.loads(run.output.splitlines()[-1])
    taken = {"seconds": run.seconds - said["compiled"], "search": said["search"], "peak GB": run.peak_bytes / 1e9}
    return {**row, **taken, "recall": recall(graph, np.load(found))}


def ours(asked: float, path: Path, graph: Judged, options: list[str]) -> dict[str, Any]:
    """Return what our command took to reach a recall, and its true recall."""
    command, stages, lists = asked_for(asked, str(path), graph, path.with_suffix(".graph"), options)
    return {
        "method": "scalemani",
        "setting": f"recall={asked:g}",
        "seconds": command.seconds,
        "search": sum(stages[name]["seconds"] for name in SEARCH if name in stages),
        "peak GB": command.peak_bytes / 1e9,
        "recall": recall(graph, lists[graph.queries]),
        "certificate": stages["neighbors"]["certificates"]["recall"],
    }


def compile_ours(path: Path, k: int, options: list[str]) -> None:
    """Run our command on the first points, so that its machine code is in its cache."""
    few, run = path.with_suffix(".few.npy"), path.with_suffix(".few")
    np.save(few, np.load(path, mmap_mode="r")[:COMPILING_POINTS])
    shutil.rmtree(run, ignore_errors=True)
    scalemani("embed", str(few), str(run), "--method", "knn-graph", *settings(neighbors__n_neighbors=k), *options)


def quickest(rows: list[dict[str, Any]], recalls: Sequence[float]) -> list[dict[str, Any]]:
    """Return for every recall asked the quickest row of each method that reaches it, and how it compares with ours."""
    best = []
    for asked in recalls:
        reaching = [row for row in rows if row.get("recall", 0.0) >= asked or row["setting"] == f"recall={asked:g}"]
        chosen = [
            min((row for row in reaching if row["method"] == method), key=lambda row: float(row["seconds"]))
            for method in dict.fromkeys(row["method"] for row in reaching)
        ]
        own = next(row for row in chosen if row["method"] == "scalemani")
        for row in chosen:
            ratios = {f"{name}, ours / its": own[name] / row[name] for name in ("seconds", "search", "peak GB")}
            best.append({"asked": asked, **row, **({} if row is own else ratios)})
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", default="patches-200000")
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--asked", type=float, nargs="+", default=ASKED, help="recalls")
    parser.add_argument("--patience", type=int, default=600, help="seconds after which a peer is stopped")
    parser.add_argument(
        "--options", nargs="*", default=[], help="of our command, such as --set neighbors.method=leaves"
    )
    for name in SETTINGS:
        parser.add_argument(f"--{name}", type=Path, help=f"an interpreter of an environment with {name}")
    arguments = parser.parse_args()
    path = points_of(arguments.points, arguments.folder)
    graph = judged(arguments.folder, path.stem, np.load(path, mmap_mode="r"), arguments.neighbors)
    options = ["--memory", arguments.memory, *arguments.options]
    options += ["--metric", "jaccard"] if graph.points.dtype == np.bool_ else []
    compile_ours(path, arguments.neighbors, options)
    rows = [ours(asked, path, graph, options) for asked in arguments.asked]
    for name, efforts in SETTINGS.items():
        python = getattr(arguments, name)
        for setting in efforts if python else ():
            rows.append(peer(name, python, setting, path, graph, arguments.patience))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            # One that was stopped has no recall: more effort would take it longer still.
            if rows[-1].get("recall", 1.0) >= max(arguments.asked):
                break
    show(rows)
    show(quickest(rows, arguments.asked))


if __name__ == "__main__":
    main()
