"""Landmarks by any method, among points in memory or in a store: the same ones for the same seed.

k-means++ and farthest-first choose one landmark at a time. Both need, after each new landmark, the least squared
distance of every point to the landmarks so far. A short sketch bounds most of the new distances away, so that few are
computed in full; the result is that of the plain algorithm.
"""

import functools
from collections.abc import Callable

import numpy as np

from scalemani.config.methods import declared, load
from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.anchors import tiles
from scalemani.kernels.landmarks.choice import Choice, Selected, at_rows, sample_of
from scalemani.kernels.landmarks.kmeans import (
    MinibatchState,
    centroids_of,
    minibatch_start,
    minibatch_step,
    snap_rows,
    snap_start,
    snap_step,
)
from scalemani.kernels.landmarks.uniform import (
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)
from scalemani.kernels.machine.compile import compiled, inlined_sums
from scalemani.kernels.rows.distances import sketch_distance, squared_distance
from scalemani.kernels.rows.points_by_row import PointsByRow
from scalemani.kernels.rows.sketches import SketchBasis, pruning_basis, sketch_precisely

SKETCH_DIMENSIONS = 32  # two cache lines a point: more would only be read more slowly
SUM_BLOCK = 1024  # points per partial sum of the draw
# A float32 sketch distance q of norms u, v is off by at most 2**-24 (u + v) sqrt(2 q) and s 2**-24 q; both are covered.
RELATIVE_MARGIN = 2.0**-11
NORM_MARGIN = 2.0**-34


