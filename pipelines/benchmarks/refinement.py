"""Refinement of the million digits to a residual, beside ARPACK in memory on the same matrix to the same residual.

Uses the run that million.py leaves in the folder: the graph and W are shared. The seconds of both sides hold everything
from the W on disk to the vectors: reading it, scaling it, and for ours the coarse graphs and their vectors.

    python pipelines/benchmarks/refinement.py WORK_FOLDER [--patience 900]
"""

import argparse
import functools
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from digits import million_digits
from measuring import THREAD_VARIABLES, measured_within, records, scalemani, settings, show
from million import PAPER_SETTING

DIMENSIONS = (2, 10, 50)
RESIDUALS = (1e-3, 1e-5)
REFINING = ("coarse_graphs", "coarse_embedding", "embedding")
PATIENCE = 900.0  # seconds after which ARPACK is stopped

PEER = """
import json, sys, time
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.runs.opened import open_run
begun = time.perf_counter()
run = open_run(sys.argv[1])
d, residual = int(sys.argv[2]), float(sys.argv[3])
stored, n_points = StoredSymmetricAffinities(run.group("symmetric_affinities")), run.dimensions.n_points
blocks = [stored.read_matrix(block, n_points) for block in range(run.dimensions.n_blocks)]
weights = sp.vstack(blocks, format="csr").astype(np.float64)
scale = 1 / np.sqrt(stored.read_degrees(n_points))
del blocks
matrix = sp.csr_matrix(sp.diags_array(scale) @ weights @ sp.diags_array(scale))
products = 0
def product(vector):
    global products
    products += 1
    return matrix @ vector
ready = time.perf_counter()
start = np.random.default_rng(0).standard_normal(n_points)
operator = LinearOperator(matrix.shape, matvec=product, dtype=np.float64)
values, vectors = eigsh(operator, k=d + 1, which="LA", tol=residual, v0=start)
seconds = time.perf_counter() - begun
found = np.linalg.norm(matrix @ vectors - vectors * values, axis=0).max()
print(json.dumps({"seconds": seconds, "reading W": ready - begun, "residual": float(found), "passes": products}))
"""


def seconds_of(stages: dict[str, Any], name: str) -> float:
    """Return the seconds of a stage, none where the solver does without it."""
    return float(stages[name]["seconds"]) if name in stages else 0.0


def by_refinement(points: Path, run: Path, memory: str, d: int, residual: float) -> dict[str, Any]:
    """Return what the default solver took and found."""
    setting = settings(landmark_embedding__n_components=d, embedding__residual=residual)
    for name in REFINING:  # what an earlier run of this command left would be taken over, with its seconds
        shutil.rmtree(run / "stages" / name, ignore_errors=True)
    scalemani("embed", str(points), str(run), "--memory", memory, *PAPER_SETTING, *setting)
    stages = records(run)["stages"]
    return {
        "method": "scalemani",
        "d": d,
        "asked": residual,
        "seconds": sum(seconds_of(stages, name) for name in REFINING),
        "coarse graphs": seconds_of(stages, "coarse_graphs"),
        "coarse vectors": seconds_of(stages, "coarse_embedding"),
        "embedding": stages["embedding"]["seconds"],
        "peak GB": max(stages[name]["peak_memory"] for name in REFINING) / 1e9,
        **{name: stages["embedding"]["certificates"][name] for name in ("residual", "passes")},
    }


def by_peer(run: Path, d: int, residual: float, patience: float) -> dict[str, Any]:
    """Return what ARPACK took and found, on two cores."""
    row = {"method": "ARPACK in memory", "d": d, "asked": residual}
    command = [sys.executable, "-c", PEER, str(run), str(d), str(residual)]
    peer = measured_within(patience, command, dict.fromkeys(THREAD_VARIABLES, "2"))
    if isinstance(peer, str):
        return {**row, "seconds": peer}
    return {**row, "peak GB": peer.peak_bytes / 1e9, **json.loads(peer.output.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--peer-dimensions", type=int, nargs="*", default=DIMENSIONS)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which ARPACK is stopped")
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder), arguments.folder / "million"
    asked: list[Callable[[], dict[str, Any]]] = []
    for d in arguments.dimensions:
        for residual in RESIDUALS:
            asked.append(functools.partial(by_refinement, points, run, arguments.memory, d, residual))
            if d in arguments.peer_dimensions:
                asked.append(functools.partial(by_peer, run, d, residual, arguments.patience))
    rows = []
    for measure in asked:
        rows.append(measure())
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
