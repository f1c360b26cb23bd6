"""Landmarks by any method, among points in memory or in a store: the same ones for the same seed.

Random ones may be thinned by dropping one of each closest pair; no coordinates come twice. k-means++ and farthest-first
choose one landmark at a time. Both need, after each new landmark, the least squared distance of every point to the
landmarks so far. A short sketch bounds most of the new distances away, so that few are computed in full; the result is
that of the plain algorithm.

A new rule is a row of `LANDMARK_METHODS`, by `_of_sample` where it compares a sample in memory, and its name in
`SampledRule` or `DrawnRule` of `scalemani.config.stages`; `memory` of `scalemani.stages.landmarks` then
counts the sample. A rule that is to choose as many as there are distinct points returns all of these. Rules read the
points alone: the landmarks of a run are chosen without its graph. One that takes more memory or parameters is a folder
in `scalemani.methods`, see `determinantal`.
"""

import functools
import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from scalemani.config.methods import LandmarkExtension, extensions
from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator, row_words, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.kmeans import minibatch_start, minibatch_step, snapped_rows
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.machine.compile import compiled, inlined_sums
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import sketch_distance, squared_row_distance
from scalemani.kernels.rows.equal_rows import first_of_equal_rows
from scalemani.kernels.rows.sketches import SketchBasis, pruning_basis, sketch_precisely

WORDS_BLOCK = 1 << 20  # draws held at a time
SPREAD_EXCESS = 0.5  # M / L: half as many again are drawn, then dropped
LISTED_NEIGHBORS = 8  # of each candidate; when all are dropped, its nearest is searched among all
SPARE_FRACTION = 16  # one spare candidate for so many: repeated coordinates are the exception
SKETCH_DIMENSIONS = 32  # two cache lines a point: more would only be read more slowly
SUM_BLOCK = 1024  # points per partial sum of the draw
# A float32 sketch distance q of norms u, v is off by at most 2**-24 (u + v) sqrt(2 q) and s 2**-24 q; both are covered.
RELATIVE_MARGIN = 2.0**-11
NORM_MARGIN = 2.0**-34


@dataclass(frozen=True)
class Choice:
    """How landmarks are chosen: a seed, and what parameters of the same names say; rules of methods take more.

    Parameters
    ----------
    n_landmarks : L, at most N
    method : one of `LANDMARK_METHODS`
    sample_points : points that k-means takes in batches, and among which the methods choose that compare every
        candidate with every landmark
    snap : whether a centroid of k-means gives way to the data point nearest to it
    advance : called after each landmark by rules whose extension is `one_by_one`
    """

    n_landmarks: int
    method: str = "random"
    seed: int = 0
    sample_points: int = 100_000
    snap: bool = True
    advance: Callable[[], None] | None = None


class Selected(NamedTuple):
    """Landmarks (L, D), and their rows (L,) int64, ascending; None where they lie off the data.

    `certificates` say what a method measured on its way.
    """

    points: np.ndarray
    rows: np.ndarray | None
    certificates: Mapping[str, float] = MappingProxyType({})


def at_rows(points: PointsByRow, rows: np.ndarray) -> Selected:
    """Return the points at rows as landmarks."""
    ascending = np.sort(rows)
    return Selected(points[ascending], ascending)


def too_few_rows(n_landmarks: int, n_points: int, n_distinct: int) -> DataError:
    """Return the error of fewer distinct points than landmarks."""
    return DataError(
        f"{n_landmarks} landmarks were requested, but these {n_points} points have only {n_distinct} distinct rows; "
        f"request at most {n_distinct} landmarks"
    )


def sample_of(points: PointsByRow, choice: Choice) -> np.ndarray:
    """Return the rows (S,) among which rules choose that compare every candidate with every landmark."""
    return sample_rows(choice.seed, "landmarks/sample", len(points), max(choice.sample_points, choice.n_landmarks))


def draw_rows(n_rows: int, n_drawn: int, seed: int, stage: str) -> np.ndarray:
    """Return distinct rows of N (n_drawn or N,) int64 drawn uniformly, in the order drawn.

    The first m of n drawn rows are the m drawn rows, so that a caller can draw more. When a row is drawn is a function
    of the seed, the stage and the row.
    """
    rows, words = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    for block in slices(n_rows, WORDS_BLOCK):
        words = np.concatenate([words, row_words(seed, stage, block.start, block.stop)])
        rows = np.concatenate([rows, np.arange(block.start, block.stop)])
        if len(rows) > n_drawn:
            smallest = np.argpartition(words, n_drawn - 1)[:n_drawn] if n_drawn > 0 else slice(0, 0)
            rows, words = rows[smallest], words[smallest]
    return rows[np.lexsort((rows, words))]


