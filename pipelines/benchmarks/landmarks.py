"""LLL against exact Laplacian eigenmaps, LE(Z), Nystrom and variational Nystrom: error and time by number of landmarks.

Figure 4.5 of [LLL 4.8.1]: 60,000 MNIST digits, K_W = 200 neighbours, sigma = 200, d = 50, K_Z = 50. Variational
Nystrom, which is later, takes the landmarks of LLL and the same W: seconds of both hold all that follows W. The paper
does not say in which units its pixels are: with --unit 255 distances are those of pixels from 0 to 255, with --unit 1
of pixels from 0 to 1. Nor does it say whether its error after Procrustes alignment is squared, as the `procrustes` of
common software returns it: both are shown, and the error of the first two columns alone.

    python pipelines/benchmarks/landmarks.py WORK_FOLDER --unit 1
    python pipelines/benchmarks/landmarks.py WORK_FOLDER --unit 1 --selection kmeans --landmark-neighbors 5
    python pipelines/benchmarks/landmarks.py WORK_FOLDER --points 4000 --sizes 200 400 --seeds 1    # a trial

With --passes a run goes on from 600 landmarks by as many passes of refinement over the same graph.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from digits import training_digits
from measuring import records, scalemani, settings, show
from threadpoolctl import threadpool_limits

import scalemani as sm
from scalemani.io.figures import line_figure
from scalemani.kernels.affinities.bandwidths import gaussian_affinities
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.measures import procrustes_error
from scalemani.kernels.spectral.eigenmaps import Eigenmaps, exact_eigenmaps
from scalemani.methods.variational.kernels import completed_weights, direct_weights, landmark_numbers
from scalemani.runs.opened import open_run

N_NEIGHBORS, SIGMA, N_COMPONENTS, LANDMARK_NEIGHBORS = 200, 200.0, 50, 50
FIRST_COLUMNS = 2
FEW_LANDMARKS = 600
VARIATIONAL = "variational Nystrom"
OUT_OF_REACH = 1e-9  # a residual that keeps a run refining for as many passes as it may
REFINING = (
    "landmarks",
    "landmark_weights",
    "reduced",
    "landmark_embedding",
    "coarse_graphs",
    "coarse_embedding",
    "embedding",
)
SIZES = (100, 200, 300, 451, 600, 1000, 2000, 5000, 10_000)
LANDMARK_ONLY_SIZES = (1000, 5000, 10_000, 23_636)


def nystrom_eigenmaps(
    landmark_affinities: sp.csr_matrix, cross_affinities: sp.csr_matrix, n_components: int
) -> Eigenmaps:
    """Return LE(Nystrom): eigenmaps of the landmarks' own graph (L, L), extended by cross affinities (N, L).

    v(x) = 1 / (1 - lambda) sum_l w(x, l) v_l / sum_l w(x, l) [Bengio et al. 2004, Out-of-sample extensions, 3.3]; a
    landmark with its own row of affinities gets its own embedding back. A point without any affinity is put at the
    origin; eigenvalues of 1 and beyond have no extension and give zero columns.
    """
    landmarks = exact_eigenmaps(landmark_affinities, n_components)
    sums = np.asarray(cross_affinities.sum(axis=1, dtype=np.float64)).ravel()
    means = (cross_affinities @ landmarks.embedding) / np.where(sums > 0, sums, 1.0)[:, None]
    gains = 1 - landmarks.eigenvalues
    defined = gains > np.finfo(np.float64).eps
    return Eigenmaps(landmarks.eigenvalues, means * np.where(defined, 1 / np.where(defined, gains, 1.0), 0.0))


def variational_eigenmaps(affinities: sp.csr_matrix, landmarks: np.ndarray, n_components: int) -> np.ndarray:
    """Return what embedding.solver=variational-nystrom makes of W (N, N) and rows (L,) of it: (N, d)."""
    direct = direct_weights(affinities, landmark_numbers(landmarks, affinities.shape[0]), 0, len(landmarks))
    weights = completed_weights(direct, lambda rows: affinities[rows]).weights
    return weights @ sm.solve_reduced(*sm.reduce_laplacian(affinities, weights), n_components=n_components)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--unit", type=float, default=255.0, help="value of a white pixel")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--selection", default="random", help="how the landmarks of LLL are selected")
    parser.add_argument("--landmark-neighbors", type=int, default=LANDMARK_NEIGHBORS, help="K_Z of LLL")
    parser.add_argument("--passes", type=int, nargs="+", default=(), help="of refinement, instead of other landmarks")
    parser.add_argument("--points", type=int, default=60_000, help="digits")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of landmarks of LLL")
    arguments = parser.parse_args()
    points = training_digits()[: arguments.points]
    indices, distances = exact_graph(points, arguments.folder)
    weights = gaussian_affinities((distances * arguments.unit / 255.0) ** 2, SIGMA)
    affinities = sm.symmetric_affinities(indices, weights)
    with threadpool_limits(1):
        rows = (refined if arguments.passes else compared)(points, affinities, arguments)
    show(rows)
    if arguments.passes:
        return
    draw(rows, arguments.folder / f"landmarks-{arguments.unit:g}-{arguments.selection}.png")


def exact_graph(points: np.ndarray, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact graph, computed where the folder does not hold it yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mnist-{len(points)}-{N_NEIGHBORS}.npz"
    if not path.exists():
        graph = sm.knn_graph(points, N_NEIGHBORS, method="exact")
        np.savez(path, indices=graph.indices.astype(np.int32), distances=graph.distances)
    with np.load(path) as file:
        return file["indices"], file["distances"].astype(np.float64)


def compared(points: np.ndarray, affinities: sp.csr_matrix, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return errors and seconds of every method and number of landmarks."""
    started = time.perf_counter()
    exact = exact_eigenmaps(affinities, N_COMPONENTS).embedding
    rows: list[dict[str, Any]] = [
        {"method": "exact (ARPACK)", "landmarks": len(points), "seconds": time.perf_counter() - started}
    ]
    for size in arguments.sizes:
        for seed in range(arguments.seeds):
            began = time.perf_counter()
            landmarks = sm.select_landmarks(points, size, method=arguments.selection, random_state=seed)
            selected = time.perf_counter()
            weights = sm.landmark_weights(points, landmarks, min(arguments.landmark_neighbors, size))
            weighted = time.perf_counter()
            reduced = sm.reduce_laplacian(affinities, weights)
            _, vectors = sm.solve_reduced(*reduced, n_components=min(N_COMPONENTS, size - 1))
            embedding = weights @ vectors
            seconds = {
                "seconds": time.perf_counter() - began,
                "landmarks selected": selected - began,
                "Z": weighted - selected,
            }
            rows.append({"method": "LLL", "landmarks": size, "seed": seed, **seconds, **errors(embedding, exact)})
            started = time.perf_counter()
            found = variational_eigenmaps(affinities, landmarks.indices, min(N_COMPONENTS, size - 1))
            seconds = {
                "seconds": time.perf_counter() - started + selected - began,
                "landmarks selected": selected - began,
            }
            row = {"method": VARIATIONAL, "landmarks": size, "seed": seed, **seconds}
            rows.append({**row, **errors(found, exact)})
    for size in (size for size in LANDMARK_ONLY_SIZES if size < len(points)):
        rows += landmark_only(points, size, arguments.unit, exact)
    return rows


