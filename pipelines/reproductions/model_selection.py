"""Figure 4.7 of [LLL 4.8.1]: what sigma, L and K_W are best for locally linear landmarks is best for exact eigenmaps.

    python pipelines/reproductions/model_selection.py FOLDER                      # 4,000 points, as in the thesis
    python pipelines/reproductions/model_selection.py FOLDER --stretch 4          # a roll as high as long
    python pipelines/reproductions/model_selection.py FOLDER --points 1000 --landmarks 100 --neighbors 40

A Swiss roll; one of the three varies, the others are at sigma = 1.6, L = 300, K_W = 150. Errors are those after
Procrustes alignment to the true coordinates, arc length and height. Seconds are those of the stages that are a cell's
own: its affinities, W and eigenproblem. FOLDER keeps the runs and gets a figure of errors a parameter.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import scalemani as sm
from scalemani.datasets import generator
from scalemani.figures import line_figure

SIGMA, LANDMARKS, NEIGHBORS = 1.6, 300, 150
SIGMAS = (0.4, 0.8, 1.2, 1.6, 2.4, 3.2, 6.4)
SHARES = (0.2, 0.5, 1.0, 1.5, 2.0)  # of the usual number of landmarks and of neighbours
SOLVERS = ("exact", "lll", "variational-nystrom")


def roll_and_truth(n_points: int, stretch: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points (N, 3) of the roll, its height stretched, and their arc length along it and height (N, 2)."""
    data = generator("swiss-roll", n_points, seed=0)
    points, angle = np.array(data.read(0, n_points), np.float64), data.labels(0, n_points)
    points[:, 1] *= stretch
    length = 0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))
    return points, np.column_stack([length, points[:, 1]])


def curve(
    solver: str, grid: dict[str, list[Any]], given: argparse.Namespace, points: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors and the seconds (n,) of a solver over the values of one parameter."""
    maps = sm.LaplacianEigenmaps(
        solver=solver,
        affinity="gaussian",
        sigma=SIGMA,
        n_landmarks=given.landmarks,
        n_neighbors=given.neighbors,
        store=given.folder / "runs",
    )
    found = sm.tune(maps, grid, points, reference=truth).results_
    return found["procrustes-error"], found["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--landmarks", type=int, default=LANDMARKS)
    parser.add_argument("--neighbors", type=int, default=NEIGHBORS)
    parser.add_argument("--stretch", type=float, default=1.0, help="of the height: 4 makes it as high as long")
    given = parser.parse_args()
    points, truth = roll_and_truth(given.points, given.stretch)
    grids = {
        "sigma": list(SIGMAS),
        "n_landmarks": [round(share * given.landmarks) for share in SHARES],
        "n_neighbors": [round(share * given.neighbors) for share in SHARES],
    }
    for name, values in grids.items():
        curves = {}
        for solver in SOLVERS:
            errors, seconds = curve(solver, {name: values}, given, points, truth)
            curves[solver] = (np.array(values, float), errors)
            best = values[int(np.nanargmin(errors))]
            cells = "  ".join(f"{value:g}: {error:.3f}" for value, error in zip(values, errors, strict=True))
            print(f"{name:<12}{solver:<22}best {best:<8g}{np.nansum(seconds):>8.1f} s   {cells}", flush=True)
        line_figure(curves, given.folder / f"{name}.png", name, "error to the true coordinates", log_axes="x")


if __name__ == "__main__":
    main()
