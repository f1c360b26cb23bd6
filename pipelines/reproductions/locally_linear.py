"""Figures 4.1, 4.2, 4.4, 4.6 and 4.9 of the thesis: what landmarks make of a spiral, of two clusters and of digits.

4.1: affinities of 100 points along a spiral, of 20 landmarks alone, and learned by the landmarks from all points.
4.2: the spiral in one dimension by 5 and by 15 landmarks, each point a combination of its two nearest. 4.4: two
clusters along a line, with landmarks of which points of one cluster use those of the other, and without.

The thesis gives neither shapes nor bandwidths. Here the spiral has two turns, radius from 0.2 to 1.2, its points are
evenly spaced along it, and sigma is 0.1, a little more than between two of them. The clusters are 50 points each,
evenly spaced over a length of one, 0.3 apart, and sigma is 0.1. Landmarks are drawn evenly spaced, and counted over
`--draws` at random too. Exact eigenmaps are SciPy's.

4.6: the first two of 50 dimensions of MNIST by exact eigenmaps, LLL with 451 landmarks, landmarks' eigenmaps with
weights over 1,144 of them, and with Nystrom's formula and 88: those that take 5.5 seconds in the thesis. K_W = 200,
sigma = 200, K_Z = 50; pixels from 0 to 1, which the thesis does not say: up to 255, ARPACK takes more than a minute for
5,000 digits. Three draws of landmarks. `--points` takes the first digits of 60,000.

4.9: digits in two dimensions by the default solver, and by LLL and LE(Z) with the same landmarks: one of 102 digits,
as in the thesis, and three times as many. Perplexity 5, K_W = 15, K_Z = 5. A table says how well the nearest digit in
the map tells zeros, ones and sixes, those that the thesis finds apart by LLL. Three draws of landmarks.

    python pipelines/reproductions/locally_linear.py FOLDER
    python pipelines/reproductions/locally_linear.py FOLDER --figures 4.2 --draws 10
    python pipelines/reproductions/locally_linear.py FOLDER --figures 4.6 4.9 --points 10000

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, sections 4.3, 4.4, 4.7.2 and 4.8.1.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from entropic import data, pictures
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.io.figures.charts import new_figure, save_figure

POINTS, TURNS, RADII, SIGMA = 100, 2.0, (0.2, 1.2), 0.1
GAP, CLUSTER_SIGMA = 0.3, 0.1  # between two clusters of length one
LANDMARK_NEIGHBORS = 2
BAND = 2  # landmarks along the spiral that count as near
FEW_AND_ENOUGH, COUNTS = (5, 15), (5, 10, 15, 20, 40)
RANDOM_OF_CLUSTERS = 8
SIGMAS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of landmarks alone
# Landmarks of the two clusters as numbers of points: without any near the gap, and with two on both sides of it.
FAR_AND_NEAR = {"far from the gap": (5, 25, 62, 74, 94), "on both sides of it": (5, 40, 49, 50, 59, 94)}


TRAINING, DIGIT_DIMENSIONS, DIGIT_SIGMA, DIGIT_NEIGHBORS, DIGIT_LANDMARK_NEIGHBORS, SEEDS = (
    60_000,
    50,
    200.0,
    200,
    50,
    3,
)
METHODS = {"exact": 0, "lll": 451, "le-z": 1144, "nystrom": 88}  # solvers, and their landmarks
SHARES_OF_DIGITS, APART = (1 / 102, 3 / 102), (0, 1, 6)  # landmarks of figure 4.9, and digits that LLL has apart there


class Landmarks(NamedTuple):
    """Numbers (L,) of points in their order along the data, Z (N, L), and the reduced problem."""

    rows: np.ndarray
    weights: sp.csr_matrix
    laplacian: np.ndarray
    degrees: np.ndarray

    @property
    def affinities(self) -> np.ndarray:
        """Affinities of landmarks (L, L) learned from all points, Z^T W Z."""
        return self.degrees - self.laplacian


def spiral() -> np.ndarray:
    """Return points (100, 2) evenly spaced along a spiral."""
    angle = np.linspace(0, 2 * np.pi * TURNS, 20_000)
    curve = np.linspace(*RADII, len(angle)) * np.array([np.cos(angle), np.sin(angle)])
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(curve)))])
    return np.array([np.interp(np.linspace(0, length[-1], POINTS), length, row) for row in curve]).T


def clusters() -> np.ndarray:
    """Return points (100, 1) of two clusters along a line."""
    half = np.linspace(0, 1, POINTS // 2)
    return np.concatenate([half, half + 1 + GAP])[:, np.newaxis]


def gaussian(points: np.ndarray, sigma: float) -> np.ndarray:
    """Return Gaussian affinities between all points, none with themselves."""
    affinities = np.exp(-cdist(points, points, "sqeuclidean") / (2 * sigma**2))
    np.fill_diagonal(affinities, 0)
    return affinities


def eigenvector(affinities: np.ndarray) -> np.ndarray:
    """Return the first vector of Laplacian eigenmaps (N,), by SciPy."""
    degrees = np.diag(affinities.sum(axis=1))
    return scipy.linalg.eigh(degrees - affinities, degrees, subset_by_index=(1, 1))[1][:, 0]


def combined(points: np.ndarray, affinities: np.ndarray, rows: np.ndarray) -> Landmarks:
    """Return what landmarks `rows` of the points make of their affinities."""
    rows = np.sort(rows)
    weights = sm.landmark_weights(points, rows, LANDMARK_NEIGHBORS)
    reduced = sm.reduce_laplacian(affinities, weights)
    return Landmarks(rows, weights, *(matrix.toarray() for matrix in reduced))


def embedded(landmarks: Landmarks) -> np.ndarray:
    """Return the first coordinate (N,) of all points by locally linear landmarks."""
    return (landmarks.weights @ sm.solve_reduced(landmarks.laplacian, landmarks.degrees, 1)[1])[:, 0]


def evenly(n_landmarks: int) -> np.ndarray:
    """Return numbers (L,) of points that are evenly spaced along the data, ends included."""
    return np.round(np.linspace(0, POINTS - 1, n_landmarks)).astype(np.int64)


def at_random(n_landmarks: int, n_draws: int) -> list[np.ndarray]:
    """Return draws of numbers (L,) of points."""
    rng = np.random.default_rng(0)
    return [rng.choice(POINTS, n_landmarks, replace=False) for _ in range(n_draws)]


def banded(matrix: np.ndarray) -> float:
    """Return the share of the off-diagonal magnitude (L, L) within the band along the data."""
    number = np.arange(len(matrix))
    away = np.abs(number[:, np.newaxis] - number)
    return float(np.abs(matrix[(away > 0) & (away <= BAND)]).sum() / np.abs(matrix[away > 0]).sum())


def variation(matrix: np.ndarray) -> float:
    """Return the standard deviation over the mean of the magnitudes next to the diagonal."""
    entries = np.abs(np.diagonal(matrix, 1))
    return float(entries.std() / entries.mean())


def across(landmarks: Landmarks) -> np.ndarray:
    """Return which points (N,) are combinations of landmarks that are not neighbours along the data."""
    used = [np.flatnonzero(row) for row in landmarks.weights.toarray()]
    return np.array([numbers[-1] - numbers[0] >= LANDMARK_NEIGHBORS for numbers in used])


def of_both(landmarks: Landmarks) -> np.ndarray:
    """Return which points (N,) are combinations of landmarks of both clusters."""
    second = landmarks.rows >= POINTS // 2
    weights = np.abs(landmarks.weights.toarray())
    return (weights[:, second].sum(axis=1) > 0) & (weights[:, ~second].sum(axis=1) > 0)


def order_kept(found: np.ndarray) -> float:
    """Return the magnitude of the rank correlation of a coordinate (N,) and the place along the data."""
    return abs(float(np.corrcoef(np.argsort(np.argsort(found)), np.arange(len(found)))[0, 1]))


def error(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the relative error of an eigenvector (N,) whose sign is arbitrary."""
    return float(np.linalg.norm(found * np.sign(found @ exact) - exact) / np.linalg.norm(exact))


