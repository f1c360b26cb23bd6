"""Predicted versus measured processor seconds of the search for neighbours, by cells, exact and as `auto` chooses.

    python pipelines/benchmarks/predicted_seconds.py WORK_FOLDER [--sets digits patches ...] [--rows 25000 70000]
                                              [--k 15 90] [--recall 0.9 0.95 0.99] [--methods partition exact]

Sets: `digits` (uint8) and `digits-float32`, at most 70,000; `million-digits`; `patches`; `cells`, drawn like single
cells by 50 components; `surface`, as LiDAR: heights over a plane, noise added; `counts` around topics; `genes`, counts
of 30,000 genes by a negative binomial law with zeros added; `tfidf`, of 20 Newsgroups without its empty documents,
twice, with noise, so that it is more than what is always compared with all. Each set is a process of its own, which
first searches some rows, so that all is compiled. Measured are the seconds of all threads in the stage `neighbors`, its
certificate included; predicted is what `scalemani plan` says. --write FILE writes the points of the first set in place
of a search, .npz of sparse ones, for the command line and `before_after.py --file`.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from digits import million_digits, mnist_file
from measuring import THREAD_VARIABLES, measured, show
from patches import patches_file
from scanpy_clusters import cells_file
from sparse_points import counted_blocks, filled_tfidf_file

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.rows.compressed import Points
from scalemani.runs.survey import survey
from scalemani.stages import neighbors
from scalemani.stages.neighbors.choice import choose_search
from scalemani.stages.neighbors.counts import exact_seconds

FEW_ROWS = 3000
GENES, TYPES, DROPPED = 30_000, 20, 0.1
ROWS_AT_ONCE = 2000
SETS = ("digits", "digits-float32", "million-digits", "patches", "cells", "surface", "counts", "genes", "tfidf")


def genes(n_cells: int) -> sp.csr_matrix:
    """Return counts (n, 30,000) of genes, some 6 % of them above zero: types of cells, depths, dispersion, dropout."""
    draws = np.random.default_rng(0)
    usual = draws.lognormal(-1.0, 2.0, GENES)
    profiles = usual * np.exp(0.7 * draws.normal(size=(TYPES, GENES)) * (draws.random((TYPES, GENES)) < 0.1))
    profiles /= profiles.sum(axis=1, keepdims=True)
    parts = []
    for start in range(0, n_cells, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, n_cells - start)
        means = profiles[draws.integers(0, TYPES, count)] * draws.lognormal(8.3, 0.4, (count, 1))
        drawn = draws.poisson(means * draws.gamma(2.0, 0.5, means.shape)) * (draws.random(means.shape) > DROPPED)
        parts.append(sp.csr_matrix(drawn.astype(np.int32)))
    return sp.csr_matrix(sp.vstack(parts))


def surface(n_points: int) -> np.ndarray:
    """Return points (n, 3) float32 of a hilly ground."""
    draws = np.random.default_rng(0)
    plane = draws.uniform(0, 100, (n_points, 2))
    heights = 3 * np.sin(plane[:, 0] / 7) + 2 * np.cos(plane[:, 1] / 5) + 0.05 * draws.normal(size=n_points)
    return np.column_stack([plane, heights]).astype(np.float32)


def made(name: str, rows: int, folder: Path) -> Points:
    """Return so many points of a set."""
    if name in ("digits", "digits-float32"):
        digits = np.load(mnist_file())["X"]
        digits = digits[np.random.default_rng(5).permutation(len(digits))[:rows]]
        return digits.astype(np.float32) if name == "digits-float32" else digits
    if name == "million-digits":
        return np.load(million_digits(folder), mmap_mode="r")[:rows]
    if name in ("patches", "cells"):
        return np.load((patches_file if name == "patches" else cells_file)(folder, rows))
    if name == "counts":
        return sp.csr_matrix(sp.vstack(list(counted_blocks(rows))))
    if name == "tfidf":
        table = sp.csr_matrix(sp.load_npz(filled_tfidf_file(folder)))
        other = table.copy()
        other.data *= np.random.default_rng(0).lognormal(0.0, 0.3, other.nnz).astype(other.dtype)
        return sp.csr_matrix(sp.vstack([table, other]))[:rows]
    return (surface if name == "surface" else genes)(rows)


def predicted(points: Points, metric: str, k: int, recall: float) -> dict[str, Any]:
    """Return what the plan of a search says."""
    asked = {"points": {"metric": metric}, "neighbors": {"n_neighbors": k, "recall": recall}}
    found = survey(open_points(points), Executor(workers=2))
    sizes = Sizes(found.dimensions, Parameters().with_values(asked).resolved("knn-graph"))
    if found.sample is None:  # of few points, which are always compared with all
        return {"auto": "exact", "predicted": {"exact": exact_seconds(sizes)}}
    choice = choose_search(found.sample, sizes)
    dimension, kept = choice.difficulty.dimension, choice.difficulty.kept
    return {"auto": choice.resolved, "dimension": dimension, "kept": kept, "predicted": choice.seconds}


def timed_searches() -> list[dict[str, Any]]:
    """Return a list to which each search from now on adds its processor seconds and certificates."""
    seconds: list[dict[str, Any]] = []
    run = neighbors.run

    def timed(work: Any) -> dict[str, Any]:
        begun = time.process_time()
        certificates = run(work)
        seconds.append({"measured": time.process_time() - begun, **certificates})
        return certificates

    neighbors.run = timed
    return seconds


def search(name: str, rows: int, arguments: argparse.Namespace) -> None:
    """Print a line for each search of a set."""
    points, metric = made(name, rows, arguments.work), "cosine" if name == "tfidf" else "euclidean"
    seconds = timed_searches()
    for method in arguments.methods:
        sm.knn_graph(points[:FEW_ROWS], arguments.k[0], method, metric=metric, workers=2)
    for k in arguments.k:
        for recall in arguments.recall:
            plan = predicted(points, metric, k, recall)
            for method in arguments.methods:
                if method == "exact" and recall != arguments.recall[0]:
                    continue
                sm.knn_graph(points, k, method, recall, metric=metric, workers=2)
                row = {"points": name, "rows": points.shape[0], "columns": points.shape[1], "k": k, "asked": recall}
                row |= {**plan, "method": method, "predicted": plan["predicted"][method]}
                row |= {key: seconds[-1].get(key) for key in ("measured", "recall", "probes", "rounds")}
                print(json.dumps({**row, "ratio": row["predicted"] / row["measured"]}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["digits", "digits-float32", "patches", "cells"])
    parser.add_argument("--rows", type=int, nargs="+", default=[25_000, 40_000, 70_000])
    parser.add_argument("--k", type=int, nargs="+", default=[15, 90])
    parser.add_argument("--recall", type=float, nargs="+", default=[0.9, 0.95, 0.99])
    parser.add_argument("--methods", nargs="+", default=["partition"])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        points = made(arguments.sets[0], arguments.rows[0], arguments.work)
        (sp.save_npz if sp.issparse(points) else np.save)(arguments.write, points)
        return
    if arguments.one:
        search(arguments.one[0], int(arguments.one[1]), arguments)
        return
    lines: list[dict[str, Any]] = []
    for name in arguments.sets:
        for rows in arguments.rows:
            words = [sys.executable, *sys.argv, "--one", name, str(rows)]
            output = measured(words, dict.fromkeys(THREAD_VARIABLES, "1")).output
            lines += [json.loads(line) for line in output.splitlines() if line.startswith("{")]
            print(output, file=sys.stderr, flush=True)
    show(lines)
    within = np.mean([1 / 1.5 <= line["ratio"] <= 1.5 for line in lines])
    print(f"{within:.0%} of {len(lines)} predictions are within a factor of 1.5")


if __name__ == "__main__":
    main()
