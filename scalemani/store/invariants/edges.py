"""Invariants of the affinities of edges, and of W that is made of them."""

import functools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from scalemani.config.metrics import METRICS, compares_rows, has_coordinates
from scalemani.store.invariants import Block, Invariant, StoredRun, stored
from scalemani.store.invariants.matrices import row_numbers
from scalemani.store.invariants.models import sketched
from scalemani.store.invariants.orders import input_rows_of
from scalemani.store.invariants.points import close, gathered, in_work_order, rows_apart
from scalemani.store.invariants.values import (
    ROUNDING,
    difference_of_multisets,
    mixed,
    multisets_differ,
    rows_that,
)

FLOAT32 = 1e-5  # of what is computed from numbers that are stored as float32, relative
LARGEST_EXPONENT = 80.0  # exp(-80) is near the least positive number of float32
ENTROPY = 1e-4  # nats, of affinities in float32


def graph_rows(run: StoredRun, start: int, stop: int, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and distances (n, width) of rows of the last round of the neighbour graph."""
    last = int(np.asarray(stored(run, "neighbors", "last_round")[...]))
    paths = (f"round_{last}/{name}" for name in ("indices", "distances"))
    indices, distances = (np.asarray(stored(run, "neighbors", path)[start:stop])[:, :width] for path in paths)
    return indices.astype(np.int64), distances.astype(np.float64)


def kind_of(run: StoredRun) -> str:
    """Return `affinities.kind` of a run, as it was resolved."""
    return str(run.params["affinities"]["kind"])


def weights_of(run: StoredRun, rows: np.ndarray) -> np.ndarray:
    """Return how many copies points (m,) stand for; one each where points have no weights."""
    weights = run.stored("weights", "weights")
    return np.ones(len(rows)) if weights is None else gathered(weights, rows, run)


def copies_of(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return, of the rows of a block of affinities, the copies (n, k) of each neighbour and the weight (n,) of each."""
    rows = block.start + np.arange(len(block.values))
    indices, _ = graph_rows(block.run, block.start, block.start + len(rows), block.array("values").shape[1])
    return weights_of(block.run, indices.ravel()).reshape(indices.shape), weights_of(block.run, rows)


def not_falling(block: Block) -> int:
    """Count rows whose affinities rise with the distance."""
    return rows_that(block.values[:, 1:] > block.values[:, :-1])


FALLING_IN_ROWS = Invariant("never rising in a row, as distances ascend", not_falling)


def off_one_over_copies(block: Block) -> int:
    """Count rows of entropic affinities whose sum over all copies is not one."""
    if kind_of(block.run) != "entropic":
        return 0
    copies, weights = copies_of(block)
    sums = (block.values * copies).sum(axis=1)
    if block.has("twins"):
        sums += (weights - 1) * block.rows_of("twins")
    return int(np.count_nonzero(~(np.abs(sums - 1) <= ROUNDING["float32"])))


SUM_TO_ONE_OVER_COPIES = Invariant("entropic ones sum to one in each row, over all copies", off_one_over_copies)


def other_entropies(block: Block) -> int:
    """Count rows whose residual is not the entropy of the affinities as they are stored less log(perplexity)."""
    copies, weights = copies_of(block)
    values = block.rows_of("values").astype(np.float64)
    entropies = -(copies * values * np.log(np.where(values > 0, values, 1.0))).sum(axis=1)
    if block.has("twins"):
        copy_affinities = block.rows_of("twins")
        entropies -= (weights - 1) * copy_affinities * np.log(np.where(copy_affinities > 0, copy_affinities, 1.0))
    target = np.log(block.run.params["affinities"]["perplexity"])
    return int(np.count_nonzero(~(np.abs(entropies - target - block.values) <= ENTROPY)))


def unsolved(block: Block) -> int:
    """Count rows that have a root and are farther from it than the tolerance."""
    missed = np.abs(block.values) > 10 * block.run.params["affinities"]["tolerance"]
    return int(np.count_nonzero(missed & (block.rows_of("saturated") == 0)))


RESIDUALS_OF_VALUES = Invariant("those of `values` as they are stored", other_entropies)
SOLVED = Invariant("within ten times affinities.tolerance but for saturated points", unsolved)


def other_than_by_distance(block: Block) -> int:
    """Count rows whose affinities do not fall with the squared distances as `beta`, or sigma, has it."""
    run = block.run
    _, distances = graph_rows(run, block.start, block.start + len(block.values), block.values.shape[1])
    squares, values = distances**2, block.values.astype(np.float64)
    if block.has("beta"):
        # Relative to the nearest. Ties put beta as high as it goes.
        with np.errstate(over="ignore"):
            exponents = np.minimum(block.rows_of("beta")[:, np.newaxis] * (squares - squares[:, :1]), LARGEST_EXPONENT)
        expected = values[:, :1] * np.exp(-exponents)
    elif kind_of(run) == "gaussian":
        sigma = run.params["affinities"]["sigma"]
        sigma = float(np.asarray(stored(run, "affinities", "sigma")[...])) if sigma is None else sigma
        exponents = np.minimum(squares / (2 * sigma**2), LARGEST_EXPONENT)
        expected = np.exp(-exponents)
    else:
        return 0
    near = exponents < LARGEST_EXPONENT
    return rows_that(near & ~(np.abs(values - expected) <= FLOAT32 * (1 + exponents) * expected + 1e-30))


FOLLOW_DISTANCES = Invariant(
    "exp(-beta d^2) relative to each other, d the distances of `neighbors`; Gaussian ones with their sigma",
    other_than_by_distance,
)


def other_duplicated(block: Block) -> int:
    """Count rows whose mark is not whether the nearest neighbour is at distance 0."""
    _, distances = graph_rows(block.run, block.start, block.start + len(block.values), 1)
    return int(np.count_nonzero((distances[:, 0] ** 2 == 0) != (block.values == 1)))


MARKS_DUPLICATES = Invariant("1 where the distance of the nearest neighbour is 0", other_duplicated)

# Components

JOINING = (
    1e-3  # of the largest affinity of a point, also to its copies: such an edge joins, for any degrees of its ends
)


def edges_between(block: Block) -> int:
    """Count points with an edge to another component that is not negligible."""
    if block.run.stored("neighbors", "last_round") is None:
        return 0
    run, labels = block.run, stored(block.run, block.stage, block.path)
    affinities = run.stored("affinities", "values")
    width = None if affinities is None else affinities.shape[1]
    indices, _ = graph_rows(run, block.start, block.start + len(block.values), width)
    joins = np.ones(indices.shape, bool)
    if affinities is not None:
        rows, copy_affinities = slice(block.start, block.start + len(indices)), run.stored("affinities", "twins")
        values = np.asarray(affinities[rows])
        largest = values.max(axis=1, keepdims=True)
        if copy_affinities is not None:
            largest = np.maximum(largest, np.asarray(copy_affinities[rows])[:, np.newaxis])
        joins = values >= JOINING * largest
    return rows_that(joins & (np.asarray(labels[...])[indices] != block.values[:, np.newaxis]))


ONE_ALONG_EDGES = Invariant("one along each edge of the graph that is not negligible", edges_between)


def bridges_that_join_none(block: Block) -> int:
    """Count bridges whose ends were joined before, by the components or by bridges before them."""
    labels = np.asarray(block.array("labels")[...])
    if block.start:
        return 0
    ends = labels[np.clip(np.asarray(block.array("bridge_rows")[...]), 0, len(labels) - 1)]
    count, size = int(labels.max(initial=-1)) + 1, len(ends)
    graph = sp.coo_matrix((np.ones(size), (ends[:, 0], ends[:, 1])), shape=(count, count))
    left, _ = connected_components(graph, directed=False)
    return abs(size - (count - left))


JOIN_COMPONENTS = Invariant("each between components that nothing else joins", bridges_that_join_none)


def unjoined(block: Block) -> int:
    """Return how many components bridges leave apart, where they are to join all: those of points.

    By a function of users or a power, which may overflow, components may be infinitely far from each other.
    """
    run = block.run
    searched = run.params["points"]["metric"] in METRICS
    if run.params["components"]["disconnected"] != "connect" or not searched:
        return 0
    if block.start or (run.stored("points", "points") is None and run.stored("points", "n_features") is None):
        return 0
    return abs(int(np.asarray(block.array("labels")[...]).max(initial=0)) - int(block.array("bridge_rows").shape[0]))


JOIN_ALL = Invariant("one less than components of points that are to be connected", unjoined)


def other_lengths(block: Block) -> int:
    """Count bridges that are not as long as their ends are apart: in sketches, or in a metric that compares rows."""
    run, metric, ends = block.run, block.run.params["points"]["metric"], block.rows_of("bridge_rows")
    if not len(ends):
        return 0
    if compares_rows(metric):
        one, other = (in_work_order(run).gather(rows) for rows in ends.T)
        return int(np.count_nonzero(~close(block.values, rows_apart(one, other, metric))))
    if run.stored("partition", "axes") is None or not has_coordinates(metric):
        return 0
    scale = float(np.asarray(stored(run, "partition", "scale")[...]))
    one, other = (sketched(run, in_work_order(run).gather(rows))[0] for rows in ends.T)
    lengths = scale * np.linalg.norm(one - other, axis=1)
    size = scale * np.linalg.norm(one, axis=1)  # products in float32 lose digits of near rows
    return int(np.count_nonzero(~(np.abs(lengths - block.values) <= 1e-3 * lengths + 1e-3 * size)))


LENGTHS_OF_BRIDGES = Invariant(
    "the distances of the ends in sketches, or in a metric that compares rows", other_lengths
)


def not_the_largest(block: Block) -> int:
    """Return how many input rows are not those of the largest component; by the first block."""
    if block.start:
        return 0
    labels = np.asarray(block.array("labels")[...])
    largest = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    stored_rows = np.asarray(stored(block.run, block.stage, block.path)[...])
    return len(np.setxor1d(stored_rows, input_rows_of(block.run, slice(0, len(labels)))[largest]))


LARGEST_COMPONENT = Invariant("the rows of the largest component", not_the_largest)

# W


def has_edges(run: StoredRun) -> bool:
    """Return whether W is made of stored affinities of edges, and not of pixels or a precomputed matrix."""
    return run.stored("affinities", "values") is not None


def edges_left_out(indices: str, indptr: str, block: Block) -> int:
    """Count edges of the graph that W lacks, or holds with less than half their affinity."""
    run = block.run
    if not has_edges(run):
        return 0
    first, n_rows = block.first_point, len(block.all_of(indptr)) - 1
    affinities = np.asarray(stored(run, "affinities", "values")[first : first + n_rows])
    neighbors, _ = graph_rows(run, first, first + n_rows, affinities.shape[1])
    order = np.argsort(neighbors, axis=1)  # what is looked for in ascending order is near in memory
    neighbors, affinities = (np.take_along_axis(one, order, axis=1) for one in (neighbors, affinities))
    keys = row_numbers(block, indptr) * run.n_points + block.all_of(indices)
    if not len(keys) or (np.diff(keys) <= 0).any():
        return 1
    edge_keys = np.arange(n_rows)[:, np.newaxis] * run.n_points + neighbors
    places = np.minimum(np.searchsorted(keys, edge_keys), len(keys) - 1)
    share = 0.5 * (1 - run.params["symmetric_affinities"]["target_weight"]) * (1 - FLOAT32)
    rows = first + np.arange(n_rows)
    weights = weights_of(run, rows)[:, np.newaxis] * weights_of(run, neighbors.ravel()).reshape(neighbors.shape)
    least = share * affinities * weights
    held = (keys[places] == edge_keys) & (block.values[places] >= least) | (least < np.finfo(np.float32).tiny)
    return int(np.count_nonzero(~held))


def holds_edges(indices: str, indptr: str) -> Invariant:
    """Return that W holds every edge of the graph, with half its affinity at least."""
    part = functools.partial(edges_left_out, indices, indptr)
    return Invariant("every edge of `affinities` is there, with half its affinity at least", part)


def other_sources(block: Block) -> int:
    """Return the pairs of blocks that are stored less those that edges join, as multisets: edges from, and to."""
    run, number = block.run, block.first_point // block.run.block_rows
    rows = slice(block.first_point, min(block.first_point + run.block_rows, run.n_points))
    affinities = np.asarray(stored(run, "affinities", "values")[rows])
    neighbors, _ = graph_rows(run, rows.start, rows.stop, affinities.shape[1])
    targets = np.unique(neighbors[affinities > 0] // run.block_rows)
    listed = mixed(block.values.astype(np.int64), np.full(len(block.values), number))
    return difference_of_multisets(listed, mixed(np.full(len(targets), number), targets))


SEND_EDGES = Invariant("those that an edge with an affinity leads from", other_sources, multisets_differ)


def masses(block: Block) -> np.ndarray:
    """Return the sum of the degrees of a block, and what its edges and copies give to it: (2,)."""
    run = block.run
    first, n_rows = block.first_point, len(block.values)
    if not has_edges(run) or run.params["symmetric_affinities"]["target_weight"]:
        return np.zeros(2)
    affinities = stored(run, "affinities", "values")
    rows, values = first + np.arange(n_rows), np.asarray(affinities[first : first + n_rows], np.float64)
    neighbors, _ = graph_rows(run, first, first + n_rows, values.shape[1])
    weights = weights_of(run, rows)
    sums = weights * (values * weights_of(run, neighbors.ravel()).reshape(neighbors.shape)).sum(axis=1)
    copy_affinities = run.stored("affinities", "twins")
    if copy_affinities is not None:
        sums += weights * (weights - 1) * np.asarray(copy_affinities[first : first + n_rows])
    return np.array([block.values.sum(), sums.sum()])


def masses_differ(total: np.ndarray, run: StoredRun) -> int:
    """Return 1 where the degrees do not add up to the affinities and the bridges."""
    bridges = 0.0
    if has_edges(run) and total.any() and run.stored("components", "bridge_weights") is not None:
        ends = np.asarray(stored(run, "components", "bridge_rows")[...])
        copies = weights_of(run, ends.ravel()).reshape(ends.shape).prod(axis=1)
        bridges = 2 * float((copies * np.asarray(stored(run, "components", "bridge_weights")[...])).sum())
    return int(not abs(total[0] - total[1] - bridges) <= FLOAT32 * abs(total[0]))


ADD_UP_TO_AFFINITIES = Invariant(
    "adding up to the affinities of all edges, copies and bridges, where no target weight lowers them",
    masses,
    masses_differ,
)
