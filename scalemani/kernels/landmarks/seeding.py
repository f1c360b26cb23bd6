"""Seeds far from each other: k-means++ (squared-distance) seeding and farthest-first, one landmark at a time.

Both need, after each new landmark, the least squared distance of every point to the landmarks so far. A short sketch
bounds most of the new distances away, so that few are computed in full; the result is that of the plain algorithm.
"""

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.rows.distances import sketch_distance, squared_distance
from scalemani.kernels.rows.sketches import SketchBasis, pruning_basis, sketch_precisely

SKETCH_DIMENSIONS = 32  # two cache lines a point: more would only be read more slowly
SUM_BLOCK = 1024  # points per partial sum of the draw
# A float32 sketch distance q of norms u, v is off by at most 2**-24 (u + v) sqrt(2 q) and s 2**-24 q; both are covered.
RELATIVE_MARGIN = 2.0**-11
NORM_MARGIN = 2.0**-34


def kmeans_plus_plus(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return rows drawn with probability proportional to the squared distance to the nearest row drawn before.

    Parameters
    ----------
    points : (S, D) real, finite
    n_landmarks : L, at most S
    seed : of the draws; the first row is drawn uniformly

    Returns
    -------
    (n_landmarks,) int64, in the order drawn, no two with equal coordinates

    Raises
    ------
    DataError
        When `points` has fewer than `n_landmarks` distinct rows.

    References
    ----------
    Arthur and Vassilvitskii, k-means++: the advantages of careful seeding, 2007, section 2.2; as "k-means++" in
    [LLL] 4.4.
    """
    draws = generator(seed, "landmarks/kmeans++").random(n_landmarks)
    first = min(int(draws[0] * len(points)), len(points) - 1)
    return _seed(points, n_landmarks, first, draws)


def minmax_landmarks(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return rows chosen farthest first, each the farthest from all before, ties by row, after a uniformly drawn one.

    Parameters
    ----------
    points : (S, D) real, finite
    n_landmarks : L, at most S
    seed : of the first row

    Returns
    -------
    (n_landmarks,) int64, in the order chosen, no two with equal coordinates

    Raises
    ------
    DataError
        When `points` has fewer than `n_landmarks` distinct rows.

    References
    ----------
    Gonzalez, Clustering to minimize the maximum intercluster distance, 1985; as "MinMax" in [LLL] 4.4.
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
    for start in range(0, len(rows), SUM_BLOCK):  # in blocks: the projection is float64, and the points may be bytes
        block = slice(start, start + SUM_BLOCK)
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


@compiled_sums
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
