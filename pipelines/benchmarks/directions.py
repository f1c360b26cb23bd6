"""Search directions beside each other: 720 COIL images, and 20,000 MNIST digits; learning curves drawn.

    python pipelines/benchmarks/directions.py WORK_FOLDER [--data coil mnist homotopy] [--seconds 60] [--threads 2]

coil: ten objects of COIL-20, 72 views each, perplexity 20, d = 2 ([PH] 3.4.1): elastic embedding at strength 100 and
s-SNE. As in the paper all descents start near one minimum; the seconds are to within a share of the way from the start
to the least value found, forces exact. They compare directions where all reach the same minimum, as for s-SNE; each
descent of the elastic embedding ends in another one, so that its seconds compare nothing.
homotopy: the 50 strengths of [PH] 3.4.1.
mnist: 20,000 digits, perplexity 50, kappa = 7 ([PH] 3.4.2), elastic embedding and t-SNE from a small random start, each
direction for as many seconds, forces by the particle mesh (exact for SD-, whose curvature is).
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from layouts import exact_value, graph_of, problem_of, threads
from measuring import scalemani, settings, show

import scalemani as sm
from scalemani.descents.descent import State
from scalemani.descents.phases import Phase, descend
from scalemani.io.figures import line_figure
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import ExactSums

SMALL = (
    "gradient-descent",
    "fixed-point",
    "diagonal-hessian",
    "conjugate-gradients",
    "l-bfgs",
    "spectral",
    "spectral-minus",
)
LARGE = ("gradient-descent", "fixed-point", "l-bfgs", "spectral", "spectral+l-bfgs", "spectral-minus")
COIL_OBJECTS, COIL_PERPLEXITY, COIL_STRENGTH = 10, 20, 100.0
NEAR_START = 0.1  # deviation of the start about the minimum
SETTLED, MOST_SETTLING_SECONDS = 1e-14, 120.0  # of the search for that minimum
WITHIN = (1e-3, 1e-6)  # of the way from the start to the least value
MOST_ITERATIONS = 20_000
STRENGTHS = np.geomspace(1e-4, 1e2, 50)


def coil_images() -> np.ndarray:
    """Return 720 views of ten objects, (720, 16384), pixels in [0, 1]."""
    path = Path(os.environ.get("SCALEMANI_DATA", ".")) / "coil20.npz"
    if not path.exists():
        raise SystemExit("set SCALEMANI_DATA to the folder that holds coil20.npz (X, y)")
    with np.load(path, allow_pickle=False) as file:
        chosen = np.isin(file["y"], np.unique(file["y"])[:COIL_OBJECTS])
        return file["X"][chosen].reshape(int(chosen.sum()), -1) / 255.0


def coil_rows() -> AffinityRows:
    """Return the symmetric affinities of the images, whose sum is one as in the paper."""
    images = coil_images()
    graph = sm.knn_graph(images, n_neighbors=len(images) - 1, method="exact")
    values = sm.entropic_affinities(graph.distances, perplexity=COIL_PERPLEXITY).values
    matrix = sp.csr_matrix(sm.symmetric_affinities(graph.indices, values))
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def curve(problem, phases, method, start, seconds):
    """Return (iterations, 3): seconds, value and evaluations of a descent, for so many seconds at the most."""
    started, found = time.perf_counter(), []
    for state in descend(problem, phases, method, State(start)):
        value = state.value if np.isfinite(state.value) else np.nan
        found.append((time.perf_counter() - started, value, state.evaluations))
        if found[-1][0] > seconds:
            break
    return np.array(found), state.positions


def converged_minimum(problem, n_points):
    """Return positions at which the gradient is small beside its first one, and by how much."""
    first = np.random.default_rng(0).normal(size=(n_points, 2))
    settle = [
        Phase(direction, MOST_ITERATIONS, kappa=n_points, converged=SETTLED, window=20)
        for direction in ("spectral+l-bfgs", "l-bfgs")
    ]
    _, minimum = curve(problem, settle, "exact", first, MOST_SETTLING_SECONDS)
    exact = ExactSums(problem.objective.kernel, problem.workspace.over)
    norms = [float(np.linalg.norm(problem.evaluate(at, exact).gradient)) for at in (minimum, first)]
    return minimum, norms[0] / norms[1]


def coil(folder, over, seconds):
    """Compare directions on the images, to one minimum."""
    rows, table = coil_rows(), []
    for method, strength in (("elastic-embedding", COIL_STRENGTH), ("s-sne", 1.0)):
        problem = problem_of(rows, method, over, strength)
        minimum, gradient_norm = converged_minimum(problem, rows.n_points)
        noise = np.random.default_rng(1).normal(size=minimum.shape)
        start = minimum + NEAR_START * minimum.std() * noise
        origin = exact_value(problem, start)
        curves = {}
        for direction in SMALL:
            phase = Phase(direction, MOST_ITERATIONS, kappa=rows.n_points)
            curves[direction], _ = curve(problem, [phase], "exact", start, seconds)
        least = min(found[:, 1].min() for found in curves.values())
        for direction, found in curves.items():
            row = {"objective": method, "direction": direction, "iterations": len(found), "least": found[:, 1].min()}
            for share in WITHIN:
                near = np.flatnonzero(found[:, 1] <= least + share * (origin - least))
                if len(near):
                    row |= {f"iterations to {share:g}": int(near[0]) + 1, f"seconds to {share:g}": found[near[0], 0]}
            table.append({**row, "gradient at the start's minimum": gradient_norm})
        draw(folder / f"coil-{method}.png", curves, f"720 COIL images, {method}", least)
    show(table)


def homotopy(over, seconds):
    """Follow the minimum over 50 strengths."""
    rows, table = coil_rows(), []
    first = 1e-2 * np.random.default_rng(0).normal(size=(rows.n_points, 2))
    problem = problem_of(rows, "elastic-embedding", over)
    for direction in ("fixed-point", "conjugate-gradients", "l-bfgs", "spectral", "spectral-minus"):
        phases = [
            Phase(direction, 10_000, strength=share, kappa=rows.n_points, converged=1e-6, window=1)
            for share in STRENGTHS.tolist()
        ]
        found, _ = curve(problem, phases, "exact", first, seconds)
        table.append(
            {"direction": direction, "seconds": found[-1, 0], "evaluations": int(found[-1, 2]), "value": found[-1, 1]}
        )
    show(table)


def mnist(folder, over, seconds):
    """Compare directions on 20,000 digits."""
    points = folder / "digits-20000.npy"
    with np.load(mnist_file(), allow_pickle=False) as file:
        np.save(points, file["X"][:20_000])
    run = folder / "digits-20000"
    asked = settings(affinities__perplexity=50, neighbors__n_neighbors=150, embedding__residual=1e-2)
    scalemani("embed", str(points), str(run), *asked)
    rows, table = graph_of(run).rows, []
    start = 1e-2 * np.random.default_rng(0).normal(size=(rows.n_points, 2))
    for method, strength in (("elastic-embedding", 1e-2), ("t-sne", 1.0)):
        problem, curves = problem_of(rows, method, over, strength), {}
        for direction in LARGE:
            phase = Phase(direction, MOST_ITERATIONS, kappa=7, tolerance=1e-4)
            curves[direction], _ = curve(problem, [phase], "grid", start, seconds)
        least = min(found[:, 1].min() for found in curves.values())
        for direction, found in curves.items():
            half = found[np.searchsorted(found[:, 0], seconds / 4) - 1, 1]
            table.append(
                {
                    "objective": method,
                    "direction": direction,
                    "iterations": len(found),
                    "value after a quarter": half,
                    "value": found[-1, 1],
                    "above the least": found[-1, 1] - least,
                }
            )
        draw(folder / f"digits-20000-{method}.png", curves, f"20,000 digits, {method}", least)
    show(table)


def draw(path, curves, title, least):
    """Draw learning curves over time, as what is left above the least value."""
    span = max(found[0, 1] for found in curves.values()) - least
    series = {name: (found[:, 0], np.maximum((found[:, 1] - least) / span, 1e-8)) for name, found in curves.items()}
    line_figure(series, path, "seconds", "objective above the least value, share", title, log_axes="xy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="+", default=["coil", "mnist", "homotopy"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with threads(arguments.threads) as over:
        if "coil" in arguments.data:
            coil(arguments.folder, over, arguments.seconds)
        if "homotopy" in arguments.data:
            homotopy(over, arguments.seconds)
        if "mnist" in arguments.data:
            mnist(arguments.folder, over, arguments.seconds)


if __name__ == "__main__":
    main()
