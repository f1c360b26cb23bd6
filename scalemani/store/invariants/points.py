"""Invariants that read the points: distances are those of the rows that are named, models are those of their rows."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from scalemani.config.judged import distances_between
from scalemani.config.metrics import compares_rows
from scalemani.store.invariants import Block, Invariant, StoredArray, StoredRun, stored
from scalemani.store.invariants.values import NUMBERS_AT_ONCE, rows_that

LEAST_DISTANCE = 1e-150  # below, squares underflow
# Of distances, relative, by their dtype: of wide rows that are near each other.
DISTANCE_ROUNDING = {"float32": 2e-5, "float64": 1e-9}


@dataclass(frozen=True)
class Points:
    """The points of a run by consecutive rows, dense or sparse, in the order of `stage`."""

    run: StoredRun
    stage: str

    @property
    def sparse(self) -> bool:
        """Whether the points are stored as sparse rows, by blocks."""
        return self.run.stored(self.stage, "n_features") is not None

    @property
    def n_features(self) -> int:
        """The number of columns, D, of the points."""
        array = stored(self.run, self.stage, "n_features" if self.sparse else "points")
        return int(np.asarray(array[...])) if self.sparse else int(array.shape[1])

    def rows(self, start: int, stop: int) -> np.ndarray | sp.csr_matrix:
        """Return consecutive rows of one block, in their dtype."""
        if not self.sparse:
            return np.asarray(stored(self.run, self.stage, "points")[start:stop])
        number = start // self.run.block_rows
        folder = f"{'rows-' if self.stage == 'work_points' else ''}block-{number:06d}"
        parts = (stored(self.run, self.stage, f"{folder}/{name}") for name in ("values", "indices", "indptr"))
        values, columns, bounds = (np.asarray(part[...]) for part in parts)
        rows = sp.csr_matrix((values, columns, bounds), (len(bounds) - 1, self.n_features))
        first = number * self.run.block_rows
        return rows[start - first : stop - first]

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (n,) in any order as dense rows (n, D) float64."""
        gathered_rows = np.empty((len(rows), self.n_features))
        for places, start, stop in by_block(rows, self.run):
            gathered_rows[places] = dense(self.rows(start, stop)[rows[places] - start])
        return gathered_rows


def in_work_order(run: StoredRun) -> Points:
    """Return the points in work order, or in input order in a run that stores no work order."""
    return Points(run, "points" if run.stored("work_points", "input_rows") is None else "work_points")


def dense(rows: np.ndarray | sp.csr_matrix) -> np.ndarray:
    """Return rows (n, D), dense or sparse, as an array in float64."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), np.float64)


def by_block(rows: np.ndarray, run: StoredRun) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield which of some row numbers (m,) lie in a block, and where the block begins and ends."""
    blocks = rows // run.block_rows
    order = np.argsort(blocks, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1):
        if len(places):
            start = int(blocks[places[0]]) * run.block_rows
            yield places, start, min(start + run.block_rows, run.n_points)


def gathered(array: StoredArray, rows: np.ndarray, run: StoredRun) -> np.ndarray:
    """Return rows (m,) of a stored array in any order, a block of it in memory at a time."""
    values = np.empty((len(rows), *array.shape[1:]), array.dtype)
    for places, start, stop in by_block(rows, run):
        values[places] = np.asarray(array[start:stop])[rows[places] - start]
    return values


# Distances of pairs


