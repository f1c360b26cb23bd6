"""False alarms and misses of `isolated`, a certificate of new points, where training points have outliers.

Of held-out points of the same distribution, outliers apart, 2 % should be isolated; of points in holes, between
clusters and outside, all. Each row is a condition, each column a method: false alarms in percent, area under the
curve of held-out points versus those in holes, and the percentage of the latter that is found.

    python pipelines/benchmarks/new_points.py [--points 1500] [--seeds 3] [--methods pca t-sne ...]
"""

import argparse
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from measuring import show
from sklearn.metrics import roc_auc_score

import scalemani as sm
from scalemani.stages.arrays.embeddings import StoredPlacement

METHODS: dict[str, Callable[[int], Any]] = {
    "refine": lambda n: sm.LaplacianEigenmaps(2, n_landmarks=n // 5, random_state=0),
    "lll": lambda n: sm.LaplacianEigenmaps(2, solver="lll", n_landmarks=n // 5, random_state=0),
    "pca": lambda n: sm.LandmarkPCA(2, n_landmarks=n // 5, random_state=0),
    "pca, 150 landmarks": lambda _: sm.LandmarkPCA(2, n_landmarks=150, random_state=0),
    "kernel pca": lambda n: sm.LandmarkKernelPCA(2, n_landmarks=n // 5, random_state=0),
    "isomap": lambda n: sm.LandmarkIsomap(2, n_landmarks=50, random_state=0),
    "ee": lambda n: sm.ElasticEmbedding(2, max_iter=3, random_state=0),
    "t-sne": lambda n: sm.TSNE(2, max_iter=3, random_state=0),
}
HELD_OUT = 4000
FIELD = 60.0  # half the side of the cube that outliers near the clusters fill
IN_HOLES = 50


class Condition(NamedTuple):
    """`draw` returns n training or held-out points, of which the last are outliers, and the number of these."""

    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, int]]
    holes: Callable[[np.random.Generator], np.ndarray]


def clusters(rng: np.random.Generator, n_points: int, outliers: float, loose: float = 0.0) -> tuple[np.ndarray, int]:
    """Return two clusters in four dimensions, 40 deviations apart, a loose population, and outliers at radius 1,000."""
    n_out, n_loose = round(outliers * n_points), round(loose * n_points)
    tight = rng.normal(size=(n_points - n_out - n_loose, 4))
    tight[rng.random(len(tight)) < 0.5, 0] += 40
    far_off = 15 * rng.normal(size=(n_loose, 4)) + np.array([0, 200, 0, 0])
    ways = rng.normal(size=(n_out, 4))
    return np.concatenate([tight, far_off, 1e3 * ways / np.linalg.norm(ways, axis=1, keepdims=True)]), n_out


def around_clusters(rng: np.random.Generator) -> np.ndarray:
    """Return points half-way between the clusters, and 120 and 470 deviations from the first."""
    return np.concatenate([rng.normal(size=(IN_HOLES, 4)) + np.array([x, 0, 0, 0]) for x in (20, 120, 470)])


def densities(rng: np.random.Generator, n_points: int) -> tuple[np.ndarray, int]:
    """Return three clusters in three dimensions whose deviations are 0.05, 1 and 5."""
    which = rng.choice(3, n_points, p=[1 / 2, 1 / 3, 1 / 6])
    widths, places = np.array([0.05, 1, 5])[which, np.newaxis], np.array([0, 20, 60])[which, np.newaxis]
    return places + widths * rng.normal(size=(n_points, 3)), 0


def between_densities(rng: np.random.Generator) -> np.ndarray:
    """Return points between the clusters, and next to the densest."""
    return np.concatenate([rng.normal(size=(IN_HOLES, 3)) + 40, 0.05 * rng.normal(size=(IN_HOLES, 3)) + 1])


def within_a_field(
    rng: np.random.Generator, n_points: int, outliers: float, apart: float, wider: float = 1.0
) -> tuple[np.ndarray, int]:
    """Return two clusters in three dimensions, and so many outliers for each of their points, uniform in a cube.

    The clusters have deviations 1 and `wider`, and centres that are `apart`.
    """
    points, second = rng.normal(size=(n_points, 3)), rng.random(n_points) < 0.5
    points[second] *= wider
    points[second, 0] += apart
    n_out = round(outliers * n_points)
    return np.concatenate([points, rng.uniform(-FIELD, FIELD, (n_out, 3))]), n_out


def between_near_clusters(rng: np.random.Generator, apart: float, width: float, wider: float = 1.0) -> np.ndarray:
    """Return points with a deviation of `width` about the place as many deviations from either cluster."""
    return width * rng.normal(size=(3 * IN_HOLES, 3)) + np.array([apart / (1 + wider), 0, 0])


def near_clusters(outliers: float, apart: float, width: float = 0.5, wider: float = 1.0) -> Condition:
    """Return the condition of two near clusters with outliers within and around them."""
    return Condition(
        functools.partial(within_a_field, outliers=outliers, apart=apart, wider=wider),
        functools.partial(between_near_clusters, apart=apart, width=width, wider=wider),
    )


CONDITIONS = {
    "no outliers": Condition(lambda rng, n: clusters(rng, n, 0.0), around_clusters),
    "2 % outliers": Condition(lambda rng, n: clusters(rng, n, 0.02), around_clusters),
    "5 % outliers": Condition(lambda rng, n: clusters(rng, n, 0.05), around_clusters),
    "20 % outliers": Condition(lambda rng, n: clusters(rng, n, 0.2), around_clusters),
    "5 % loose population": Condition(lambda rng, n: clusters(rng, n, 0.0, 0.05), around_clusters),
    "three densities": Condition(densities, between_densities),
    **{f"12 apart, {share:.0%} uniform": near_clusters(share, 12) for share in (0.0, 0.02, 0.05, 0.2)},
    **{f"{apart} apart, 20% uniform": near_clusters(0.2, apart) for apart in (10, 14, 16)},
    "12 apart, 20% uniform, hole of deviation 1": near_clusters(0.2, 12, width=1.0),
    "deviations 1 and 2, 15 apart, 20% uniform": near_clusters(0.2, 15, wider=2.0),
}


def measured(method: str, condition: Condition, n_points: int, seed: int) -> tuple[float, float, float]:
    """Return the false alarms, the area under the curve, and the share of points in holes that is found."""
    rng = np.random.default_rng(seed)
    model = METHODS[method](n_points).fit(condition.draw(rng, n_points)[0])
    held_out, n_out = condition.draw(rng, HELD_OUT)
    usual, holes = (
        model._placement.place(points)[StoredPlacement.isolation]
        for points in (held_out[: len(held_out) - n_out], condition.holes(rng))
    )
    scores = np.concatenate([usual, holes])
    area = float(roc_auc_score(np.arange(len(scores)) >= len(usual), scores))
    return float(np.mean(usual > 1)), area, float(np.mean(holes > 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--conditions", nargs="+", default=list(CONDITIONS), choices=CONDITIONS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in arguments.conditions:
        row, condition = {"condition": name}, CONDITIONS[name]
        for method in arguments.methods:
            found = [measured(method, condition, arguments.points, seed) for seed in range(arguments.seeds)]
            alarms, area, share = np.mean(found, axis=0)
            row[method] = f"{100 * alarms:.1f} / {area:.3f} / {100 * share:.0f}"
            print(name, method, row[method], min(area for _, area, _ in found), file=sys.stderr, flush=True)
        rows.append(row)
    show(rows)


if __name__ == "__main__":
    main()
