"""Figure 4.8 of the thesis: nearest-neighbour classification of MNIST over sigma and K_W, from one Z.

50,000 digits train and 10,000 test, which are embedded together by locally linear landmarks (LLL): 1,000 of them by
k-means, K_Z = 50, 500 dimensions; 10,000 others are placed out of sample by their weights over the landmarks.
The error of a cell is the least over the numbers of leading dimensions. Distances are those of pixels from 0 to 1.
The graph, the landmarks and both Z are computed once. A cell of LLL computes W, the reduced problem, its eigenvectors
and their product with Z. Exact eigenmaps, by ARPACK, have fewer dimensions (the thesis has 500); their cells stay
empty where the graph falls into components.

    python pipelines/reproductions/classification.py FOLDER
    python pipelines/reproductions/classification.py FOLDER --points 7000 --landmarks 300 --components 100

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 4.8.1.
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

import scalemani as sm
from scalemani.errors import ConvergenceError
from scalemani.io.figures import grid_figure, line_figure
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps

SIGMAS, NEIGHBORS = (2.0, 4.6, 10.0, 1000.0), (1, 3, 10, 50, 200)
WIDTHS = (10, 20, 50, 100, 200, 350, 500)  # numbers of leading dimensions that are classified in
LANDMARK_NEIGHBORS = 50
QUERIES_AT_ONCE = 500
SHOWN = (10.0, 1)  # sigma and K_W whose error is drawn over the dimensions, as in the thesis
SETS = ("exact", "LLL", "out-of-sample")


class Digits(NamedTuple):
    """Points (N, 784), their labels (N,), and how many of them train, test, and are placed out of sample."""

    points: np.ndarray
    labels: np.ndarray
    sizes: tuple[int, int, int]

    @property
    def embedded(self) -> np.ndarray:
        """The points that train and test."""
        return self.points[: sum(self.sizes[:2])]


class Shared(NamedTuple):
    """What all cells share: neighbours and their distances, Z of the embedded points and of the others."""

    indices: np.ndarray
    distances: np.ndarray
    weights: sp.csr_matrix
    weights_of_others: sp.csr_matrix


def digits(n_points: int) -> Digits:
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        images, labels = file["X"], file["y"]
    n_test = n_points // 7
    rows = np.r_[: n_points - n_test, len(images) - n_test : len(images)]  # out of sample: of the digits for tests
    return Digits(images[rows].astype(np.float32) / 255, labels[rows], (n_points - 2 * n_test, n_test, n_test))


def shared_by_cells(data: Digits, n_landmarks: int) -> Shared:
    """Compute what does not depend on sigma and K_W, and print what it took."""
    seconds, started = {}, time.perf_counter()
    graph = sm.knn_graph(data.embedded, max(NEIGHBORS), method="exact")
    seconds["graph"] = time.perf_counter() - started
    landmarks = sm.select_landmarks(data.embedded, n_landmarks, "kmeans")
    seconds["landmarks"] = time.perf_counter() - started - sum(seconds.values())
    weights = sm.landmark_weights(data.embedded, landmarks, LANDMARK_NEIGHBORS)
    seconds["Z"] = time.perf_counter() - started - sum(seconds.values())
    others = sm.landmark_weights(data.points[len(data.embedded) :], landmarks, LANDMARK_NEIGHBORS)
    seconds["Z out of sample"] = time.perf_counter() - started - sum(seconds.values())
    print("once: " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()), flush=True)
    return Shared(graph.indices, graph.distances, weights, others)


def errors_by_width(data: Digits, embedding: np.ndarray, part: int) -> dict[int, float]:
    """Return the share of digits whose nearest one of those that train says another class, by leading dimensions.

    Parameters
    ----------
    embedding : of the points that train (rows before those of any part), then of the part alone
    part : 1 for those that test, 2 for those out of sample
    """
    n_train, width = data.sizes[0], embedding.shape[1]
    first = sum(data.sizes[:part])
    classes, truth = data.labels[:n_train], data.labels[first : first + data.sizes[part]]
    table = embedding.astype(np.float32)
    train, queries = table[:n_train], table[n_train:]
    widths = [one for one in WIDTHS if one < width] + [width]
    wrong = dict.fromkeys(widths, 0)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        rows = slice(start, start + QUERIES_AT_ONCE)
        squares = np.zeros((len(queries[rows]), n_train), np.float32)  # less those of the query itself
        for before, stop in zip([0, *widths], widths, strict=False):
            squares += np.square(train[:, before:stop]).sum(axis=1)
            squares -= 2 * queries[rows, before:stop] @ train[:, before:stop].T
            wrong[stop] += int(np.count_nonzero(classes[squares.argmin(axis=1)] != truth[rows]))
    return {one: count / len(queries) for one, count in wrong.items()}


def by_landmarks(data: Digits, shared: Shared, affinities: sp.csr_matrix, width: int) -> dict[str, Any]:
    """Return the errors of LLL on both parts, and the seconds of what follows W."""
    started = time.perf_counter()
    _, vectors = sm.solve_reduced(*sm.reduce_laplacian(affinities, shared.weights), n_components=width)
    embedding = shared.weights @ vectors
    seconds = time.perf_counter() - started
    outside = np.concatenate([embedding[: data.sizes[0]], shared.weights_of_others @ vectors])
    return {
        "LLL": errors_by_width(data, embedding, 1),
        "out-of-sample": errors_by_width(data, outside, 2),
        "LLL, s": seconds,
    }


def by_eigensolver(data: Digits, affinities: sp.csr_matrix, width: int) -> dict[str, Any]:
    """Return the errors of exact eigenmaps and their seconds; nothing where they do not exist."""
    n_components = connected_components(affinities, directed=False, return_labels=False)
    if n_components > 1:
        print(f"exact: {n_components} components")
        return {}
    started = time.perf_counter()
    try:
        embedding = exact_eigenmaps(affinities, width).embedding
    except ConvergenceError as error:
        print(f"exact: {error}")
        return {}
    return {"exact, s": time.perf_counter() - started, "exact": errors_by_width(data, embedding, 1)}


def cells_of(arguments: argparse.Namespace) -> Iterator[tuple[dict[str, float], dict[str, Any]]]:
    """Yield sigma and K_W of each cell with its errors and seconds."""
    data = digits(arguments.points)
    shared = shared_by_cells(data, arguments.landmarks)
    for n_neighbors in NEIGHBORS:
        for sigma in SIGMAS:
            values = sm.gaussian_affinities(shared.distances[:, :n_neighbors], sigma)
            affinities = sm.symmetric_affinities(shared.indices[:, :n_neighbors], values)
            results = by_landmarks(data, shared, affinities, arguments.components)
            results |= by_eigensolver(data, affinities, arguments.exact_components)
            yield {"sigma": sigma, "K_W": n_neighbors}, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=70_000, help="digits in all three parts")
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--components", type=int, default=500)
    parser.add_argument("--exact-components", type=int, default=100)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    cells, errors, curves = [], [], {}
    print("| K_W | sigma | " + " | ".join(f"{name}: error % (dimensions)" for name in SETS) + " | exact, s | LLL, s |")
    print("|" + " --- |" * (4 + len(SETS)))
    with threadpool_limits(1):
        for cell, results in cells_of(arguments):
            shown = []
            for name in SETS:
                of_widths = results.get(name, {})
                best = min(of_widths, key=lambda width: of_widths[width], default=None)
                cells.append({**cell, "of": name})
                errors.append(np.nan if best is None else 100 * of_widths[best])
                shown.append("" if best is None else f"{errors[-1]:.2f} ({best})")
                if (cell["sigma"], cell["K_W"]) == SHOWN and of_widths:
                    curves[name] = (list(of_widths), [100 * error for error in of_widths.values()])
            seconds = [f"{results[name]:.1f}" if name in results else "" for name in ("exact, s", "LLL, s")]
            print(f"| {cell['K_W']} | {cell['sigma']:g} | " + " | ".join(shown + seconds) + " |", flush=True)
    grid_figure(cells, errors, arguments.folder / "classification.png", "1-nearest-neighbour error, %")
    line_figure(curves, arguments.folder / "classification-dimensions.png", "dimensions", "error, %", log_axes="x")


if __name__ == "__main__":
    main()