def random_landmarks(points: PointsByRow, n_landmarks: int, seed: int, stage: str = "random") -> np.ndarray:
    """Return rows (n_landmarks,) int64, ascending, drawn uniformly without replacement, no two with equal coordinates.

    Points are read at ascending rows. Fewer distinct points than landmarks are a DataError.
    """
    n_rows = len(points)
    n_drawn = n_landmarks  # no spare ones at first: each lies in another block of a store, which is read for it
    while True:
        drawn = draw_rows(n_rows, n_drawn, seed, f"landmarks/{stage}")
        order = np.argsort(drawn)
        distinct = first_of_equal_rows(points[drawn[order]][np.argsort(order)])
        if len(distinct) >= n_landmarks:
            return np.sort(drawn[distinct[:n_landmarks]])
        if n_drawn >= n_rows:
            raise too_few_rows(n_landmarks, n_rows, len(distinct))
        n_drawn = 2 * n_drawn if n_drawn > n_landmarks else n_landmarks + n_landmarks // SPARE_FRACTION + 1


def n_spread_candidates(n_landmarks: int, n_rows: int) -> int:
    """Return L + M, the number of random candidates from which `spread_landmarks` keeps L: M = L/2 where N allows."""
    return min(n_rows, n_landmarks + int(np.ceil(SPREAD_EXCESS * n_landmarks)))