def refined(points: np.ndarray, affinities: sp.csr_matrix, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return errors and seconds of runs that refine the embedding of a few landmarks by passes over the graph."""
    exact = exact_eigenmaps(affinities, N_COMPONENTS).embedding
    path, run = arguments.folder / "mnist-60000.npy", arguments.folder / "mnist-60000-run"
    np.save(path, points)
    common = settings(
        neighbors__method="exact",
        neighbors__n_neighbors=N_NEIGHBORS,
        affinities__kind="gaussian",
        affinities__sigma=SIGMA * 255.0 / arguments.unit,
        landmarks__n_landmarks=FEW_LANDMARKS,
        landmarks__method=arguments.selection,
        landmark_weights__n_neighbors=arguments.landmark_neighbors,
        landmark_embedding__n_components=N_COMPONENTS,
    )
    rows: list[dict[str, Any]] = []
    for passes in arguments.passes:
        asked = settings(embedding__residual=OUT_OF_REACH, embedding__max_passes=passes)
        scalemani("embed", str(path), str(run), *common, *asked)
        stages = records(run)["stages"]
        seconds = {name: stages[name]["seconds"] for name in REFINING if name in stages}
        found = {"residual": stages["embedding"]["certificates"]["residual"]}
        rows.append({"passes": passes, **seconds, **found, **errors(np.asarray(open_run(run).embedding[...]), exact)})
    return rows


def errors(embedding: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Return the error after Procrustes alignment, its square, and the error of the first columns alone."""
    error = procrustes_error(embedding, reference)
    first = procrustes_error(embedding[:, :FIRST_COLUMNS], reference[:, :FIRST_COLUMNS])
    return {"error": error, "squared": error**2, f"first {FIRST_COLUMNS} columns": first}


def landmark_only(points: np.ndarray, size: int, unit: float, reference: np.ndarray) -> list[dict[str, Any]]:
    """Return error and seconds of LE on the landmarks alone, carried to all points by Z and by Nystrom's formula."""
    started = time.perf_counter()
    landmarks = sm.select_landmarks(points, size, random_state=0)
    width = min(N_NEIGHBORS, size - 1)
    own_indices, own = nearest_landmarks(landmarks.points, landmarks.points, width + 1)
    own_weights = gaussian_affinities(own[:, 1:] * (unit / 255.0) ** 2, SIGMA)
    graph = sm.symmetric_affinities(own_indices[:, 1:], own_weights)
    graph_made = time.perf_counter() - started

    started = time.perf_counter()
    weights = sm.landmark_weights(points, landmarks, LANDMARK_NEIGHBORS)
    by_weights = weights @ exact_eigenmaps(graph, N_COMPONENTS).embedding
    weights_seconds = time.perf_counter() - started

    started = time.perf_counter()
    cross_indices, cross = nearest_landmarks(points, landmarks.points, width)
    offsets = np.arange(0, cross.size + 1, width)
    values = gaussian_affinities(cross * (unit / 255.0) ** 2, SIGMA).ravel()
    crossed = sp.csr_matrix((values, cross_indices.ravel(), offsets), shape=(len(points), size))
    by_nystrom = nystrom_eigenmaps(graph, crossed, N_COMPONENTS).embedding
    nystrom_seconds = time.perf_counter() - started
    return [
        {
            "method": method,
            "landmarks": size,
            "seconds": graph_made + seconds,
            **errors(found, reference),
        }
        for method, found, seconds in (
            ("LE(Z)", by_weights, weights_seconds),
            ("Nystrom", by_nystrom, nystrom_seconds),
        )
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw error and seconds over the number of landmarks."""
    for quantity in ("error", "seconds"):
        curves = {}
        for method in ("LLL", VARIATIONAL, "LE(Z)", "Nystrom"):
            sizes = sorted({row["landmarks"] for row in rows if row["method"] == method})
            of_size = [
                [row[quantity] for row in rows if row["method"] == method and row["landmarks"] == n] for n in sizes
            ]
            curves[method] = (np.array(sizes), np.array([np.mean(values) for values in of_size]))
        line_figure(
            curves, path.with_stem(f"{path.stem}-{quantity}"), "landmarks", f"{quantity} to exact LE", log_axes="xy"
        )


if __name__ == "__main__":
    main()