def pair_distances(points: Points, first_row: int, owners: np.ndarray, others: np.ndarray, metric: str) -> np.ndarray:
    """Return the distances (m,) of rows `first_row + owners` of one block to rows `others`, NaN where these are none.

    They are Euclidean, roots of Jaccard distances, or those of a `metric` that compares rows.
    """
    distances = np.full(len(owners), np.nan)
    inside = np.flatnonzero((others >= 0) & (others < points.run.n_points))
    owner_points = points.rows(first_row, first_row + int(owners.max(initial=0)) + 1)
    at_once = max(1, NUMBERS_AT_ONCE // max(1, points.n_features))
    for places, start, stop in by_block(others[inside], points.run):
        block = points.rows(start, stop)
        for first in range(0, len(places), at_once):
            some = inside[places[first : first + at_once]]
            one, other = owner_points[owners[some]].astype(np.float64), block[others[some] - start].astype(np.float64)
            distances[some] = rows_apart(one, other, metric)
    return distances


def rows_apart(one: np.ndarray | sp.csr_matrix, other: np.ndarray | sp.csr_matrix, metric: str) -> np.ndarray:
    """Return the distances (n,) of rows to others as `pair_distances` does."""
    if compares_rows(metric):
        pairs = zip(one[:, np.newaxis], other[:, np.newaxis], strict=True)
        return np.array([distances_between(metric, first, row)[0, 0] for first, row in pairs])
    if metric == "jaccard":
        one, other = (sp.csr_matrix(rows > 0).astype(np.float64) for rows in (one, other))
        common = np.asarray(one.multiply(other).sum(axis=1)).ravel()
        union = np.asarray(one.sum(axis=1) + other.sum(axis=1)).ravel() - common
        return np.sqrt(1 - common / np.maximum(union, 1))
    differences = one - other
    if sp.issparse(differences):
        return np.sqrt(np.asarray(differences.multiply(differences).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("nd,nd->n", differences, differences))


def other_distances(block: Block) -> int:
    """Count rows of distances to neighbours in work order that are not those of the points that `indices` names."""
    run, values = block.run, block.values
    metric = run.params["points"]["metric"]
    if metric == "precomputed":
        input_lists = np.asarray(stored(run, "points", "points")[block.start : block.start + len(values)])
        return rows_that(np.split(input_lists, 2, axis=1)[1] != values)
    neighbors = block.rows_of("indices").astype(np.int64)
    owners = np.repeat(np.arange(len(values)), values.shape[1])
    points = in_work_order(run)
    expected = pair_distances(points, block.start, owners, neighbors.ravel(), metric)
    return rows_that(~close(values, expected.reshape(values.shape)))


def close(distances: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return which distances are as expected, to the rounding of their dtype."""
    allowed = DISTANCE_ROUNDING[distances.dtype.name] * expected + LEAST_DISTANCE
    return np.abs(distances - expected) <= allowed


DISTANCES_OF_INDICES = Invariant(
    "the Euclidean distances of the points that `indices` names, as the metric maps them (of jaccard, the roots of its "
    "distances; of a metric that compares rows, its distances)",
    other_distances,
)

# Landmarks and Z

LOOKED_AT = 8  # rows of a block that are compared with all landmarks


def of_landmarks(count: Callable[[np.ndarray, np.ndarray, Block], int]) -> Callable[[Block], int]:
    """Return what adds up over tiles of a block of Z: of points (n, D), their landmarks (n, K, D), and the tile."""

    @functools.wraps(count)
    def over_tiles(block: Block) -> int:
        points, landmarks = in_work_order(block.run), np.asarray(stored(block.run, "landmarks", "points")[...])
        block_points = points.rows(block.start, block.start + len(block.values))
        numbers = block.rows_of("indices")
        at_once, total = max(1, NUMBERS_AT_ONCE // max(1, numbers.shape[1] * points.n_features)), 0
        for first in range(0, len(tile_rows := np.arange(len(block.values))), at_once):
            rows = tile_rows[first : first + at_once]
            near = landmarks[np.clip(numbers[rows], 0, len(landmarks) - 1)].astype(np.float64)
            tile = Block(block.run, block.stage, block.path, block.start + first, block.values[rows])
            total += count(dense(block_points[rows]), near, tile)
        return total

    return over_tiles


def distances_to(points: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return how far points (n, D) are from landmarks (n, K, D) each: (n, K)."""
    return np.linalg.norm(near - points[:, np.newaxis], axis=2)


@of_landmarks
def not_nearest_first(points: np.ndarray, near: np.ndarray, tile: Block) -> int:
    """Count rows whose landmarks are not in the order of their distances."""
    distances = distances_to(points, near)
    rounding = DISTANCE_ROUNDING["float64"] * distances.max(axis=1, initial=0.0)
    return int(np.count_nonzero((distances[:, 1:] < distances[:, :-1] - rounding[:, np.newaxis]).any(axis=1)))


@of_landmarks
def other_errors(points: np.ndarray, near: np.ndarray, tile: Block) -> int:
    """Count rows whose error is not what their weights leave, relative to the nearest landmark."""
    left = np.linalg.norm(points - np.einsum("nk,nkd->nd", tile.rows_of("values"), near), axis=1)
    nearest = distances_to(points, near).min(axis=1)
    scale = np.abs(points).max(axis=1, initial=0.0) + np.abs(near).max(axis=(1, 2), initial=0.0)
    allowed = 1e-5 * left + 1e-6 * nearest + 1e-12 * scale
    return int(np.count_nonzero(~(np.abs(left - tile.values * nearest) <= allowed)))


def nearer_left_out(block: Block) -> int:
    """Count, of a few rows, those with a landmark that is nearer than the farthest of theirs and not among them."""
    points, landmarks = in_work_order(block.run), np.asarray(stored(block.run, "landmarks", "points")[...], np.float64)
    some = np.unique(np.linspace(0, len(block.values) - 1, LOOKED_AT).astype(int))
    sampled_points, count = dense(points.rows(block.start, block.start + len(block.values))[some]), 0
    for point, numbers in zip(sampled_points, block.values[some], strict=True):
        distances = np.linalg.norm(landmarks - point, axis=1)
        listed = np.isin(np.arange(len(landmarks)), numbers)
        farthest = distances[listed].max(initial=0.0) * (1 - DISTANCE_ROUNDING["float64"])
        count += bool((distances[~listed] < farthest).any())
    return count


def farther_first(block: Block) -> int:
    """Count landmarks off the data whose anchors are not in the order of their distances."""
    landmarks = block.rows_of("points").astype(np.float64)
    anchors = Points(block.run, "points").gather(block.values.ravel()).reshape(*block.values.shape, -1)
    distances = distances_to(landmarks, anchors)
    rounding = DISTANCE_ROUNDING["float32"] * distances.max(axis=1, initial=0.0)
    return rows_that(np.diff(distances, axis=1) < -rounding[:, np.newaxis])


NEAREST_ANCHORS = Invariant("ascending by their distance to the landmark", farther_first)
NEAREST_FIRST = Invariant("ascending by the distance of the point to these landmarks", not_nearest_first)
NEAREST_LANDMARKS = Invariant(f"the nearest landmarks, of {LOOKED_AT} points a block", nearer_left_out)
ERRORS_OF_WEIGHTS = Invariant("what the weights of the row leave of the point", other_errors)