def kmeans_plus_plus(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return rows drawn with probability proportional to the squared distance to the nearest row drawn before.

    Rows are as those of `minmax_landmarks`. Source: Arthur and Vassilvitskii, k-means++: the advantages of careful
    seeding, 2007, section 2.2; as "k-means++" in [LLL] 4.4.
    """
    draws = generator(seed, "landmarks/kmeans++").random(n_landmarks)
    first = min(int(draws[0] * len(points)), len(points) - 1)
    return _seed(points, n_landmarks, first, draws)


def minmax_landmarks(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return rows chosen farthest first, each the farthest from all before, ties by row, after a uniformly drawn one.

    Rows (n_landmarks,) int64 of points (S, D) are in the order chosen, no two with equal coordinates; a DataError is
    raised for fewer distinct ones. Source: Gonzalez, Clustering to minimize the maximum intercluster distance, 1985; as
    "MinMax" in [LLL] 4.4.
    """
    first = int(generator(seed, "landmarks/minmax").integers(len(points)))
    return _seed(points, n_landmarks, first, np.empty(0))


def _seed(points: np.ndarray, n_landmarks: int, first: int, uniforms: np.ndarray) -> np.ndarray:
    rows = np.ascontiguousarray(points)
    basis = pruning_basis(rows, SKETCH_DIMENSIONS)
    scale = float(np.abs(rows[0] - basis.mean).max()) or 1.0
    sketch = _short_sketches(rows, basis._replace(scale=scale))
    picked = np.full(n_landmarks, -1, dtype=np.int64)
    picked[0] = first
    n_picked = _pick(rows, sketch, scale**2, picked, uniforms)
    if n_picked < n_landmarks:
        raise DataError(
            f"{n_landmarks} landmarks were asked for, but these {len(points)} points have only {n_picked} distinct "
            f"rows; ask for at most {n_picked} landmarks"
        )
    return picked


def _short_sketches(rows: np.ndarray, basis: SketchBasis) -> np.ndarray:
    width = min(basis.axes.shape[1], SKETCH_DIMENSIONS)
    sketch = np.empty((len(rows), width), dtype=np.float32)
    for block in slices(len(rows), SUM_BLOCK):  # the projection is float64, and the points may be bytes
        sketch[block] = sketch_precisely(rows[block], basis)[:, :width]
    return sketch


@compiled
def _pick(rows: np.ndarray, sketch: np.ndarray, unit: float, picked: np.ndarray, uniforms: np.ndarray) -> int:
    """Fill `picked` after its first row: drawn where there are `uniforms`, else farthest first; return how many are."""
    n_points = rows.shape[0]
    least = np.full(n_points, np.inf)
    norms = np.empty(n_points)
    for i in range(n_points):
        norms[i] = NORM_MARGIN * _square_sum(sketch[i])
    _lower(rows, sketch, norms, unit, picked[0], least)
    for step in range(1, picked.shape[0]):
        picked[step] = _drawn(least, uniforms[step]) if uniforms.shape[0] > 0 else np.argmax(least)
        if least[picked[step]] == 0.0:
            return step
        _lower(rows, sketch, norms, unit, picked[step], least)
    return picked.shape[0]


@inlined_sums
def _square_sum(row: np.ndarray) -> float:
    total = np.float32(0)
    for j in range(row.shape[0]):
        total += row[j] * row[j]
    return np.float64(total)


@compiled
def _lower(
    rows: np.ndarray, sketch: np.ndarray, norms: np.ndarray, unit: float, landmark: int, least: np.ndarray
) -> None:
    """Lower `least` to the squared distances to one more landmark; a bound that is not finite skips nothing."""
    center, center_norm = rows[landmark], norms[landmark]
    for i in range(rows.shape[0]):
        square = np.float64(sketch_distance(sketch, i, landmark))
        bound = square * (1.0 - RELATIVE_MARGIN) - norms[i] - center_norm
        if least[i] < bound * unit < np.inf:
            continue
        distance = squared_distance(rows[i], center, least[i])
        if distance < least[i]:
            least[i] = distance


@compiled
def _drawn(least: np.ndarray, uniform: float) -> int:
    """Return a point drawn with probability proportional to `least`; any point when all are zero."""
    n_blocks = (least.shape[0] + SUM_BLOCK - 1) // SUM_BLOCK
    sums = np.empty(n_blocks)
    total = 0.0
    for block in range(n_blocks):
        part = 0.0
        for i in range(block * SUM_BLOCK, min((block + 1) * SUM_BLOCK, least.shape[0])):
            part += least[i]
        sums[block] = part
        total += part
    target = uniform * total
    drawn = 0
    passed = 0.0
    for block in range(n_blocks):
        if sums[block] == 0.0:
            continue
        if passed + sums[block] < target:
            passed += sums[block]
            continue
        for i in range(block * SUM_BLOCK, min((block + 1) * SUM_BLOCK, least.shape[0])):
            if least[i] > 0.0:
                drawn = i
                passed += least[i]
                if passed >= target:
                    return drawn
    # Rounding of the sums can leave the target just beyond the last positive point.
    if least[drawn] == 0.0:
        drawn = int(np.argmax(least))
    return drawn


def selected_landmarks(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks of N points, of which few are held at a time, no two with equal coordinates.

    They are in the dtype of the points, and in float64 where they lie off the data.

    Raises
    ------
    DataError
        When the points, or their sample, have fewer than `n_landmarks` distinct rows.
    ConfigError
        For a sigma that cannot serve, and for more points than exact determinantal sampling takes.
    """
    return LANDMARK_METHODS[choice.method](points, choice)


def _random(points: PointsByRow, choice: Choice) -> Selected:
    return at_rows(points, _random_rows(points, choice))


def _random_rows(points: PointsByRow, choice: Choice) -> np.ndarray:
    return random_landmarks(len(points), choice.n_landmarks, choice.seed, points.__getitem__)


def _spread(points: PointsByRow, choice: Choice) -> Selected:
    n_landmarks, n_candidates = choice.n_landmarks, n_spread_candidates(choice.n_landmarks, len(points))
    while True:
        try:
            candidates = random_landmarks(len(points), n_candidates, choice.seed, points.__getitem__, "spread")
        except DataError:  # repeated points can leave fewer than L + M, which is an error only below L
            if n_candidates == n_landmarks:
                raise
            n_candidates = n_landmarks + (n_candidates - n_landmarks) // 2
            continue
        return at_rows(points, candidates[spread_landmarks(points[candidates], n_landmarks, choice.seed)])


def _seeds(points: PointsByRow, choice: Choice) -> Selected:
    rows = sample_of(points, choice)
    return at_rows(points, rows[kmeans_plus_plus(points[rows], choice.n_landmarks, choice.seed)])


def _minmax(points: PointsByRow, choice: Choice) -> Selected:
    rows = sample_of(points, choice)
    return at_rows(points, rows[minmax_landmarks(points[rows], choice.n_landmarks, choice.seed)])


def _kmeans(points: PointsByRow, choice: Choice) -> Selected:
    seeds = _random_rows(points, choice)
    return _clustered(points, points[sample_of(points, choice)], seeds, choice)


def _kmeans_plus_plus(points: PointsByRow, choice: Choice) -> Selected:
    rows = sample_of(points, choice)
    sample = points[rows]
    return _clustered(points, sample, rows[kmeans_plus_plus(sample, choice.n_landmarks, choice.seed)], choice)


def _clustered(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray, choice: Choice) -> Selected:
    """Return the centroids of mini-batch k-means over tiles of all points in random order, or the rows next to them."""
    n_points = len(points)
    state = minibatch_start(sample, points[seeds])
    n_tiles = -(-n_points // TILE_ROWS)
    order = generator(choice.seed, "landmarks/tiles").permutation(n_tiles)
    for tile in order[: max(1, choice.sample_points // TILE_ROWS)]:
        state = minibatch_step(state, points[_tile_rows(int(tile), n_points)])
    if not choice.snap:
        return Selected(_distinct(centroids_of(state), points[seeds]), None)
    return at_rows(points, _snapped(points, state, seeds))


def _distinct(centroids: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Return centroids (L, D) float64; one that another one equals gives way to a seed."""
    candidates = np.concatenate([centroids, seeds.astype(np.float64)])
    return candidates[first_of_equal_rows(candidates)[: len(seeds)]]


def _snapped(points: PointsByRow, state: MinibatchState, seeds: np.ndarray) -> np.ndarray:
    snapped = snap_start(len(seeds))
    for start, tile in tiles(points):
        snapped = snap_step(snapped, state, tile, start)
    nearest = snap_rows(snapped)
    # Centroids whose nearest points were all taken, or are repeated, give way to the seeds.
    candidates = np.concatenate([nearest[nearest >= 0], seeds])
    candidates = candidates[np.sort(np.unique(candidates, return_index=True)[1])]
    return candidates[first_of_equal_rows(points[candidates])[: len(seeds)]]


def _tile_rows(tile: int, n_points: int) -> np.ndarray:
    return np.arange(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, n_points))


def _of_method(name: str, points: PointsByRow, choice: Choice) -> Selected:
    selected: Selected = load("LANDMARK_RULES", name)(points, choice)
    return selected


LANDMARK_METHODS: dict[str, Callable[[PointsByRow, Choice], Selected]] = {
    "random": _random,
    "spread": _spread,
    "kmeans": _kmeans,
    "kmeans++": _kmeans_plus_plus,
    "kmeans++ seeding": _seeds,
    "minmax": _minmax,
    **{name: functools.partial(_of_method, name) for name in declared("LANDMARK_RULES")},
}
