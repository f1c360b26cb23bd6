"""Table 1 and figure 1 of the paper on determinantal landmarks: Nystrom errors and coverage of a Swiss roll.

1,000 points of a Swiss roll and of a fish bowl, a Gaussian kernel with sigma = 1, 25 to 100 landmarks, means over 50
runs. Errors are tr(K) - tr(K_XJ K_JJ^+ K_JX), equation 1. Neighbourhoods of efficient sampling are m = 30 and 150 as in
the paper. It does not say how large its surfaces are: both are scaled to unit variance here, a rule that the table does
not enter into. Absolute errors follow from the scale; the order of methods is what compares with the paper.

    python pipelines/reproductions/dpp.py FOLDER
    python pipelines/reproductions/dpp.py FOLDER --runs 5 --deviation 0.75

C. Wachinger and P. Golland, Diverse landmark sampling from determinantal point processes, arXiv:1503.03506, 2015.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, kmeans_plusplus
from threadpoolctl import threadpool_limits

import scalemani as sm
from scalemani.datasets.generator import FishBowl, Generator, SwissRoll
from scalemani.methods.determinantal.kernels import DeterminantalChoice
from scalemani.methods.determinantal.rules import determinantal, repulsive

N_POINTS, SIGMA = 1000, 1.0
SIZES = (25, 50, 60, 70, 80, 90, 100)
LEAST_EIGENVALUE = 1e-12  # of the largest: below, the inverse of a kernel of landmarks is noise
PAPER = {
    "Swiss roll": {
        "uniform": (70.384, 8.006, 4.838, 2.785, 1.676, 0.731, 0.442),
        "k-means uniform": (28.124, 3.848, 2.319, 1.393, 0.756, 0.403, 0.235),
        "k-means++ seeding": (50.114, 5.832, 3.033, 1.655, 1.013, 0.683, 0.347),
        "k-means++": (24.954, 3.575, 1.915, 1.018, 0.711, 0.383, 0.222),
        "efficient DPP": (33.036, 3.371, 1.466, 0.844, 0.488, 0.312, 0.202),
    },
    "fish bowl": {
        "uniform": (44.026, 8.394, 6.512, 4.678, 1.025, 0.935, 0.758),
        "k-means uniform": (12.627, 1.230, 0.612, 0.393, 0.192, 0.119, 0.080),
        "k-means++ seeding": (22.841, 2.337, 1.436, 0.643, 0.252, 0.089, 0.045),
        "k-means++": (11.503, 0.859, 0.402, 0.150, 0.096, 0.039, 0.021),
        "efficient DPP": (10.846, 0.657, 0.249, 0.095, 0.014, 0.005, 0.002),
    },
}
FIGURE_LANDMARKS, FIGURE_NEIGHBORHOOD, FIGURE_DRAWS = 50, 20, 20


class Surface(NamedTuple):
    """Points (1,000, 3), and the neighbourhood m that the paper takes for them."""

    points: np.ndarray
    neighborhood: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the figure goes")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--deviation", type=float, default=1.0, help="root of the mean variance of the coordinates")
    arguments = parser.parse_args()
    roll, roll_scale = scaled(SwissRoll(N_POINTS, 0), arguments.deviation)
    bowl, bowl_scale = scaled(FishBowl(N_POINTS, 0), arguments.deviation)
    print(f"the roll of radius 4.7 to 14.1 is scaled by {roll_scale:.3f}, the bowl of radius 1 by {bowl_scale:.3f}")
    with threadpool_limits(1):
        for name, surface in {"Swiss roll": Surface(roll, 30), "fish bowl": Surface(bowl, 150)}.items():
            write_table(name, surface, arguments.runs)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        draw_figure(roll, roll_scale, arguments.folder / "dpp-figure-1.png")


def scaled(surface: Generator, deviation: float) -> tuple[np.ndarray, float]:
    """Return points (1,000, 3) with this root of the mean variance of their coordinates, and the factor of scale."""
    points = surface.read(0, N_POINTS).astype(np.float64)
    scale = deviation / np.sqrt(points.var(axis=0).mean())
    return scale * points, float(scale)


def write_table(name: str, surface: Surface, n_runs: int) -> None:
    """Print a table of mean errors, each with its standard error, and below it the paper's."""
    print(f"\n| {name} | {' | '.join(map(str, SIZES))} |\n|{' --- |' * (len(SIZES) + 1)}")
    for method, choose in METHODS.items():
        cells = []
        for n_landmarks in SIZES:
            errors = [nystrom_error(surface.points, choose(surface, n_landmarks, seed)) for seed in range(n_runs)]
            cells.append(f"{np.mean(errors):.3f} ± {np.std(errors) / np.sqrt(n_runs):.3f}")
        print(f"| {method} | {' | '.join(cells)} |", flush=True)
        print(f"| {method}, paper | {' | '.join(f'{error:.3f}' for error in PAPER[name][method])} |", flush=True)


