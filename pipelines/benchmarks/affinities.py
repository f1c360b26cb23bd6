"""Entropic affinities of the 60,000 training digits: steps a point, error, and CPU time beside the peers'.

    SCALEMANI_DATA=... python pipelines/benchmarks/affinities.py [--graph FILE.npz] [--peer-python PYTHON]

Prints a table, then one line of JSON. FILE.npz keeps the exact graph (computed when the file is not there: minutes).
PYTHON is an interpreter of an environment with openTSNE and scikit-learn; without it the peers are left out.
Times are CPU seconds of one thread, the least of three runs, so that other work on the machine disturbs little.
The peers start every point at beta = 1 and double or halve from there, so their time depends on the units of the points
(ours does not): they are measured with pixels in [0, 255] and in [0, 1], and the target must be met in both.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from scalemani.kernels.affinities.entropic import GRAPH_ORDERS, ORDERS, RowsOfData, entropic_affinities
from scalemani.kernels.affinities.root_finders import SOLVERS

N_DIGITS = 60_000
N_NEIGHBORS = 250
PEER_NEIGHBORS = 90  # 3 times the perplexity, what the t-SNE implementations ask for
PERPLEXITY = 30.0
TOLERANCE = 1e-10
DERIVATIVE_SOLVERS = ("newton", "halley", "euler")
SPARE_CANDIDATES = 10  # float32 products are rounded: neighbours are chosen among a few more, by exact distances
BLOCK_ROWS = 500
REPEATS = 3
TARGET_STEPS = {"newton": 3.3, "halley": 2.3, "euler": 2.3}
TARGET_RATIO = 15.0
PEER_UNITS = ("1", "255")  # what the pixels are divided by


def exact_graph(points):
    """Return indices and exact squared distances of the nearest neighbours of uint8 points."""
    points = points.astype(np.float32)
    norms = np.square(points).sum(axis=1, dtype=np.float64).astype(np.float32)
    indices = np.empty((len(points), N_NEIGHBORS), dtype=np.int32)
    squared_distances = np.empty((len(points), N_NEIGHBORS))
    for start in range(0, len(points), BLOCK_ROWS):
        rows = np.arange(start, min(start + BLOCK_ROWS, len(points)))
        approximate = norms - 2.0 * points[rows] @ points.T
        approximate[rows - start, rows] = np.inf
        candidates = np.argpartition(approximate, N_NEIGHBORS + SPARE_CANDIDATES, axis=1)
        for row, near in zip(rows, candidates[:, : N_NEIGHBORS + SPARE_CANDIDATES], strict=True):
            differences = points[near] - points[row]
            exact = np.einsum("ij,ij->i", differences, differences, dtype=np.float64)
            nearest = np.lexsort((near, exact))[:N_NEIGHBORS]
            indices[row], squared_distances[row] = near[nearest], exact[nearest]
    return indices, squared_distances


def load_graph(path):
    """Return the graph from `path`, or compute it (and keep it there)."""
    if path is not None and path.exists():
        with np.load(path) as stored:
            return stored["indices"], stored["squared_distances"]
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz") as data, threadpool_limits(1):
        graph = exact_graph(data["X"][:N_DIGITS])
    if path is not None:
        np.savez(path, indices=graph[0], squared_distances=graph[1])
    return graph


def entropy_errors(values):
    """Return |H - log K| of each row, from the affinities alone."""
    positive = np.where(values > 0.0, values, 1.0)
    return np.abs(-(positive * np.log(positive)).sum(axis=1) - np.log(PERPLEXITY))


def measure(squared_distances, indices, solver, order, repeats=1):
    """Return one row of the report."""
    graph = indices if order in GRAPH_ORDERS else None
    search = {"solver": solver, "order": order, "tol": TOLERANCE}
    few = RowsOfData(None if graph is None else graph[:64])
    entropic_affinities(squared_distances[:64], PERPLEXITY, rows=few, **search)
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        rows = entropic_affinities(squared_distances, PERPLEXITY, rows=RowsOfData(graph), **search)
        seconds.append(time.process_time() - start)
    return {
        "solver": solver,
        "order": order,
        "mean_steps": float(rows.iterations.mean()),
        "max_steps": int(rows.iterations.max()),
        "microseconds_per_point": 1e6 * min(seconds) / len(squared_distances),
        "max_entropy_error": float(entropy_errors(rows.values).max()),
        "saturated": int(rows.saturated.sum()),
    }


def measure_peers(peer_python, squared_distances):
    """Return the peers' rows of the report, by the units of the pixels."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "squared_distances.npy"
        np.save(table, squared_distances)
        script = Path(__file__).with_name("affinities_peers.py")
        arguments = [peer_python, str(script), str(table), str(PERPLEXITY), *PEER_UNITS]
        return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def print_rows(title, rows):
    print(f"\n{title}\n{'solver':<10} {'order':<8} {'steps':>7} {'most':>5} {'us a point':>11} {'entropy error':>14}")
    for row in rows:
        print(
            f"{row['solver']:<10} {row['order']:<8} {row['mean_steps']:7.3f} {row['max_steps']:5d} "
            f"{row['microseconds_per_point']:11.3f} {row['max_entropy_error']:14.1e}"
        )


