"""A whole iteration of t-SNE, 1,000,000 points and 94 million nonzeros, beside openTSNE's on the same cores.

    python pipelines/benchmarks/iteration.py WORK_FOLDER --peer-python PYTHON [--threads 1 2]

Attraction, repulsion and step with momentum. The map is a mixture of clusters of an extent of about 160, points in an
order in which near ones stand near each other, as the stages before a descent leave them, and each has its neighbours
among the 300 rows on either side. openTSNE is timed in this order, and in a random one, as data come. The force error
is that of the repulsion, over 1,000 sampled points against exact sums; `repulsion.py` measures openTSNE's.
"""

import argparse
import subprocess
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from layouts import problem_of, threads
from measuring import show
from repulsion import EXTENT, map_of_clusters

from scalemani.embeddings.descent import State
from scalemani.embeddings.phases import Phase, descend
from scalemani.embeddings.repulsion import make_repulsion, measured_error
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient

N_POINTS, DEGREE, WINDOW = 1_000_000, 94, 300
TIMED = 5


def local_order(positions):
    """Return an order by square cells, along rows that run back and forth."""
    cells = np.floor(positions / (EXTENT / 256)).astype(np.int64)
    columns = np.where(cells[:, 0] % 2, -cells[:, 1], cells[:, 1])
    return np.lexsort((columns, cells[:, 0]))


def affinities(n_points):
    """Return symmetric affinities with some 94 entries a row, all within a window of rows."""
    draws = np.random.default_rng(1)
    offsets = np.sort(draws.choice(np.arange(1, WINDOW + 1), DEGREE // 2, replace=False))
    offsets = np.concatenate([-offsets[::-1], offsets])
    columns = np.arange(n_points)[:, None] + offsets[None]
    inside = (columns >= 0) & (columns < n_points)
    counts = inside.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = np.broadcast_to(1.0 / np.abs(offsets), columns.shape)[inside].astype(np.float32)
    return AffinityRows(indptr, columns[inside].astype(np.uint32), values)


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
    sums = make_repulsion("grid", "student", 1e-3, over)
    phase = Phase("momentum", TIMED + 1, length=float(rows.n_points))
    least = dict.fromkeys(("seconds", "attraction", "repulsion"), np.inf)
    states = descend(problem, [phase], "grid", State(positions))
    out = np.empty_like(positions)
    parts = {
        "seconds": lambda: next(states),
        "attraction": lambda: attraction_gradient(rows, positions, "student", out, over),
        "repulsion": lambda: sums.field(positions),
    }
    for _ in range(TIMED):
        for name, part in parts.items():
            started = time.perf_counter()
            part()
            least[name] = min(least[name], time.perf_counter() - started)
    return {**least, "force error": measured_error(sums, "student", positions, 0, over)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--points", type=int, default=N_POINTS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    positions = map_of_clusters(arguments.points)
    positions = np.ascontiguousarray(positions[local_order(positions)])
    rows, table = affinities(arguments.points), []
    for count in arguments.threads:
        with threads(count) as over:
            found = ours(rows, positions, over)
        table.append({"": "scalemani", "threads": count, **found})
        for order, given in {"the same order": (rows, positions), "a random order": shuffled(rows, positions)}.items():
            seconds = peer(arguments.folder, arguments.peer_python, *given, count)
            row = {"": f"openTSNE, {order}", "threads": count, "seconds": seconds}
            table.append({**row, "ratio": seconds / found["seconds"]})
    print(f"{len(rows.values)} nonzeros")
    show(table)


if __name__ == "__main__":
    main()
