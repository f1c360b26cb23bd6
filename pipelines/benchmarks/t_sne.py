"""t-SNE of the 70,000 MNIST digits, perplexity 30, beside openTSNE and tsne-h2pack at their defaults on the same graph.

    python pipelines/benchmarks/t_sne.py WORK_FOLDER --peer-python PYTHON [--threads 1 2]

PYTHON is an interpreter of an environment with the peers. Three figures judge a map: the Kullback-Leibler divergence
with exact sums, the 15-NN label accuracy over all points, and the share of the true 15 neighbours of 5,000 points that
are kept. Ours is judged every 25 iterations, outside of the time; the seconds are to the first map that is as good as
the peer's on all three, and to where our descent ends by itself. Times are of descents alone: both start from two
coordinates that are given, ours from the spectral embedding, openTSNE from its own (principal components). tsne-h2pack
takes distances to neighbours instead of affinities, makes these itself within its seconds, and starts at random.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from layouts import exact_value, graph_of, problem_of, threads
from measuring import THREAD_VARIABLES, scalemani, settings, show

import scalemani as sm
from scalemani.embeddings.descent import State
from scalemani.embeddings.phases import descend
from scalemani.embeddings.recipes import phases_of
from scalemani.params import Parameters
from scalemani.runs.opened import open_run

JUDGED_EVERY, PRESERVED = 25, 5000
PEER_DEVIATION = 1e-4
FITTED = {"openTSNE": "fit", "tsne-h2pack": "fit-h2pack"}  # what t_sne_peer.py calls them


class Judge:
    """Takes the three figures of a map in input order."""

    def __init__(self, points, labels, graph, over):
        self.points, self.labels, self.graph = points, labels, graph
        self.problem = problem_of(graph.rows, "t-sne", over)

    def figures(self, embedding):
        """Return the figures by name."""
        return {
            "KL": exact_value(self.problem, np.ascontiguousarray(embedding[self.graph.order])),
            "15-NN accuracy": sm.measures.knn_accuracy(embedding, self.labels, 15, n_sampled=None).value,
            "preservation": sm.measures.neighbor_preservation(self.points, embedding, 15, n_sampled=PRESERVED).value,
        }


def affinities_of(graph):
    """Return the affinities as a CSR matrix in input order."""
    inverse = np.argsort(graph.order)
    matrix = sp.csr_matrix((graph.rows.values, graph.rows.indices.astype(np.int32), graph.rows.indptr))
    return matrix[inverse][:, inverse].sorted_indices()


def principal_start(points):
    """Return openTSNE's own start: two principal components."""
    centred = points.astype(np.float64) - points.mean(axis=0)
    start = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -2:]
    return start * (PEER_DEVIATION / start[:, 0].std())


def peer(folder, python, what, matrix, start, n_threads):
    """Return a peer's map in input order, and its seconds."""
    source, target = folder / "peer-input.npz", folder / f"peer-output-{what}-{n_threads}.npz"
    np.savez(source, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, start=start)
    script = Path(__file__).parent / "t_sne_peer.py"
    # The peers' own choice of threads: OpenMP's where they have no other.
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(n_threads))}
    subprocess.run([python, script, what, source, target, str(n_threads)], check=True, env=environment)
    with np.load(target) as found:
        return found["embedding"], float(found["seconds"][0])


def ours(graph, judge, wanted, over):
    """Return figures and seconds of our first map that is as good as `wanted`, and of the last."""
    asked = Parameters().resolved("t-sne").layout
    problem = problem_of(graph.rows, "t-sne", over)
    state, seconds, reached = State(graph.start(asked.start_deviation)), 0.0, None
    states = descend(problem, phases_of(asked, graph.rows.n_points), "grid", state)
    while True:
        started = time.perf_counter()
        following = next(states, None)
        seconds += time.perf_counter() - started
        if following is None:
            break
        state = following
        if reached is None and state.iteration % JUDGED_EVERY == 0 and state.phase == 1:
            figures = judge(graph.in_input_order(state.positions))
            better = [figures["KL"] <= wanted["KL"], *(figures[name] >= wanted[name] for name in list(wanted)[1:])]
            if all(better):
                reached = {"iterations": state.iteration, "seconds": seconds, **figures}
    ended = {"iterations": state.iteration, "seconds": seconds, **judge(graph.in_input_order(state.positions))}
    return reached, ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers", nargs="+", choices=FITTED, default=[*FITTED])
    arguments = parser.parse_args()
    with np.load(mnist_file(), allow_pickle=False) as file:
        points, labels = file["X"], file["y"]
    run = arguments.folder / "mnist"
    scalemani("embed", f"{mnist_file()}::X", str(run), *settings(embedding__residual=1e-2))
    graph, table, start = graph_of(run), [], principal_start(points)
    given = {"openTSNE": affinities_of(graph), "tsne-h2pack": open_run(run).graph.tocsr()}
    with threads(2) as both:
        judge = Judge(points, labels, graph, both)
        for name in arguments.peers:
            for count in arguments.threads:
                embedding, seconds = peer(
                    arguments.folder, arguments.peer_python, FITTED[name], given[name], start, count
                )
                wanted = judge.figures(embedding)
                table.append({"map": name, "threads": count, "seconds": seconds, **wanted})
                with threads(count) as over:
                    ours(graph, lambda embedding, wanted=wanted: wanted, wanted, over)  # compiles
                    reached, ended = ours(graph, judge.figures, wanted, over)
                if reached:
                    table.append({"map": "as good", "threads": count, **reached, "ratio": seconds / reached["seconds"]})
                table.append({"map": "scalemani", "threads": count, **ended, "ratio": seconds / ended["seconds"]})
    show(table)


if __name__ == "__main__":
    main()
