"""Elastic embedding and s-SNE of 60,000 MNIST digits by exact sums, Barnes-Hut, the fast Gauss transform and the mesh.

    python pipelines/benchmarks/nbody_embedding.py WORK_FOLDER [--iterations 40] [--exact 8] [--threads 2]

Perplexity 50, 200 neighbours, strength 1e-4, fixed-point iteration with a fixed step ([NB] 5.5). The first table has
the seconds of an iteration of each method, their ratio to exact sums, and how far its path is from the exact one after
as many iterations (relative, of the positions). The second is the accuracy schedule of [NB] 5.4: errors from 1e-1 to
1e-3 over the iterations, beside one error throughout: seconds, and the exact value reached.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from digits import training_digits
from layouts import exact_value, graph_of, problem_of, threads
from measuring import scalemani, settings, show

from scalemani.descents.descent import State
from scalemani.descents.phases import Phase, descend

STEP = {"elastic-embedding": 0.25, "s-sne": 0.25}
STRENGTH = {"elastic-embedding": 1e-4, "s-sne": 1.0}
METHODS = (("barnes-hut", 1e-2), ("fgt", 1e-2), ("fgt", 1e-3), ("grid", 1e-3))


def path_of(problem, phase, method, start):
    """Return the positions after each iteration, and the seconds of the quickest one."""
    found, least = [], np.inf
    states = descend(problem, [phase], method, State(start))
    while True:
        started = time.perf_counter()
        state = next(states, None)
        if state is None:
            return found, least
        least = min(least, time.perf_counter() - started)
        found.append(state.positions)


def compared(graph, objective, n_exact, over):
    """Return a row for each method: seconds an iteration, ratio, distance from the exact path."""
    problem = problem_of(graph.rows, objective, over, STRENGTH[objective])
    start = graph.start(1.0)
    exact, seconds = path_of(problem, Phase("fixed-point", n_exact, length=STEP[objective]), "exact", start)
    table = [{"objective": objective, "repulsion": "exact", "seconds": seconds}]
    for method, tolerance in METHODS:
        phase = Phase("fixed-point", n_exact, length=STEP[objective], tolerance=tolerance)
        path, own = path_of(problem, phase, method, start)
        apart = float(np.linalg.norm(path[-1] - exact[-1]) / np.linalg.norm(exact[-1]))
        row = {"objective": objective, "repulsion": method, "tolerance": tolerance, "seconds": own}
        table.append({**row, "ratio": seconds / own, "apart": apart})
    return table


def scheduled(graph, iterations, over):
    """Return a row for each accuracy schedule: seconds and the exact value at the end."""
    problem, table = problem_of(graph.rows, "elastic-embedding", over, STRENGTH["elastic-embedding"]), []
    plain = {"direction": "fixed-point", "most_iterations": iterations, "length": STEP["elastic-embedding"]}
    for name, values in {
        "1e-1 throughout": {"tolerance": 0.1},
        "1e-3 throughout": {"tolerance": 1e-3},
        "1e-1 to 1e-3": {"tolerance": 1e-3, "schedule": iterations},
    }.items():
        for method in ("fgt", "grid"):
            started = time.perf_counter()
            path, _ = path_of(problem, Phase(**plain, **values), method, graph.start(1.0))
            seconds = time.perf_counter() - started
            value = exact_value(problem, path[-1])
            table.append({"error": name, "repulsion": method, "seconds": seconds, "exact value": value})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--exact", type=int, default=8, help="iterations compared with exact sums")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    points, run = arguments.folder / "digits-60000.npy", arguments.folder / "digits-60000"
    np.save(points, training_digits())
    asked = settings(affinities__perplexity=50, neighbors__n_neighbors=200, embedding__residual=1e-2)
    scalemani("embed", str(points), str(run), *asked)
    graph = graph_of(run)
    with threads(arguments.threads) as over:
        for objective in STEP:
            show(compared(graph, objective, arguments.exact, over))
        show(scheduled(graph, arguments.iterations, over))


if __name__ == "__main__":
    main()
