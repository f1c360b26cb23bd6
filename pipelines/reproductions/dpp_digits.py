"""Figure 7(a) of the paper on determinantal landmarks: digits classified in 100 dimensions, by the choice of landmarks.

The landmarks of 60,000 digits of MNIST are joined to their nearest neighbours, by the Euclidean distance, or, of the
efficient determinantal ones, by the Bhattacharyya distance of diagonal covariances. Their eigenmaps are carried to all
points by Nystrom's formula. The accuracy is that of the nearest embedded training digit on 10,000 test digits. Each
repetition draws all landmarks anew with one seed; methods are compared by paired t-tests over the repetitions.
Neighbourhoods m = 5,000 and sigma = 5 are the paper's, with pixels from 0 to 1. The paper does not say how many
neighbours a landmark has: here 25. k-means is ours of small batches, and its centroids are the landmarks.

    python pipelines/reproductions/dpp_digits.py FOLDER
    python pipelines/reproductions/dpp_digits.py FOLDER --runs 3 --sizes 200 --references 10000

C. Wachinger and P. Golland, Diverse landmark sampling from determinantal point processes, arXiv:1503.03506, 2015.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import ttest_rel
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import scalemani as sm
from scalemani.errors import DisconnectedGraphError
from scalemani.io.figures import line_figure
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.methods.landmark_graph.kernels import (
    bhattacharyya_neighbors,
    connected_eigenmaps,
    landmark_kernel,
    local_geometry,
    nystrom_gains,
)

COMPONENTS, NEIGHBORS, SIGMA, NEIGHBORHOOD = 100, 25, 5.0, 5000
TRAINING = 60_000
DETERMINANTAL, BHATTACHARYYA = "efficient DPP", "efficient DPP, Bhattacharyya"
CHOICES: dict[str, dict[str, Any]] = {
    "uniform": {"method": "random"},
    "k-means uniform": {"method": "kmeans", "snap": False},
    "k-means++ seeding": {"method": "kmeans++ seeding"},
    "k-means++": {"method": "kmeans++", "snap": False},
    DETERMINANTAL: {
        "method": "dpp",
        "settings": {"landmarks.sigma": SIGMA, "landmarks.neighborhood": NEIGHBORHOOD},
    },
}
# What the paper finds significantly better than what.
CLAIMS = (
    ("k-means++ seeding", "uniform"),
    (DETERMINANTAL, "k-means++ seeding"),
    (BHATTACHARYYA, DETERMINANTAL),
)


def accuracies(train: np.ndarray, others: np.ndarray, labels: np.ndarray, size: int, seed: int) -> dict[str, float]:
    """Return the accuracy of each method in one repetition.

    Parameters
    ----------
    train : (60,000, 784), among which landmarks are chosen
    others : (n, 784), the references of the classifier, then 10,000 test digits
    labels : (n,) of these
    """
    results = {}
    for name, choice in CHOICES.items():
        landmarks = sm.select_landmarks(train, size, random_state=seed, **choice)
        results[name] = accuracy(others, labels, landmarks, None)
        if name == DETERMINANTAL:
            around = local_geometry(train, landmarks.points, NEIGHBORHOOD, diagonal=True)
            results[BHATTACHARYYA] = accuracy(others, labels, landmarks, around.covariances)
    return results


def accuracy(others: np.ndarray, labels: np.ndarray, landmarks: sm.Landmarks, covariances: np.ndarray | None) -> float:
    """Return the share of test digits whose nearest reference has their label; NaN where the graph is in pieces."""
    try:
        embedding = embedded(others, landmarks.points, covariances)
    except DisconnectedGraphError:
        return float("nan")
    n_references = len(others) - (70_000 - TRAINING)
    nearest = KNeighborsClassifier(1, algorithm="brute").fit(embedding[:n_references], labels[:n_references])
    return float(nearest.score(embedding[n_references:], labels[n_references:]))


def embedded(points: np.ndarray, landmarks: np.ndarray, covariances: np.ndarray | None) -> np.ndarray:
    """Return K~^T Phi Lambda^-1, equations 8 to 10 of the paper: eigenmaps of the landmarks, carried to all points."""
    if covariances is None:
        neighbors = nearest_landmarks(landmarks, landmarks, NEIGHBORS + 1)[0][:, 1:]  # each is nearest to itself
    else:
        neighbors = bhattacharyya_neighbors(landmarks, covariances, NEIGHBORS)
    kernel = landmark_kernel(landmarks, neighbors, SIGMA)
    maps, degrees = connected_eigenmaps(kernel, COMPONENTS), np.asarray(kernel.sum(axis=1)).ravel()
    vectors = np.sqrt(degrees)[:, np.newaxis] * maps.embedding * nystrom_gains(maps.eigenvalues)
    tiles = []
    for tile in slices(len(points), TILE_ROWS):
        similarities = np.exp(-0.5 * cdist(points[tile] / SIGMA, landmarks / SIGMA, "sqeuclidean"))
        sums = similarities.sum(axis=1)
        tiles.append(similarities / np.sqrt(np.where(sums > 0.0, sums, 1.0)[:, np.newaxis] * degrees) @ vectors)
    return np.concatenate(tiles)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the figure goes")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 500, 1000), help="numbers of landmarks")
    parser.add_argument("--references", type=int, default=TRAINING, help="training digits that the classifier has")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        points, labels = file["X"].astype(np.float32) / 255, file["y"]
    rows = np.r_[: arguments.references, TRAINING : len(points)]
    means: dict[str, list[float]] = {}
    with threadpool_limits(1):
        for size in arguments.sizes:
            runs: dict[str, list[float]] = {}
            for seed in range(arguments.runs):
                for name, value in accuracies(points[:TRAINING], points[rows], labels[rows], size, seed).items():
                    runs.setdefault(name, []).append(value)
                print(
                    f"{size} landmarks, seed {seed}: {[round(values[-1], 4) for values in runs.values()]}", flush=True
                )
            report(size, runs)
            for name, values in runs.items():
                means.setdefault(name, []).append(100 * float(np.mean(values)))
    curves = {name: (arguments.sizes, values) for name, values in means.items()}
    line_figure(curves, arguments.folder / "dpp-digits.png", "landmarks", "accuracy, %")


def report(size: int, runs: dict[str, list[float]]) -> None:
    """Print means with standard deviations, and the paired tests of the paper's claims."""
    print(f"\n| {size} landmarks | accuracy % |\n| --- | --- |")
    for name, values in runs.items():
        print(f"| {name} | {100 * np.mean(values):.2f} ± {100 * np.std(values, ddof=1):.2f} |")
    for better, worse in CLAIMS:
        difference = 100 * np.mean(np.subtract(runs[better], runs[worse]))
        print(f"{better} less {worse}: {difference:+.2f}, p = {ttest_rel(runs[better], runs[worse]).pvalue:.2g}")


if __name__ == "__main__":
    main()
