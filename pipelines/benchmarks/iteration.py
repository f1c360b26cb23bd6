"""A whole iteration of t-SNE on the graph of a million digits, beside openTSNE's on the same cores.

    python pipelines/benchmarks/iteration.py WORK_FOLDER --peer-python PYTHON [--threads 1 2]

Attraction, repulsion and step with momentum, on the affinities and from the map of the run that `million_layout.py`
leaves in the folder. openTSNE is timed on the points in the order of that run, near ones near each other, and in a
random one, as data come. The force error is that of the repulsion, over 1,000 sampled points against exact sums;
`repulsion.py` measures openTSNE's.
"""

import argparse
import subprocess
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from layouts import graph_of, problem_of, threads
from measuring import show

from scalemani.descents.descent import State
from scalemani.descents.force_errors import measured_gradients
from scalemani.descents.phases import Phase, descend
from scalemani.descents.repulsion import make_repulsion
from scalemani.kernels.graph.attraction import AffinityRows, rounded_attraction_gradient
from scalemani.runs.opened import open_run

TIMED = 5


def map_of(run):
    """Return the affinities of a finished run, and its map in the same order."""
    graph = graph_of(run)
    return graph.rows, np.ascontiguousarray(np.asarray(open_run(run).embedding[...])[graph.order])


def shuffled(rows, positions):
    """Return the same points and affinities in a random order."""
    order = np.random.default_rng(2).permutation(rows.n_points)
    matrix = sp.csr_matrix((rows.values, rows.indices.astype(np.int32), rows.indptr))[order][:, order]
    return AffinityRows(matrix.indptr, matrix.indices, matrix.data), positions[order]


def peer(folder, python, rows, positions, n_threads):
    """Return the least seconds of an iteration of openTSNE."""
    source, target = folder / "iteration-input.npz", folder / "iteration-output.npz"
    indices, indptr = rows.indices.astype(np.int32), rows.indptr
    np.savez(source, data=rows.values, indices=indices, indptr=indptr, start=positions)
    script = Path(__file__).parent / "t_sne_peer.py"
    subprocess.run([python, script, "iterate", source, target, str(n_threads)], check=True)
    source.unlink()
    with np.load(target) as found:
        return float(found["seconds"].min())


def ours(rows, positions, over):
    """Return the least seconds of an iteration, of its attraction, and of its repulsion."""
    problem = problem_of(rows, "t-sne", over)
    sums = make_repulsion("grid", "student", 1e-3, problem.workspace)
    phase = Phase("momentum", TIMED + 1, length=float(rows.n_points))
    least = dict.fromkeys(("seconds", "attraction", "repulsion"), np.inf)
    states = descend(problem, [phase], "grid", State(positions))
    out = np.empty_like(positions)
    parts = {
        "seconds": lambda: next(states),
        "attraction": lambda: rounded_attraction_gradient(rows, positions, "student", out, problem.workspace),
        "repulsion": lambda: sums.field(positions),
    }
    for _ in range(TIMED):
        for name, part in parts.items():
            started = time.perf_counter()
            part()
            least[name] = min(least[name], time.perf_counter() - started)
    return {**least, "force error": measured_gradients(sums, "student", positions, 0, over).errors.whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--run", default="million-layout", help="a finished run in the folder")
    arguments = parser.parse_args()
    (rows, positions), table = map_of(arguments.folder / arguments.run), []
    for count in arguments.threads:
        with threads(count) as over:
            found = ours(rows, positions, over)
        table.append({"": "scalemani", "threads": count, **found})
        for order, given in {"the same order": (rows, positions), "a random order": shuffled(rows, positions)}.items():
            seconds = peer(arguments.folder, arguments.peer_python, *given, count)
            row = {"": f"openTSNE, {order}", "threads": count, "seconds": seconds}
            table.append({**row, "ratio": seconds / found["seconds"]})
    print(f"{rows.n_points} points, {len(rows.values)} nonzeros")
    show(table)


if __name__ == "__main__":
    main()
