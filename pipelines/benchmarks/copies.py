"""A descent of t-SNE over several copies of the affinities of a finished run: seconds and memory beyond its points.

    python pipelines/benchmarks/copies.py WORK_FOLDER [--copies 10] [--run million-layout]

The run is one that `million_layout.py` leaves in the folder. Copies have no affinities between them, and start beside
each other from the spectral embedding of the run: a stand-in for a graph of as many points, which takes longer to make
than the descent takes. The memory is the largest of the process, affinities and their making included.
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np
from layouts import graph_of, problem_of, threads
from measuring import show

from scalemani.config.params import Parameters
from scalemani.descents.descent import State
from scalemani.descents.phases import descend, phases_of
from scalemani.kernels.graph.attraction import AffinityRows

SHARE, APART = 0.3, 0.01  # of a map that a copy takes, and between the middles of copies


def copied(rows: AffinityRows, copies: int) -> AffinityRows:
    """Return the affinities of so many copies of some points, one after the other."""
    n_points, n_edges = rows.n_points, len(rows.values)
    indptr, indices = np.empty(copies * n_points + 1, np.int64), np.empty(copies * n_edges, np.uint32)
    for copy in range(copies):
        indptr[copy * n_points : (copy + 1) * n_points] = rows.indptr[:-1] + copy * n_edges
        indices[copy * n_edges : (copy + 1) * n_edges] = rows.indices + copy * n_points
    indptr[-1] = copies * n_edges
    return AffinityRows(indptr, indices, np.tile(rows.values, copies))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--run", default="million-layout", help="a finished run in the folder")
    arguments = parser.parse_args()
    graph, asked = graph_of(arguments.folder / arguments.run), Parameters().resolved("t-sne").descent
    rows = copied(graph.rows, arguments.copies)
    angles = 2 * np.pi * np.arange(arguments.copies) / arguments.copies
    middles = APART * np.column_stack([np.cos(angles), np.sin(angles)])
    parts = [SHARE * graph.start(asked.start_deviation, seed) + middle for seed, middle in enumerate(middles)]
    state = State(np.concatenate(parts))
    del graph, parts
    with threads(2) as over:
        problem, started = problem_of(rows, "t-sne", over), time.perf_counter()
        for following in descend(problem, phases_of(asked, rows.n_points), "grid", state):
            state = following
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found = {"points": rows.n_points, "nonzeros": len(rows.values), "iterations": state.iteration, "seconds": seconds}
    show([{**found, "width": float(np.ptp(state.positions, axis=0).max()), "peak GB": peak}])


if __name__ == "__main__":
    main()
