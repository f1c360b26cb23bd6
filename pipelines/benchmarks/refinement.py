"""Refinement of the million digits to a residual, beside ARPACK in memory on the same matrix to the same residual.

Uses the run that million.py leaves in the folder: graph, W, Z and the reduced problem are shared.

    python pipelines/benchmarks/refinement.py WORK_FOLDER
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from digits import million_digits
from measuring import THREAD_VARIABLES, measured, records, scalemani, settings, show
from million import PAPER_SETTING

DIMENSIONS = (2, 10, 50)
RESIDUALS = (1e-3, 1e-5)
REFINING = ("coarse_graphs", "coarse_embedding", "embedding")

PEER = """
import json, sys, time
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.runs.opened import open_run
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
begun = time.perf_counter()
start = np.random.default_rng(0).standard_normal(n_points)
operator = LinearOperator(matrix.shape, matvec=product, dtype=np.float64)
values, vectors = eigsh(operator, k=d + 1, which="LA", tol=residual, v0=start)
seconds = time.perf_counter() - begun
found = np.linalg.norm(matrix @ vectors - vectors * values, axis=0).max()
print(json.dumps({"seconds": seconds, "residual": float(found), "passes": products}))
"""


def seconds_of(stages: dict[str, Any], name: str) -> float:
    """Return the seconds of a stage, none where the solver does without it."""
    return float(stages[name]["seconds"]) if name in stages else 0.0


def by_refinement(points: Path, run: Path, memory: str, d: int, solver: str, residual: float) -> dict[str, Any]:
    """Return what one solver took and found."""
    setting = settings(landmark_embedding__n_components=d, embedding__solver=solver, embedding__residual=residual)
    scalemani("embed", str(points), str(run), "--memory", memory, *PAPER_SETTING, *setting)
    stages = records(run)["stages"]
    return {
        "method": solver,
        "d": d,
        "asked": residual if solver != "lll" else "",
        "seconds": sum(seconds_of(stages, name) for name in REFINING),
        "embedding": stages["embedding"]["seconds"],
        "landmarks solved": stages["landmark_embedding"]["seconds"],
        "coarse graphs": seconds_of(stages, "coarse_graphs"),
        "coarse vectors": seconds_of(stages, "coarse_embedding"),
        "peak GB": stages["embedding"]["peak_memory"] / 1e9,
        **{name: stages["embedding"]["certificates"][name] for name in ("residual", "passes")},
    }


def by_peer(run: Path, d: int, residual: float) -> dict[str, Any]:
    """Return what ARPACK took and found, on two cores."""
    peer = measured([sys.executable, "-c", PEER, str(run), str(d), str(residual)], dict.fromkeys(THREAD_VARIABLES, "2"))
    row = {"method": "ARPACK in memory", "d": d, "asked": residual, "peak GB": peer.peak_bytes / 1e9}
    return {**row, **json.loads(peer.output.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--peer-dimensions", type=int, nargs="+", default=DIMENSIONS)
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder), arguments.folder / "million"
    asked: list[Callable[[], dict[str, Any]]] = []
    for d in arguments.dimensions:
        for solver, residual in (("lll", 0.5), *(("lll+refine", residual) for residual in RESIDUALS)):
            asked.append(functools.partial(by_refinement, points, run, arguments.memory, d, solver, residual))
        if d in arguments.peer_dimensions:
            asked += [functools.partial(by_peer, run, d, residual) for residual in RESIDUALS]
    rows = []
    for measure in asked:
        rows.append(measure())
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
