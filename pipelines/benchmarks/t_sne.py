"""t-SNE of digits beside openTSNE and tsne-h2pack at their defaults on the same graph.

    python pipelines/benchmarks/t_sne.py WORK_FOLDER --peer-python PYTHON [--threads 1 2] [--points 1020000]

PYTHON is an interpreter of an environment with the peers. The digits are the 70,000 of MNIST at a perplexity of 30, or
so many infinite digits at a perplexity of 10: those of the run that `million_layout.py` leaves in the folder, given to
the peers in the order of that run, in which near points stand near each other: openTSNE takes less than half of the
time of data in a random order. Three figures judge a map: the Kullback-Leibler divergence (with exact sums, or by a
mesh to an error of 1e-5 where points are too many), the 15-NN label accuracy over all points, and the share of the true
15 neighbours of 5,000 points that are kept (of 500, where points are many). Ours is judged every 25 iterations, outside
of the time; the seconds are to the first map that is as good as the peer's on all three, and to where our descent ends
by itself. Times are of descents alone: both start from two coordinates that are given, ours from the spectral
embedding, openTSNE from its own (principal components). tsne-h2pack takes distances to neighbours instead of
affinities, makes these itself within its seconds, and starts at random.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from digits import MILLION, million_digits, mnist_file
from layouts import graph_of, problem_of, threads
from measuring import THREAD_VARIABLES, scalemani, settings, show

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.descents.descent import State
from scalemani.descents.phases import descend, phases_of
from scalemani.descents.repulsion import make_repulsion
from scalemani.runs.opened import open_run

JUDGED_EVERY = 25
EXACT_BELOW = 200_000  # points whose KL is summed over all pairs; of more by a mesh
MESH_TOLERANCE = 1e-5
PRESERVED, PRESERVED_OF_MANY = 5000, 500
PEER_DEVIATION = 1e-4
ROWS_AT_ONCE = 50_000
FITTED = {"openTSNE": "fit", "tsne-h2pack": "fit-h2pack"}  # what t_sne_peer.py calls them
PERPLEXITIES = {"mnist": 30, "million-layout": 10}  # by the folder of the run


class Judge:
    """Takes the three figures of a map in the order of the graph."""

    def __init__(self, points, labels, graph, over):
        self.points, self.labels, self.graph = points, labels, graph
        self.problem = problem_of(graph.rows, "t-sne", over)
        few = len(points) < EXACT_BELOW
        self.preserved = PRESERVED if few else PRESERVED_OF_MANY
        workspace = self.problem.workspace
        self.sums = make_repulsion("exact" if few else "grid", "student", MESH_TOLERANCE, workspace)

    def divergence(self, positions):
        """Return the Kullback-Leibler divergence."""
        return self.problem.value(np.ascontiguousarray(positions, np.float64), self.sums)

    def figures(self, positions):
        """Return the figures by name."""
        embedding = self.graph.in_input_order(positions)
        kept = sm.measures.neighbor_preservation(self.points, embedding, 15, n_sampled=self.preserved)
        return {
            "KL": self.divergence(positions),
            "15-NN accuracy": sm.measures.knn_accuracy(embedding, self.labels, 15, n_sampled=None).value,
            "preservation": kept.value,
        }


def principal_start(points):
    """Return openTSNE's own start: two principal components."""
    parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(points), ROWS_AT_ONCE)]
    mean = points.mean(axis=0, dtype=np.float64)
    gram = sum((rows := points[part] - mean).T @ rows for part in parts)
    axes = np.linalg.eigh(gram)[1][:, -2:]
    start = np.concatenate([(points[part] - mean) @ axes for part in parts])
    return start * (PEER_DEVIATION / start[:, 0].std())


def given_to(name, run, graph):
    """Return the matrix that a peer takes, in the order of the graph: affinities, or distances to neighbours."""
    if name == "openTSNE":
        return sp.csr_matrix((graph.rows.values, graph.rows.indices.astype(np.int32), graph.rows.indptr))
    return open_run(run).graph.tocsr()[graph.order][:, graph.order]


def peer(folder, python, what, matrix, start, n_threads, perplexity):
    """Return a peer's map in the order of the graph, and its seconds."""
    source, target = folder / "peer-input.npz", folder / f"peer-output-{what}-{n_threads}.npz"
    np.savez(source, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, start=start)
    script = Path(__file__).parent / "t_sne_peer.py"
    # The peers' own choice of threads: OpenMP's where they have no other.
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(n_threads))}
    command = [python, script, what, source, target, str(n_threads), str(perplexity)]
    subprocess.run(command, check=True, env=environment)
    with np.load(target) as found:
        return found["embedding"], float(found["seconds"][0])


def descent(graph, over):
    """Yield the states of our descent."""
    asked = Parameters().resolved("t-sne").descent
    problem, start = problem_of(graph.rows, "t-sne", over), State(graph.start(asked.start_deviation))
    return descend(problem, phases_of(asked, graph.rows.n_points), "grid", start)


def ours(graph, judge, wanted, over):
    """Return figures and seconds of our first map that is as good as `wanted`, None of none, and of the last."""
    next(descent(graph, over))  # compiles
    states, seconds, reached, ended = descent(graph, over), 0.0, None, None
    while True:
        started = time.perf_counter()
        following = next(states, None)
        seconds += time.perf_counter() - started
        if following is None:
            break
        ended = following
        if reached is not None or ended.iteration % JUDGED_EVERY or ended.phase != 1:
            continue
        if judge.divergence(ended.positions) <= wanted["KL"]:
            figures = judge.figures(ended.positions)
            if all(figures[name] >= wanted[name] for name in ("15-NN accuracy", "preservation")):
                reached = {"iterations": ended.iteration, "seconds": seconds, **figures}
    return reached, {"iterations": ended.iteration, "seconds": seconds, **judge.figures(ended.positions)}


def digits_of(folder, n_points):
    """Return points (N, 784), labels (N,), and a finished run of them."""
    if n_points is None:
        run = folder / "mnist"
        setting = settings(embedding__residual=1e-2)
        scalemani("embed", f"{mnist_file()}::X", str(run), *setting)
        with np.load(mnist_file(), allow_pickle=False) as file:
            return file["X"], file["y"], run
    path = million_digits(folder, n_points)
    return np.load(path, mmap_mode="r"), np.load(path.with_suffix(".labels.npy")), folder / "million-layout"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--points", type=int, help=f"infinite digits, such as {MILLION}; without it, MNIST")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers", nargs="+", choices=FITTED, default=[*FITTED])
    arguments = parser.parse_args()
    points, labels, run = digits_of(arguments.folder, arguments.points)
    graph, table = graph_of(run), []
    start, perplexity = principal_start(points)[graph.order], PERPLEXITIES[run.name]
    with threads(2) as both:
        judge = Judge(points, labels, graph, both)
        for name in arguments.peers:
            given = given_to(name, run, graph)
            for count in arguments.threads:
                positions, seconds = peer(
                    arguments.folder, arguments.peer_python, FITTED[name], given, start, count, perplexity
                )
                wanted = judge.figures(positions)
                table.append({"map": name, "threads": count, "seconds": seconds, **wanted})
                show(table[-1:])
                with threads(count) as over:
                    reached, ended = ours(graph, judge, wanted, over)
                if reached:
                    table.append({"map": "as good", "threads": count, **reached, "ratio": seconds / reached["seconds"]})
                table.append({"map": "scalemani", "threads": count, **ended, "ratio": seconds / ended["seconds"]})
    show(table)


if __name__ == "__main__":
    main()