def spread_table(title: str, columns: tuple[str, ...], rows: Mapping[str, np.ndarray]) -> None:
    """Print a table of draws, of each row (draws, columns)."""
    print(f"\n{title}\n| | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    print_rows(rows)


def print_rows(rows: Mapping[str, np.ndarray]) -> None:
    """Print means and standard deviations of draws (draws, columns), of one draw its value alone."""
    for name, draws in rows.items():
        spreads = draws.std(axis=0, ddof=1) if len(draws) > 1 else np.zeros(draws.shape[1])
        cells = [
            f"{m:.3g}" + f" ± {s:.2g}" * (len(draws) > 1) for m, s in zip(draws.mean(axis=0), spreads, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def affinity_matrices(folder: Path, n_draws: int, n_points: int) -> None:
    """Figure 4.1: affinities of all points, of 20 landmarks alone, and learned."""
    points = spiral()
    affinities, n_landmarks = gaussian(points, SIGMA), POINTS // 5
    measured: dict[str, np.ndarray] = {"all points": np.array([[banded(affinities), variation(affinities)]])}
    for name, draws in (("evenly spaced", [evenly(n_landmarks)]), ("at random", at_random(n_landmarks, n_draws))):
        found = [combined(points, affinities, rows) for rows in draws]
        kinds = {f"alone, sigma {s:g}": [gaussian(points[one.rows], s) for one in found] for s in SIGMAS}
        kinds["learned"] = [one.affinities for one in found]
        for kind, matrices in kinds.items():
            measured[f"{name}, {kind}"] = np.array([[banded(matrix), variation(matrix)] for matrix in matrices])
    columns = ("share within two landmarks along the spiral", "deviation over mean next to the diagonal")
    spread_table("Figure 4.1: 100 points, 20 landmarks", columns, measured)
    rows = evenly(n_landmarks)
    shown = {
        "all points": affinities,
        f"landmarks alone, sigma {SIGMAS[-1]:g}": gaussian(points[rows], SIGMAS[-1]),
        "learned": combined(points, affinities, rows).affinities,
    }
    pictures(shown, folder / "spiral-affinities.png")


def too_few_landmarks(folder: Path, n_draws: int, n_points: int) -> None:
    """Figure 4.2: the spiral in one dimension by few landmarks and by enough."""
    points = spiral()
    affinities = gaussian(points, SIGMA)
    exact = eigenvector(affinities)
    measured = {"exact": np.array([[0.0, order_kept(exact), 0.0]])}
    for n_landmarks in COUNTS:
        for name, draws in (("evenly spaced", [evenly(n_landmarks)]), ("at random", at_random(n_landmarks, n_draws))):
            values = []
            for one in (combined(points, affinities, rows) for rows in draws):
                found = embedded(one)
                values.append((across(one).sum(), order_kept(found), error(found, exact)))
            measured[f"{n_landmarks} {name}"] = np.array(values)
    columns = ("points by landmarks across", "rank correlation with the length", "error of the eigenvector")
    spread_table("Figure 4.2: the spiral in one dimension", columns, measured)
    kept = {f"{n} landmarks": combined(points, affinities, evenly(n)) for n in FEW_AND_ENOUGH}
    draw_combinations(points, kept, folder / "spiral-few-landmarks.png")


def two_clusters(folder: Path, n_draws: int, n_points: int) -> None:
    """Figure 4.4: the eigenvector of two clusters by landmarks of both, and of one each."""
    points = clusters()
    affinities = gaussian(points, CLUSTER_SIGMA)
    exact = eigenvector(affinities)
    kept = {name: combined(points, affinities, np.array(rows)) for name, rows in FAR_AND_NEAR.items()}
    measured = {name: np.array([[of_both(one).sum(), error(embedded(one), exact)]]) for name, one in kept.items()}
    draws = [combined(points, affinities, rows) for rows in at_random(RANDOM_OF_CLUSTERS, n_draws)]
    values = np.array([[of_both(one).sum(), error(embedded(one), exact)] for one in draws])
    for name, chosen in (("with points of both", values[:, 0] > 0), ("without", values[:, 0] == 0)):
        if chosen.any():
            measured[f"{chosen.sum()} random draws of {RANDOM_OF_CLUSTERS}, {name}"] = values[chosen]
    columns = ("points by landmarks of both clusters", "error of the eigenvector")
    spread_table("Figure 4.4: two clusters along a line", columns, measured)
    draw_combinations(points, kept, folder / "two-clusters.png")


def draw_combinations(points: np.ndarray, kept: Mapping[str, Landmarks], path: Path) -> None:
    """Draw points and landmarks, coloured by the pair of landmarks of each point, above the coordinates by LLL."""
    figure = new_figure(4 * len(kept), 6)
    plane = points if points.shape[1] > 1 else np.column_stack([points, np.zeros(len(points))])
    for (name, one), (above, below) in zip(kept.items(), figure.subplots(2, len(kept), squeeze=False).T, strict=True):
        used = one.weights.toarray() != 0
        pairs = np.unique(used, axis=0, return_inverse=True)[1].ravel()
        above.scatter(*plane.T, c=pairs, s=12, cmap="tab20")
        above.scatter(*plane[one.rows].T, s=60, facecolors="none", edgecolors="black")
        above.set_title(name, fontsize=9)
        below.scatter(np.arange(len(points)), embedded(one), c=pairs, s=12, cmap="tab20")
        below.set_xlabel("point along the data")
    save_figure(figure, path)


def digits(folder: Path, n_draws: int, n_points: int) -> None:
    """Figure 4.6: digits in two dimensions by four methods, and how far each is from exact eigenmaps."""
    file = data("mnist")
    points, labels = (file[name][: min(n_points, TRAINING)] for name in ("X", "y"))
    points = points.astype(np.float32) / 255
    common = {"affinity": "gaussian", "n_neighbors": DIGIT_NEIGHBORS, "store": folder / f"digits-{len(points)}"}
    settings = {"affinities.sigma": DIGIT_SIGMA}
    exact, shown, measured = np.empty((0, 0)), {}, {}
    for method, n_landmarks in METHODS.items():
        values = []
        for seed in range(SEEDS if n_landmarks else 1):
            options = {"n_landmarks": n_landmarks, "random_state": seed} if n_landmarks else {}
            weights = {"landmark_weights.n_neighbors": DIGIT_LANDMARK_NEIGHBORS} if method in ("lll", "le-z") else {}
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of eigenvalues close to each other
                model = sm.LaplacianEigenmaps(
                    DIGIT_DIMENSIONS, solver=method, settings=settings | weights, **common, **options
                ).fit(points)
            spent = time.process_time() - started
            found = np.asarray(model.embedding_, np.float64)
            if not n_landmarks:
                exact = found
            errors = [
                sm.measures.procrustes_error(found[:, :width], exact[:, :width]) for width in (2, DIGIT_DIMENSIONS)
            ]
            values.append((*errors, spent))
            shown.setdefault(method, found[:, :2])
        measured[f"{method}, {n_landmarks} landmarks" if n_landmarks else method] = np.array(values)
    columns = ("error in two dimensions", f"in {DIGIT_DIMENSIONS}", "processor seconds, the first draw with its graph")
    spread_table(f"Figure 4.6: {len(points)} digits", columns, measured)
    draw_maps(shown, labels, folder / "digits-by-four-methods.png")


def recalls(places: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the share of points (N, d) whose nearest other has their label (N,): of some digits, and of all."""
    same = labels[cKDTree(places).query(places, 2)[1][:, 1]] == labels
    return [*(float(same[labels == one].mean()) for one in APART), float(same.mean())]


def digits_by_landmarks(folder: Path, n_draws: int, n_points: int) -> None:
    """Figure 4.9: digits in two dimensions by the default solver, LLL and LE(Z)."""
    file = data("mnist")
    points, labels = (file[name][: min(n_points, TRAINING)] for name in ("X", "y"))
    common = {"perplexity": 5, "n_neighbors": 15, "store": folder / f"landmarks-{len(points)}"}
    counts = [round(share * len(points)) for share in SHARES_OF_DIGITS]
    refined, shown = np.empty((0, 0)), {}
    columns = ("error", *(f"1-NN recall of {one}" for one in APART), "of all digits")
    spread_table(f"Figure 4.9: {len(points)} digits", columns, {})
    for solver, n_landmarks in (("refine", counts[0]), *((one, n) for n in counts for one in ("lll", "le-z"))):
        name, values = f"{solver}, {n_landmarks} landmarks", []
        settings = {"embedding.residual": 1e-3} if solver == "refine" else {"landmark_weights.n_neighbors": 5}
        for seed in range(1 if solver == "refine" else SEEDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of eigenvalues close to each other
                model = sm.LaplacianEigenmaps(
                    2, solver=solver, settings=settings, n_landmarks=n_landmarks, random_state=seed, **common
                ).fit(points)
            found = np.asarray(model.embedding_, np.float64)
            if solver == "refine":
                refined = found
            values.append((sm.measures.procrustes_error(found, refined), *recalls(found, labels)))
            shown.setdefault(name, found)
        print_rows({name: np.array(values)})
    draw_maps(shown, labels, folder / "digits-by-landmarks.png")


def draw_maps(shown: Mapping[str, np.ndarray], labels: np.ndarray, path: Path) -> None:
    """Draw maps (N, 2) next to each other, coloured by label."""
    figure = new_figure(4 * len(shown), 4)
    for axes, (name, places) in zip(figure.subplots(1, len(shown)), shown.items(), strict=True):
        axes.scatter(*places.T, c=labels, s=1, cmap="tab10")
        axes.set_title(name, fontsize=9)
    save_figure(figure, path)


FIGURES: dict[str, Callable[[Path, int, int], None]] = {
    "4.1": affinity_matrices,
    "4.2": too_few_landmarks,
    "4.4": two_clusters,
    "4.6": digits,
    "4.9": digits_by_landmarks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--figures", choices=FIGURES, nargs="+", default=tuple(FIGURES))
    parser.add_argument("--draws", type=int, default=200, help="of random landmarks")
    parser.add_argument("--points", type=int, default=TRAINING, help="digits of figures 4.6 and 4.9")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.figures:
        FIGURES[name](arguments.folder, arguments.draws, arguments.points)


if __name__ == "__main__":
    main()