def nystrom_error(points: np.ndarray, landmarks: np.ndarray) -> float:
    """Return the trace of what the Nystrom approximation leaves of the kernel of all points."""
    values, vectors = eigh(gaussian(landmarks, landmarks))
    large = values > LEAST_EIGENVALUE * values[-1]
    factor = gaussian(points, landmarks) @ (vectors[:, large] / np.sqrt(values[large]))
    return float(len(points) - np.square(factor).sum())


def gaussian(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.exp(-cdist(points, others, "sqeuclidean") / (2 * SIGMA**2))


def uniform(surface: Surface, n_landmarks: int, seed: int) -> np.ndarray:
    return sm.select_landmarks(surface.points, n_landmarks, random_state=seed).points


def kmeans(init: str) -> Callable[[Surface, int, int], np.ndarray]:
    """Return how centroids of Lloyd's algorithm are computed; they are the landmarks, as in the paper."""

    def centroids(surface: Surface, n_landmarks: int, seed: int) -> np.ndarray:
        return KMeans(n_landmarks, init=init, n_init=1, random_state=seed).fit(surface.points).cluster_centers_

    return centroids


def seeds(surface: Surface, n_landmarks: int, seed: int) -> np.ndarray:
    # One draw a seed; scikit-learn's default draws several and keeps the best.
    return kmeans_plusplus(surface.points, n_landmarks, random_state=seed, n_local_trials=1)[0]


def efficient(surface: Surface, n_landmarks: int, seed: int) -> np.ndarray:
    choice = DeterminantalChoice(n_landmarks, "dpp", seed, N_POINTS, sigma=SIGMA, neighborhood=surface.neighborhood)
    return repulsive(surface.points, choice).points


METHODS: dict[str, Callable[[Surface, int, int], np.ndarray]] = {
    "uniform": uniform,
    "k-means uniform": kmeans("random"),
    "k-means++ seeding": seeds,
    "k-means++": kmeans("k-means++"),
    "efficient DPP": efficient,
}


def draw_figure(roll: np.ndarray, scale: float, path: Path) -> None:
    """Draw samples unrolled, and print how well each method covers the inner third of the roll."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    choice = DeterminantalChoice(FIGURE_LANDMARKS, sample_points=N_POINTS, sigma=SIGMA)
    samplers = {
        "standard k-DPP": (determinantal, choice),
        "geodesic k-DPP": (determinantal, replace(choice, geodesic=True)),
        "efficient DPP": (repulsive, replace(choice, neighborhood=FIGURE_NEIGHBORHOOD)),
    }
    angle = SwissRoll(N_POINTS, 0).labels(0, N_POINTS)
    length = scale * 0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))
    flat = np.column_stack([length - length.min(), roll[:, 1]])
    inner = flat[:, 0] < flat[:, 0].max() / 3
    figure, axes = pyplot.subplots(1, len(samplers), figsize=(15, 3), sharey=True)
    print(f"\n| {FIGURE_LANDMARKS} landmarks | landmarks in the inner third | distance to them there: mean | largest |")
    print("| --- | --- | --- | --- |")
    for axis, (name, (sampler, choice)) in zip(axes, samplers.items(), strict=True):
        draws = [sampler(roll, replace(choice, seed=seed)).rows for seed in range(FIGURE_DRAWS)]
        distances = np.array([cdist(flat[inner], flat[rows]).min(axis=1) for rows in draws])
        counts = np.mean([inner[rows].sum() for rows in draws])
        print(f"| {name} | {counts:.1f} | {distances.mean():.3f} | {distances.max(axis=1).mean():.3f} |", flush=True)
        axis.scatter(*flat.T, s=2, color="0.8")
        axis.scatter(*flat[draws[0]].T, s=18, color="tab:red")
        axis.set(title=f"{name}: {counts:.1f} landmarks in the inner third", xlabel="length along the roll")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
