"""Invariants of small models, and of what is read off them: cells, landmarks, coarse graphs, clusters, projections."""

import numpy as np
import scipy.sparse as sp

from scalemani.store.invariants import Block, Invariant, StoredRun, stored
from scalemani.store.invariants.orders import input_rows_of
from scalemani.store.invariants.points import LOOKED_AT, Points, dense, gathered, in_work_order
from scalemani.store.invariants.spectral import graph_stage
from scalemani.store.invariants.values import NUMBERS_AT_ONCE, Count, mixed, number_of

IN_SIGHT = 1e16  # of sketches: what lies farther off counts as that
SKETCHED = 1e-4  # of float32 sketches, relative to the length of the row
CELLS = number_of("the number of cells", "partition", "centroids")


def cells_and_one(run: StoredRun) -> int:
    """Return one more than there are cells, which numbers of cells are below."""
    return CELLS.of(run) + 1


CELLS_AND_ONE = Count("the number of cells and one", cells_and_one)


# The partition


def power_of_two(block: Block) -> int:
    """Count numbers that are no positive power of two."""
    return int(np.count_nonzero(np.frexp(block.values)[0] != 0.5))


POWER_OF_TWO = Invariant("a power of two", power_of_two)


def sketched(run: StoredRun, rows: np.ndarray | sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the sketches (n, s) of rows of points (n, D) in float64, and how long what they are of is (n,)."""
    mean, axes, scale = (np.asarray(stored(run, "partition", name)[...], float) for name in ("mean", "axes", "scale"))
    n_rows, n_columns = rows.shape
    at_once = max(1, NUMBERS_AT_ONCE // max(1, n_columns))
    parts, lengths = [], []
    for first in range(0, n_rows, at_once):
        centred = np.clip((dense(rows[first : first + at_once]) - mean) / scale, -IN_SIGHT, IN_SIGHT)
        parts.append(np.clip(centred @ axes, -IN_SIGHT, IN_SIGHT))
        lengths.append(np.linalg.norm(centred, axis=1) + np.linalg.norm(mean) / scale)
    return np.concatenate(parts), np.concatenate(lengths)


def other_sketches(block: Block) -> int:
    """Count rows that are not the sketches of their points."""
    rows = in_work_order(block.run).rows(block.start, block.start + len(block.values))
    expected, lengths = sketched(block.run, rows)
    apart = np.abs(block.values - expected).max(axis=1, initial=0.0)
    return int(np.count_nonzero(~(apart <= SKETCHED * lengths)))


SKETCHES = Invariant("(point - mean) @ axes / scale, by `partition`, and at most 1e16", other_sketches)


def nearer_cells(block: Block) -> int:
    """Count points, of a few a block, to whose sketch another centroid is nearer than that of their cell."""
    centroids = np.asarray(stored(block.run, block.stage, "centroids")[...], np.float64)
    some = np.unique(np.linspace(0, len(block.values) - 1, LOOKED_AT).astype(int))
    rows = Points(block.run, "points").rows(block.start, block.start + len(block.values))
    sketches, lengths = sketched(block.run, rows[some])
    distances = np.linalg.norm(sketches[:, np.newaxis] - centroids, axis=2)
    to_cell = np.take_along_axis(distances, np.clip(block.values[some, np.newaxis], 0, len(centroids) - 1), axis=1)[
        :, 0
    ]
    return int(np.count_nonzero(to_cell > distances.min(axis=1) + SKETCHED * lengths))


NEAREST_CELL = Invariant(f"the cell of the nearest centroid, of {LOOKED_AT} points a block", nearer_cells)


# Searches


def farther_truth(block: Block) -> int:
    """Count queries that have a listed neighbour nearer than the true one of the same rank."""
    run, last = block.run, int(np.asarray(stored(block.run, block.stage, "last_round")[...]))
    listed = gathered(stored(run, block.stage, f"round_{last}/distances"), block.rows_of("query_rows"), run)
    return int(np.count_nonzero((block.values > listed * (1 + 1e-5) + 1e-150).any(axis=1)))


NOT_FARTHER = Invariant("none farther than that of the same rank in the last round", farther_truth)


def share_and_error(block: Block) -> int:
    """Return 1 where a share, its standard error and the number of points are none."""
    share, error, count = block.values
    return int(not (0 <= share <= 1 and 0 <= error <= 1 and count >= 1 and count == int(count)))


RECALL = Invariant("a share between 0 and 1, an error between 0 and 1, and a count", share_and_error)


# Coarse graphs

NODES = number_of("the number of nodes of the first coarse graph", "coarse_graphs", "level_1/degrees")


def next_nodes(block: Block) -> int:
    """Count nodes of a coarse graph whose label is no node of the next one, or nodes of that without a label."""
    number = int(block.folder.removeprefix("level_"))
    following = block.run.stored(block.stage, f"level_{number + 1}/degrees")
    if following is None:
        return len(block.values)
    if block.start:
        return 0
    labels = np.asarray(stored(block.run, block.stage, block.path)[...])
    count = following.shape[0]
    out = int(np.count_nonzero((labels < 0) | (labels >= count)))
    return out + count - len(np.unique(labels[(labels >= 0) & (labels < count)]))


NEXT_NODES = Invariant("each node of the next level at least once, none on the last level", next_nodes)


def other_levels(block: Block) -> int:
    """Return 1 where stored levels of coarse graphs are not as many as the array says."""
    count = int(block.values[0])
    there = [block.run.stored(block.stage, f"level_{number}/degrees") is not None for number in (1, count, count + 1)]
    return int(there != [True, True, False])


NUMBER_OF_LEVELS = Invariant("the number of the last level there is", other_levels)


def summed_degrees(block: Block) -> np.ndarray:
    """Return the degrees of W of a block by node of the first coarse graph: (n,)."""
    run, stage = block.run, graph_stage(block.run)
    n_nodes = NODES.of(run)
    degrees = np.asarray(stored(run, stage, f"block-{block.start // run.block_rows:06d}/degrees")[...])
    return np.bincount(np.clip(block.values, 0, n_nodes - 1), degrees, n_nodes)


def other_node_degrees(total: np.ndarray, run: StoredRun) -> int:
    """Count nodes whose degree is not the sum of those of their points."""
    degrees = np.asarray(stored(run, "coarse_graphs", "level_1/degrees")[...])
    return int(np.count_nonzero(~(np.abs(total - degrees) <= 1e-5 * total)))


DEGREES_ADD_UP = Invariant(
    "nodes whose degrees are the sums of those of their points", summed_degrees, other_node_degrees
)


# Clusters


def unit(rows: np.ndarray) -> np.ndarray:
    """Return rows at unit length; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def nearer_centers(block: Block) -> int:
    """Count points that have a nearer centre than that of their cluster, of a graph in one piece."""
    run = block.run
    if run.stored("embedding", "pieces") is not None:
        return 0
    centers = np.asarray(block.array("centers")[...])
    rows = np.asarray(stored(run, "embedding", "embedding")[block.start : block.start + len(block.values)])
    rows = unit(rows[:, : centers.shape[1]])
    distances = np.linalg.norm(rows[:, np.newaxis] - centers, axis=2)
    to_center = np.take_along_axis(distances, np.clip(block.values, 0, len(centers) - 1)[:, np.newaxis], axis=1)[:, 0]
    return int(np.count_nonzero(to_center > distances.min(axis=1) + 1e-9))


NEAREST_CENTER = Invariant("the nearest of `centers` to the row of `embedding` at unit length", nearer_centers)


def clusters_of(run: StoredRun) -> int:
    """Return `clustering.n_clusters` of a run."""
    return int(run.params["clustering"]["n_clusters"])


CLUSTERS = Count("the number of clusters", clusters_of)


def other_movement(block: Block) -> int:
    """Return 1 where a number is not how far the centres moved in the last pass."""
    passes = int(np.asarray(block.array("passes")[...]))
    if not passes:
        return int(block.values[0] != 0)
    before, after = (np.asarray(block.array(name)[...]) for name in (f"pass_{passes - 1:03d}", "centers"))
    return int(not abs(np.abs(after - before).max() - block.values[0]) <= 1e-12)


def other_shares(block: Block) -> int:
    """Return how many numbers are not one more than the `null` ones from `agreement` on, over one more than all."""
    null = block.all_of("null")
    beyond = len(null) - np.searchsorted(null, block.rows_of("agreement"), side="left")
    return int(np.count_nonzero(np.abs(block.values * (len(null) + 1) - beyond - 1) > 1e-6))


SHARES_OF_NULL = Invariant("the share of `null` and one more that is from `agreement` on", other_shares)

LAST_MOVEMENT = Invariant("how far `centers` are from those before the last pass", other_movement)


# Landmarks


def landmark_points(run: StoredRun) -> np.ndarray:
    """Return the landmarks (L, D) of a run in float64, in the geometry of its metric."""
    return np.asarray(stored(run, "landmarks", "points")[...], np.float64)


# Isomap


def landmarks_of_part(block: Block) -> np.ndarray:
    """Return the numbers (n,) of the landmarks that the rows of a part start from, eight a part."""
    first = block.first_point // block.run.block_rows * 8
    return first + np.arange(len(block.values))


def not_from_itself(block: Block) -> int:
    """Count landmarks that are not at distance zero from themselves."""
    landmarks = landmarks_of_part(block)
    return int(np.count_nonzero(block.values[np.arange(len(landmarks)), landmarks] != 0))


ZERO_TO_ITSELF = Invariant("zero from a landmark to itself", not_from_itself)


def ways_there_and_back(block: Block) -> np.ndarray:
    """Return sums over pairs of landmarks of their distance, times a number that has one sign a way: (2,)."""
    sources, others = landmarks_of_part(block)[:, np.newaxis], np.arange(block.values.shape[1])
    factors = mixed(np.minimum(sources, others), np.maximum(sources, others)) / 2.0**64 * np.sign(sources - others)
    return np.array([(factors * block.values).sum(), np.abs(factors * block.values).sum()])


def ways_differ(total: np.ndarray, run: StoredRun) -> int:
    """Return 1 where the ways back are not as long as those there."""
    return int(not abs(total[0]) <= 1e-9 * total[1])


SAME_WAY_BACK = Invariant("symmetric, to rounding", ways_there_and_back, ways_differ)


def longer_than_edges(block: Block) -> int:
    """Count rows of paths to all points that are shorter than a straight line, by the landmarks themselves.

    No path is shorter than the distance of its ends, and one to a landmark is that of `distances`.
    """
    run, numbers = block.run, landmarks_of_part(block)
    rows = np.asarray(stored(run, "landmarks", "rows")[...])
    order = input_rows_of(run, slice(0, run.n_points))
    places = np.empty(run.n_points, np.int64)
    places[order] = np.arange(run.n_points)
    between = block.all_of("distances")
    same = np.abs(block.values[:, places[rows]] - between) <= 1e-6 * between
    points = landmark_points(run)
    straight = np.linalg.norm(points[numbers, np.newaxis] - points, axis=2)
    return int(np.count_nonzero(~(same & (between >= straight * (1 - 1e-5))).all(axis=1)))


NO_SHORTCUTS = Invariant(
    "those of `distances` to landmarks, and none of these shorter than a straight line", longer_than_edges
)


def away_from_landmarks(block: Block) -> int:
    """Count landmarks whose coordinates are not those of their points in the embedding."""
    run, rows = block.run, np.asarray(stored(block.run, "landmarks", "rows")[...])
    embedding = gathered(
        stored(run, block.stage, "embedding"), rows[block.start : block.start + len(block.values)], run
    )
    size = np.abs(block.values).max(initial=0.0)
    return int(np.count_nonzero(~(np.abs(embedding - block.values) <= 1e-4 * size).all(axis=1)))


ROWS_OF_EMBEDDING = Invariant("the rows of `embedding` of the landmarks", away_from_landmarks)


# Discriminants


def other_projections(block: Block) -> int:
    """Count rows that are not (point - mean) @ axes."""
    rows = dense(Points(block.run, "points").rows(block.start, block.start + len(block.values)))
    mean, axes = (np.asarray(block.array(name)[...]) for name in ("mean", "axes"))
    expected = (rows - mean) @ axes
    scale = np.linalg.norm(rows - mean, axis=1)[:, np.newaxis] * np.linalg.norm(axes, axis=0)
    return int(np.count_nonzero(~(np.abs(block.values - expected) <= 1e-9 * scale + 1e-300).all(axis=1)))


PROJECTIONS = Invariant("(points - mean) @ axes", other_projections)


# Pixels


def other_extent(block: Block) -> int:
    """Return 1 where the sides of an image are not those of all pixels."""
    return int((block.values < 1).any() or int(np.prod(block.values)) != block.run.n_points)


ALL_PIXELS = Invariant("of as many pixels as there are points", other_extent)


# Descents


def not_in_turn(block: Block) -> int:
    """Count evaluations whose iteration is not above the one before, or whose numbers are none."""
    falling = int(np.count_nonzero(~(np.diff(block.values[:, 0]) > 0)))
    return falling + int(
        np.count_nonzero(~np.isfinite(block.values).all(axis=1) | (block.values[:, [0, 2]] < 0).any(axis=1))
    )


ITERATIONS_ASCEND = Invariant("of ascending iterations, with gradients of a length", not_in_turn)


def spread(block: Block) -> np.ndarray:
    """Return how many values of each column of a block differ from that of the first row of all."""
    first = np.asarray(stored(block.run, block.stage, block.path)[0:1])
    return np.asarray((block.values != first).sum(axis=0))


def collapsed(total: np.ndarray, run: StoredRun) -> int:
    """Count columns that have one value in all rows, by the summed result of `spread`."""
    return int(np.count_nonzero(total == 0))


NOT_ONE_PLACE = Invariant("of columns of several values", spread, collapsed)
