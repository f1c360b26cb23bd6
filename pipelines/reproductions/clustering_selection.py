"""Figure 4.14 of the thesis: clustering error over sigma and K_W, of exact spectral clustering and of landmarks.

10,000 digits of MNIST into ten clusters, 1,000 random landmarks; an `sm.tune` for each sigma and solver, in one store:
all cells share points and graph, and those of landmarks share Z. A row of the table is printed once its cells are
there, and the same command resumes with the cell that a stopped run was in. The error is the share of digits in the
wrong cluster after the best matching of clusters to classes (the thesis lets every cluster stand for its majority,
which errs less). Exact eigenvectors are refined to a residual of 1e-5, and are refused for a graph in pieces, where
they are one basis of many; landmarks run on it as they do everywhere, with pieces joined through their closest pairs.
`beside` compares times and mutual information with scikit-learn's.

    python pipelines/reproductions/clustering_selection.py FOLDER grid beside
    python pipelines/reproductions/clustering_selection.py FOLDER grid --points 2000 --landmarks 300
    python pipelines/reproductions/clustering_selection.py FOLDER grid --cells 20

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 4.8.4.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import SpectralClustering

import scalemani as sm
from scalemani.io.figures import grid_figure

CLUSTERS = 10
SIGMAS, NEIGHBORS = (300.0, 1000.0, 3000.0), (1, 3, 10, 30, 100, 300)
RESIDUAL = 1e-5  # of what stands for exact: ARPACK takes minutes a cell where edges are few and weights far apart
SCORE = "clustering-error"
SPARSE_NEIGHBORS = 10  # scikit-learn's default


def digits(n_points: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        return file["X"][:n_points], file["y"][:n_points]


def grid(arguments: argparse.Namespace) -> None:
    """Print errors and seconds of every cell, a row of cells at a time, and draw both as heat maps."""
    points, labels = digits(arguments.points)
    common = {"affinity": "gaussian", "store": arguments.folder / f"runs-{arguments.points}"}
    solvers = {
        "exact": sm.SpectralClustering(CLUSTERS, residual=RESIDUAL, disconnected="error", **common),
        "LLL": sm.SpectralClustering(CLUSTERS, solver="lll", n_landmarks=arguments.landmarks, **common),
    }
    counts = [one for one in arguments.neighbors if one < arguments.points]
    cells, errors, seconds = [], [], []
    print("| sigma | | " + " | ".join(f"K_W {one}" for one in counts) + " |\n" + "| --- " * (2 + len(counts)) + "|")
    for sigma in arguments.sigmas:
        for name, solver in solvers.items():
            values = {"n_neighbors": counts, "affinities.sigma": [sigma]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of eigenvalues close to each other, cell by cell
                tuning = sm.tune(solver, values, points, labels, scoring=SCORE)
            cells += [{"K_W": one, "sigma": sigma, "of": name} for one in counts]
            errors.append(100 * tuning.results_[SCORE])
            seconds.append(tuning.results_["seconds"])
            for title, row in (("error %", errors[-1]), ("seconds", seconds[-1])):
                shown = " | ".join("" if np.isnan(one) else f"{one:.1f}" for one in row)
                print(f"| {sigma:.4g} | {name}, {title} | {shown} |", flush=True)
    for number, name in enumerate(solvers):
        found = np.stack(errors[number :: len(solvers)])
        row, column = np.unravel_index(np.nanargmin(found), found.shape)
        print(
            f"{name}: least error {found[row, column]:.1f} % at sigma {arguments.sigmas[row]:.4g} and K_W "
            f"{counts[column]}; {np.isnan(found).sum()} of {found.size} cells failed"
        )
    grid_figure(cells, np.concatenate(errors), arguments.folder / "clustering-errors.png", "clustering error, %")
    grid_figure(cells, np.concatenate(seconds), arguments.folder / "clustering-seconds.png", "seconds")


def compare(arguments: argparse.Namespace) -> None:
    """Print seconds, mutual information and error of scikit-learn and of both solvers, and of ours on all digits."""
    peer = SpectralClustering(
        CLUSTERS, affinity="nearest_neighbors", n_neighbors=SPARSE_NEIGHBORS, assign_labels="kmeans", random_state=0
    )
    ours = {
        "scalemani, refined": sm.SpectralClustering(CLUSTERS),
        "scalemani, LLL": sm.SpectralClustering(CLUSTERS, solver="lll", n_landmarks=arguments.landmarks),
    }
    print("| digits | program | seconds | NMI | error % |\n| --- | --- | --- | --- | --- |")
    for n_points, programs in ((arguments.points, {"scikit-learn": peer, **ours}), (arguments.all_points, ours)):
        points, labels = digits(n_points)
        for name, program in programs.items():
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clusters = program.fit(points.astype(np.float32)).labels_
            seconds = time.perf_counter() - started
            information = sm.measures.normalized_mutual_information(clusters, labels)
            error = 100 * sm.measures.clustering_error(clusters, labels)
            print(f"| {n_points} | {name} | {seconds:.1f} | {information:.3f} | {error:.1f} |", flush=True)


def spread(least: int, most: int, count: int) -> list[int]:
    """Return so many whole numbers, evenly spaced in their logarithms but for those that coincide when rounded."""
    finer = (np.unique(np.geomspace(least, most, n).round().astype(int)) for n in range(count, most))
    return next(values for values in finer if len(values) >= count).tolist()


PARTS = {"grid": grid, "beside": compare}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--all-points", type=int, default=70_000)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--sigmas", type=float, nargs="+", default=SIGMAS)
    parser.add_argument("--neighbors", type=int, nargs="+", default=NEIGHBORS, help="values of K_W")
    parser.add_argument(
        "--cells", type=int, help="so many sigmas and values of K_W in the same ranges, 20 in the thesis"
    )
    arguments = parser.parse_args()
    if arguments.cells:
        ends = [(values[0], values[-1]) for values in (arguments.sigmas, arguments.neighbors)]
        arguments.sigmas = list(np.geomspace(*ends[0], arguments.cells))
        arguments.neighbors = spread(*ends[1], arguments.cells)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