def print_peer(title, row, speed):
    """Print one peer's row, and add to it how many times our time it takes."""
    row["ratios"] = {ours["solver"]: row["microseconds_per_point"] / ours["microseconds_per_point"] for ours in speed}
    ratios = ", ".join(f"{ratio:.1f} times {solver}" for solver, ratio in row["ratios"].items())
    print(
        f"{title}: {row['microseconds_per_point']:.2f} us a point ({ratios}), entropy error "
        f"{row['max_entropy_error']:.1e}, {row['points_off_by_1e-6']} points off by more than 1e-6"
    )


def targets_met(steps, speed, peers):
    """Return which figures of the project's table were reached; speed by the default solver in the worst units."""
    met = {
        f"{row['solver']} steps": row["mean_steps"] <= TARGET_STEPS[row["solver"]]
        for row in steps
        if row["order"] == "density" and row["solver"] in TARGET_STEPS
    }
    met["every point"] = all(row["max_entropy_error"] <= 1.01 * TOLERANCE for row in steps + speed)
    for name in next(iter(peers.values()), {}):
        met[f"{name} speed"] = all(rows[name]["ratios"]["newton"] >= TARGET_RATIO for rows in peers.values())
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", type=Path, help="npz file with the exact k = 250 graph; written when not there")
    parser.add_argument("--peer-python", help="interpreter of an environment with openTSNE and scikit-learn")
    arguments = parser.parse_args()

    indices, squared_distances = load_graph(arguments.graph)
    steps = [measure(squared_distances, indices, solver, order) for solver in DERIVATIVE_SOLVERS for order in ORDERS]
    others = [name for name in SOLVERS if name not in DERIVATIVE_SOLVERS]
    steps += [measure(squared_distances, indices, solver, "density") for solver in others]
    print_rows(f"60,000 digits, k = {N_NEIGHBORS}, K = {PERPLEXITY:g}, tolerance {TOLERANCE:g}", steps)

    narrow, near = np.ascontiguousarray(squared_distances[:, :PEER_NEIGHBORS]), indices[:, :PEER_NEIGHBORS]
    speed = [measure(narrow, near, solver, "density", REPEATS) for solver in DERIVATIVE_SOLVERS]
    print_rows(f"the same, k = {PEER_NEIGHBORS}", speed)
    peers = measure_peers(arguments.peer_python, narrow) if arguments.peer_python else {}
    for unit, rows in peers.items():
        for name, row in rows.items():
            print_peer(f"{name} {row['version']}, pixels / {unit}", row, speed)
    met = targets_met(steps, speed, peers)
    print("targets:", ", ".join(f"{name} {'met' if ok else 'MISSED'}" for name, ok in met.items()))
    machine = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "date": str(date.today()),
    }
    print(
        json.dumps({"benchmark": "affinities", **machine, "steps": steps, "speed": speed, "peers": peers, "met": met})
    )


if __name__ == "__main__":
    main()
