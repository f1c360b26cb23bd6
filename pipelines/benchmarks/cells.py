"""Cells found by groups of them or by a tree, beside all cells: what a point costs, its cell, the recall of a graph.

    python pipelines/benchmarks/cells.py WORK_FOLDER [--cells 17000 170000] [--points 1020000] [--cell-points 200]

Assignment: sketches of infinite digits (64 axes) and points of a Swiss roll (3) are given their nearest cell, on one
thread. Centroids are such rows themselves; a point is no centroid. Graphs: the round over cells alone, k = 15, of so
many infinite digits and hard patches, in cells so small that there are thousands. Both graphs are certified at the
same sampled points, each in a process of its own: the second compares every point with every cell.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from digits import MILLION, million_digits
from measuring import show
from patches import patches_file

from scalemani.datasets import generator
from scalemani.engine.workers.blas import BLAS
from scalemani.kernels.neighbors.cell_index import CellGroups, index_cells, nearest_indexed_cells
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points

ASKED = 8192  # points that are given a cell
SAMPLE = 20_000
MOST_PATCHES = 1_000_000
GRAPH = """
import json, sys, time
from scalemani.kernels.neighbors import cell_index
import scalemani as sm
if sys.argv[2] == "all cells":
    cell_index.FEW_CELLS = 10**9
begun = time.perf_counter()
cells = {"neighbors.n_probes": 8, "partition.cell_points": int(sys.argv[3])}
graph = sm.knn_graph(sys.argv[1], 15, method="partition", recall=0.05, settings=cells)
print(json.dumps({"recall": graph.recall, "seconds": time.perf_counter() - begun}))
"""


def digits_sketched(folder: Path, n_rows: int) -> np.ndarray:
    """Return sketches (n, 64) float32 of digits drawn among a million."""
    points = np.load(million_digits(folder, MILLION), mmap_mode="r")
    rows = np.sort(np.random.default_rng(0).choice(len(points), n_rows, replace=False))
    given = np.asarray(points[rows])
    return sketch_points(given, fit_sketch(given[:: max(1, n_rows // SAMPLE)]))


def roll(n_rows: int) -> np.ndarray:
    """Return points (n, 3) float32 of a Swiss roll."""
    return np.asarray(generator("swiss-roll", n_rows).block(0, n_rows), np.float32)


def assignment(name: str, rows: np.ndarray, n_cells: int) -> dict[str, Any]:
    """Return what it costs to give points their cells, by an index and among all."""
    rows = rows[np.random.default_rng(1).permutation(len(rows))[: n_cells + ASKED]]
    centroids, points = np.ascontiguousarray(rows[:n_cells]), np.ascontiguousarray(rows[n_cells:])
    index = index_cells(centroids)
    seconds, found = [], []
    for find in (lambda: nearest_indexed_cells(points, index, 1), lambda: nearest_cells(points, centroids, 1)):
        find()
        begun = time.perf_counter()
        found.append(find()[:, 0])
        seconds.append(time.perf_counter() - begun)
    lengths = [np.linalg.norm(points - centroids[cells], axis=1) for cells in found]
    return {
        "points": name,
        "cells": n_cells,
        "looked for in": f"{len(index.centers)} groups" if isinstance(index, CellGroups) else "a tree",
        "us a point": 1e6 * seconds[0] / len(points),
        "of all cells, us": 1e6 * seconds[1] / len(points),
        "given the nearest": float(np.mean(found[0] == found[1])),
        "mean ratio of distances": float(np.mean(lengths[0] / np.maximum(lengths[1], np.finfo(float).tiny))),
    }


def graph(points: Path, cell_points: int) -> list[dict[str, Any]]:
    """Return the recall of the same search through groups and among all cells."""
    rows = []
    for cells in ("groups", "all cells"):
        command = [sys.executable, "-c", GRAPH, str(points), cells, str(cell_points)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append({"graph": points.stem, "cells by": cells, **json.loads(said)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, nargs="+", default=[17_000, 170_000])
    parser.add_argument("--points", type=int, default=MILLION)
    parser.add_argument("--cell-points", type=int, default=200)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    n_rows = max(arguments.cells) + ASKED
    sets = {"digits, 64 axes": digits_sketched(arguments.folder, n_rows), "Swiss roll, 3": roll(n_rows)}
    with BLAS.hold_at_one():
        show([assignment(name, rows, n_cells) for name, rows in sets.items() for n_cells in arguments.cells])
    n_patches = min(arguments.points, MOST_PATCHES)
    files = (million_digits(arguments.folder, arguments.points), patches_file(arguments.folder, n_patches))
    show([row for points in files for row in graph(points, arguments.cell_points)])


if __name__ == "__main__":
    main()
