"""Figure 3.2 of the thesis: six search directions from many random starts, each for so many seconds.

720 views of ten objects of COIL-20, perplexity 20, two dimensions: the elastic embedding at strength 100, and s-SNE.
Every direction descends from the same starts, normal with a deviation of 0.01, with exact forces on one thread; seconds
are those of the processor, the direction's factorisation among them. A descent that cannot step any more ends. Values
are the least so far, after three shares of the seconds; differences are those from the spectral direction (SD) for the
same start. Each finished start is added to `OBJECTIVE-SECONDS.jsonl` in FOLDER: the same command resumes with the next.

    python pipelines/reproductions/starts.py FOLDER
    python pipelines/reproductions/starts.py FOLDER --starts 10 --seconds 2

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 3.4.1.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from entropic import data

import scalemani as sm
from scalemani.config.objectives import objective_of
from scalemani.descents.descent import State
from scalemani.descents.phases import Phase, descend
from scalemani.descents.problem import Problem, problem_of
from scalemani.io.figures.charts import new_figure, save_figure
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import ExactSums

DIRECTIONS = {
    "FP": "fixed-point",
    "DiagH": "diagonal-hessian",
    "CG": "conjugate-gradients",
    "L-BFGS": "l-bfgs",
    "SD": "spectral",
    "SD-": "spectral-minus",
}
OBJECTIVES = {"elastic-embedding": 100.0, "s-sne": 1.0}  # with their strengths
PICTURES, PERPLEXITY, DEVIATION = 720, 20, 1e-2
SHARES = (0.25, 0.5, 1.0)  # of the seconds, after which values are compared
WITHOUT_END = 10**9
COMPILING = 0.1  # seconds of a descent before those that count, in which kernels are compiled


def affinities() -> AffinityRows:
    """Return the symmetric entropic affinities of the pictures, whose sum is one as in the thesis."""
    points = data("coil20")["X"][:PICTURES].reshape(PICTURES, -1) / 255.0
    graph = sm.knn_graph(points, n_neighbors=PICTURES - 1, method="exact")
    values = sm.entropic_affinities(graph.distances, perplexity=PERPLEXITY).values
    matrix = sp.csr_matrix(sm.symmetric_affinities(graph.indices, values))
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def descended(problem: Problem, direction: str, start: np.ndarray, seconds: float) -> tuple[np.ndarray, int]:
    """Return the least value after each share of the seconds (3,), and how many iterations were made in all."""
    phase = Phase(direction, WITHOUT_END, kappa=len(start))
    least = problem.value(start, ExactSums(problem.objective.kernel, problem.workspace.over))
    iterations, values, limits = 0, np.full(len(SHARES), least), seconds * np.array(SHARES)
    started = time.process_time()
    for state in descend(problem, [phase], "exact", State(start)):
        spent = time.process_time() - started
        if spent > seconds:
            break
        iterations += 1
        least = np.fmin(least, state.value)
        values[spent <= limits] = least
    return values, iterations


def compare(name: str, values: np.ndarray, iterations: np.ndarray, seconds: float) -> None:
    """Print the values (directions, starts, shares) and iterations (directions, starts) of an objective."""
    last = values[:, :, -1]
    reference = last[list(DIRECTIONS).index("SD")]
    columns = [f"after {share * seconds:g} s" for share in SHARES]
    columns += ["least, most", "iterations", "over SD ± standard error", "starts below SD"]
    print(f"\n| {name} | " + " | ".join(columns) + " |\n" + "| --- " * (1 + len(columns)) + "|")
    for row, direction in enumerate(DIRECTIONS):
        cells = [f"{one.mean():.5g} ± {one.std(ddof=1):.2g}" for one in values[row].T]
        cells += [f"{last[row].min():.5g}, {last[row].max():.5g}", f"{iterations[row].mean():.0f}"]
        over = last[row] - reference
        cells += [f"{over.mean():.3g} ± {over.std(ddof=1) / np.sqrt(len(over)):.2g}", f"{(over < 0).sum()}"]
        print(f"| {direction} | " + " | ".join(cells) + " |", flush=True)


def finished(problem: Problem, path: Path, n_starts: int, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return values (directions, starts, shares) and iterations (directions, starts); make those not in the file."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for seed in range(len(done), n_starts):
        start = DEVIATION * np.random.default_rng(seed).normal(size=(PICTURES, 2))
        if seed == len(done):
            for direction in DIRECTIONS.values():
                descended(problem, direction, start, COMPILING)
        found = [descended(problem, direction, start, seconds) for direction in DIRECTIONS.values()]
        with path.open("a") as file:
            file.write(json.dumps([(values.tolist(), iterations) for values, iterations in found]) + "\n")
    rows = [json.loads(line) for line in path.read_text().splitlines()[:n_starts]]
    values, iterations = (np.array([[one[part] for one in row] for row in rows]) for part in (0, 1))
    return values.swapaxes(0, 1), iterations.T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objectives", choices=OBJECTIVES, nargs="+", default=tuple(OBJECTIVES))
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the processor, for each descent")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows, figure = affinities(), new_figure(4.5 * len(arguments.objectives), 4)
    panels = figure.subplots(1, len(arguments.objectives), squeeze=False)[0]
    with threads(1) as workspace:
        for axes, name in zip(panels, arguments.objectives, strict=True):
            problem = problem_of(rows, objective_of(name), OBJECTIVES[name], workspace.over)
            path = arguments.folder / f"{name}-{arguments.seconds:g}.jsonl"
            values, iterations = finished(problem, path, arguments.starts, arguments.seconds)
            compare(name, values, iterations, arguments.seconds)
            for label, ends, counts in zip(DIRECTIONS, values[:, :, -1], iterations, strict=True):
                axes.scatter(counts, ends, s=12, label=label)
            axes.set(xscale="log", yscale="log", xlabel="iterations", ylabel="objective", title=name)
            axes.legend(frameon=False, fontsize=8)
    save_figure(figure, arguments.folder / f"coil-starts-{'-'.join(arguments.objectives)}.png")


if __name__ == "__main__":
    main()
