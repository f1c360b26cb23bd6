"""Figure 5.1 of the thesis: the error and the speed of Barnes-Hut sums over theta.

A cell acts as one point where its size over its distance is below theta. The thesis does not say which points, how many
and which kernel. Here they are a map of 60 clusters, 60 units wide, with as many points as `--points`, and both the
Gaussian kernel of the elastic embedding and Student's of t-SNE. Speeds are the processor seconds of exact sums over
those of trees, `--runs` maps with their standard deviations; errors are those of all gradients, relative to their norm.

    python pipelines/reproductions/theta.py FOLDER
    python pipelines/reproductions/theta.py FOLDER --points 2000 --runs 2

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 5.2.1.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import scalemani as sm
from scalemani.io.figures.charts import line_figure

THETAS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # the trees take none beyond
KERNELS = ("gaussian", "student")
CLUSTERS, EXTENT = 60, 60.0


def clustered_map(n_points: int, seed: int) -> np.ndarray:
    """Return a map (N, 2) of clusters of many widths."""
    rng = np.random.default_rng(seed)
    centers, widths = rng.normal(size=(CLUSTERS, 2)), rng.gamma(2.0, 0.07, CLUSTERS)
    member = rng.integers(CLUSTERS, size=n_points)
    points = centers[member] + widths[member, np.newaxis] * rng.normal(size=(n_points, 2))
    return points * (EXTENT / np.ptp(points, axis=0).max())


def summed(points: np.ndarray, kernel: Any, theta: float | None) -> tuple[np.ndarray, float]:
    """Return gradients (N, 2) by trees, or exact ones where theta is None, and the processor seconds."""
    started = time.process_time()
    method: Any = "exact" if theta is None else "barnes-hut"
    _, gradient = sm.repulsion(points, kernel, method, theta=theta)
    return gradient, time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3, help="maps")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found = np.empty((len(KERNELS), len(THETAS), arguments.runs, 2))
    for number, kernel in enumerate(KERNELS):
        for theta in (None, THETAS[0]):
            summed(clustered_map(500, 0), kernel, theta)  # compiled
        for run in range(arguments.runs):
            points = clustered_map(arguments.points, run)
            exact, seconds = summed(points, kernel, None)
            for place, theta in enumerate(THETAS):
                gradient, spent = summed(points, kernel, theta)
                error = np.linalg.norm(gradient - exact) / np.linalg.norm(exact)
                found[number, place, run] = error, seconds / spent
    report(found, arguments.folder)


def report(found: np.ndarray, folder: Path) -> None:
    """Print errors and speeds (kernels, thetas, runs, 2), and draw them."""
    print("| theta | " + " | ".join(f"{kernel}: error | speed" for kernel in KERNELS) + " |")
    print("| --- " * (1 + 2 * len(KERNELS)) + "|")
    for place, theta in enumerate(THETAS):
        cells = [
            f"{mean:.2g} ± {deviation:.1g}"
            for of_kernel in found[:, place]
            for mean, deviation in zip(of_kernel.mean(axis=0), of_kernel.std(axis=0, ddof=1), strict=True)
        ]
        print(f"| {theta:g} | " + " | ".join(cells) + " |", flush=True)
    for column, name in enumerate(("relative error", "times faster than exact sums")):
        curves = {kernel: (THETAS, found[number, :, :, column].mean(axis=1)) for number, kernel in enumerate(KERNELS)}
        line_figure(curves, folder / f"theta-{('error', 'speed')[column]}.png", "theta", name, log_axes="xy")


if __name__ == "__main__":
    main()