def spread_landmarks(candidates: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return the rows (n_landmarks,) int64, ascending, of candidates left when closest pairs have lost one point each.

    The closest pair of those left loses one of its two points, drawn at random, until `n_landmarks` are left.
    Candidates (L + M, D) are distinct random points, and M decides how evenly the landmarks spread. Fewer candidates
    than landmarks are a DataError. Source: [LLL] 4.4, which takes all M pairs at once; one at a time never drops both
    points of a pair.
    """
    n_candidates = len(candidates)
    if n_landmarks > n_candidates:
        raise DataError(
            f"{n_landmarks} landmarks were requested, but there are only {n_candidates} candidates: request fewer"
        )
    rows = np.ascontiguousarray(candidates)
    indices, distances = nearest_landmarks(rows, rows, min(LISTED_NEIGHBORS + 1, n_candidates))
    words = row_words(seed, "landmarks/spread", 0, n_candidates)
    alive = np.ones(n_candidates, dtype=bool)
    queue = [(-1.0, position, -1, 0) for position in range(n_candidates)]
    n_left = n_candidates
    while n_left > n_landmarks:
        _, position, partner, next_entry = heapq.heappop(queue)
        if not alive[position]:
            continue
        if partner >= 0 and alive[partner]:
            alive[position if words[position] > words[partner] else partner] = False
            n_left -= 1
            next_entry -= 1  # a surviving point looks at the same entry again, finds it dropped and takes the next
        if alive[position]:
            heapq.heappush(queue, _next_pair(rows, alive, indices[position], distances[position], position, next_entry))
    return np.flatnonzero(alive)


def _next_pair(
    rows: np.ndarray, alive: np.ndarray, listed: np.ndarray, distances: np.ndarray, position: int, next_entry: int
) -> tuple[float, int, int, int]:
    """Return (distance, position, its nearest partner left, where to look next)."""
    for entry in range(max(next_entry, 0), len(listed)):
        partner = int(listed[entry])
        if partner != position and alive[partner]:
            return float(distances[entry]), position, partner, entry + 1
    partner, distance = _nearest_left(rows, alive, position)
    return distance, position, partner, len(listed)


@compiled
def _nearest_left(rows: np.ndarray, alive: np.ndarray, position: int) -> tuple[int, float]:
    nearest, least = -1, np.inf
    for other in range(rows.shape[0]):
        if alive[other] and other != position:
            distance = squared_row_distance(rows, position, rows, other, least)
            if distance < least:
                nearest, least = other, distance
    return nearest, least


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
        raise too_few_rows(n_landmarks, len(points), n_picked)
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
    center_norm = norms[landmark]
    for i in range(rows.shape[0]):
        square = np.float64(sketch_distance(sketch, i, landmark))
        bound = square * (1.0 - RELATIVE_MARGIN) - norms[i] - center_norm
        if least[i] < bound * unit < np.inf:
            continue
        distance = squared_row_distance(rows, i, rows, landmark, least[i])
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
    return at_rows(points, random_landmarks(points, choice.n_landmarks, choice.seed))


def _spread(points: PointsByRow, choice: Choice) -> Selected:
    n_landmarks, n_candidates = choice.n_landmarks, n_spread_candidates(choice.n_landmarks, len(points))
    while True:
        try:
            candidates = random_landmarks(points, n_candidates, choice.seed, "spread")
        except DataError:  # repeated points can leave fewer than L + M, which is an error only below L
            if n_candidates == n_landmarks:
                raise
            n_candidates = n_landmarks + (n_candidates - n_landmarks) // 2
            continue
        return at_rows(points, candidates[spread_landmarks(points[candidates], n_landmarks, choice.seed)])


def _of_sample(rule: Callable[[np.ndarray, int, int], np.ndarray], points: PointsByRow, choice: Choice) -> Selected:
    rows = sample_of(points, choice)
    return at_rows(points, rows[rule(points[rows], choice.n_landmarks, choice.seed)])


def _kmeans(points: PointsByRow, choice: Choice) -> Selected:
    seeds = random_landmarks(points, choice.n_landmarks, choice.seed)
    return _clustered(points, points[sample_of(points, choice)], seeds, choice)


def _kmeans_plus_plus(points: PointsByRow, choice: Choice) -> Selected:
    rows = sample_of(points, choice)
    sample = points[rows]
    return _clustered(points, sample, rows[kmeans_plus_plus(sample, choice.n_landmarks, choice.seed)], choice)


def _clustered(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray, choice: Choice) -> Selected:
    """Return the centroids of mini-batch k-means over tiles of all points in random order, or the rows next to them.

    Centroids that another one equals, or whose nearest points were all taken, or are repeated, give way to the seeds.
    """
    first = points[seeds]
    state, parts = minibatch_start(points, sample, first), slices(len(points), TILE_ROWS)
    order = generator(choice.seed, "landmarks/tiles").permutation(len(parts))
    for number in order[: max(1, choice.sample_points // TILE_ROWS)]:
        state = minibatch_step(state, np.arange(parts[number].start, parts[number].stop))
    if not choice.snap:
        centroids = np.concatenate([state.unscaled(), first.astype(np.float64)])
        return Selected(centroids[first_of_equal_rows(centroids)[: len(seeds)]], None)
    nearest = snapped_rows(state)
    candidates = np.concatenate([nearest[nearest >= 0], seeds])
    candidates = candidates[np.sort(np.unique(candidates, return_index=True)[1])]
    return at_rows(points, candidates[first_of_equal_rows(points[candidates])[: len(seeds)]])


RuleChoice = TypeVar("RuleChoice", bound=Choice)


class LandmarkRule(Protocol[RuleChoice]):
    """A rule of landmarks that a method adds, and the class of its choices."""

    choice: type[RuleChoice]

    def select(self, points: PointsByRow, choice: RuleChoice) -> Selected:
        """Return landmarks among points, or off them."""
        ...


def _of_method(extension: LandmarkExtension, points: PointsByRow, choice: Choice) -> Selected:
    rule: LandmarkRule[Any] = extension.load()
    return rule.select(points, choice)


def choice_class(method: str) -> type[Choice]:
    """Return the class of the choices of a method."""
    extension = extensions(LandmarkExtension).get(method)
    if extension is None:
        return Choice
    rule: LandmarkRule[Any] = extension.load()
    return rule.choice


LANDMARK_METHODS: dict[str, Callable[[PointsByRow, Choice], Selected]] = {
    "random": _random,
    "spread": _spread,
    "kmeans": _kmeans,
    "kmeans++": _kmeans_plus_plus,
    "kmeans++ seeding": functools.partial(_of_sample, kmeans_plus_plus),
    "minmax": functools.partial(_of_sample, minmax_landmarks),
    **{name: functools.partial(_of_method, extension) for name, extension in extensions(LandmarkExtension).items()},
}
