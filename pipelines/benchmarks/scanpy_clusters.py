"""scanpy from principal components to Leiden clusters, with its own neighbours and with `KNeighborsTransformer`.

    python pipelines/benchmarks/scanpy_clusters.py WORK_FOLDER --scanpy-python PYTHON [--cells 70000 1000000]

PYTHON is an interpreter with scanpy, igraph and leidenalg that imports this package too. Cells are draws of 30 types
that branch from each other, 50 columns whose spread falls off as that of principal components does. Each row is a
process of its own: `sc.pp.neighbors` (k = 15), then `sc.tl.leiden` (flavor igraph, two iterations). What is compiled on
the way is compiled before, on 10,000 cells, outside of the time: below 8,192, scanpy takes brute force. Two seeds of
scanpy's own say how far its clusters agree with each other; the adjusted Rand index of the others is beside the first
of these.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from measuring import THREAD_VARIABLES, measured, show
from sklearn.metrics import adjusted_rand_score

NEIGHBORS = 15
TYPES, COLUMNS = 30, 50
SPREAD_FALL = 0.6  # of the standard deviation of a column, as a power of its number
APART = 4.0  # of a type from the one that it branches from, in spreads
ROWS_AT_ONCE = 100_000

SCANPY = """
import json, sys, time
import anndata, numpy as np, scanpy as sc
from scipy.sparse import csr_array
if not hasattr(csr_array, "getnnz"):  # scanpy before 1.12 asks sparse arrays for a method of matrices
    csr_array.getnnz = csr_array._getnnz
path, k, seed, ours, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "scalemani", sys.argv[5]

def clusters(points):
    cells = anndata.AnnData(np.zeros((len(points), 1), np.float32), obsm={"X_pca": points})
    transformer = None
    if ours:
        import scalemani as sm
        transformer = sm.KNeighborsTransformer(k, random_state=seed)
    begun = time.perf_counter()
    sc.pp.neighbors(cells, n_neighbors=k, use_rep="X_pca", transformer=transformer, random_state=seed)
    between = time.perf_counter()
    sc.tl.leiden(cells, flavor="igraph", n_iterations=2, random_state=seed)
    ended = time.perf_counter()
    return cells.obs["leiden"].to_numpy().astype(int), between - begun, ended - between

points = np.load(path)
clusters(points[:10_000])
labels, neighbors, leiden = clusters(points)
np.save(target, labels)
print(json.dumps({"neighbors": neighbors, "leiden": leiden, "to Leiden": neighbors + leiden}))
"""


def cells_file(folder: Path, n_cells: int) -> Path:
    """Return the file of the cells (n, 50) float32, made where it is not there yet."""
    path = folder / f"cells-{n_cells}.npy"
    if path.exists():
        return path
    draws = np.random.default_rng(0)
    spreads = np.arange(1, COLUMNS + 1) ** -SPREAD_FALL
    centers = np.zeros((TYPES, COLUMNS))
    for number in range(1, TYPES):
        centers[number] = centers[draws.integers(number)] + APART * spreads * draws.normal(size=COLUMNS)
    shares = draws.dirichlet(np.ones(TYPES))
    partial = path.with_suffix(".partial")
    cells = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float32, shape=(n_cells, COLUMNS))
    for start in range(0, n_cells, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_cells)
        types = draws.choice(TYPES, stop - start, p=shares)
        cells[start:stop] = centers[types] + spreads * draws.normal(size=(stop - start, COLUMNS))
    cells.flush()
    partial.rename(path)
    return path


def row_of(path: Path, python: str, kind: str, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return a row of the table and the clusters that were found, on two threads."""
    target = path.with_name(f"clusters-{kind}-{seed}.npy")
    command = [python, "-c", SCANPY, str(path), str(NEIGHBORS), str(seed), kind, str(target)]
    total = measured(command, dict.fromkeys(THREAD_VARIABLES, "2"))
    labels = np.load(target)
    row = {"cells": len(labels), "neighbours": kind, "seed": seed, **json.loads(total.output.splitlines()[-1])}
    return {**row, "peak GB": total.peak_bytes / 1e9, "clusters": len(np.unique(labels))}, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scanpy-python", required=True)
    parser.add_argument("--cells", type=int, nargs="+", default=[70_000, 1_000_000])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for n_cells in asked.cells:
        path = cells_file(asked.folder, n_cells)
        first, reference = row_of(path, asked.scanpy_python, "scanpy", 0)
        rows.append(first)
        for kind, seed in (("scanpy", 1), ("scalemani", 0)):
            row, labels = row_of(path, asked.scanpy_python, kind, seed)
            ratio = row["to Leiden"] / first["to Leiden"]
            rows.append({**row, "ARI": adjusted_rand_score(reference, labels), "time ratio": ratio})
    show(rows)


if __name__ == "__main__":
    main()
