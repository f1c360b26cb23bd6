"""How many cells, candidates and list entries a search looks at."""

import math
from typing import NamedTuple

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.params import Resolved
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions, StageTask
from scalemani.kernels.neighbors.difficulty import Difficulty
from scalemani.kernels.neighbors.leaves import count_leaders
from scalemani.kernels.neighbors.rounds import FIRST_DRAWS, MORE_CELLS, draws_wanted
from scalemani.stages.shared.tiled_search import coded

COMPARED_NUMBERS = 1e9  # differences of coordinates: a tenth of a second, far fewer than an exact search takes
WHOLE_CANDIDATES = 1.5  # of k, by sketches with all dimensions: a pool retains four fifths, more than k
RETAINED_SHARE = 0.8  # of the candidates of a scan of cells, at least: fewer than k would leave places in lists empty
FEWEST_COMPARED, MOST_COMPARED = 100, 1000  # points whose lists are compared with plain distances
MOST_PAIRED = 2**20  # points searched in one go: some minutes, which an interrupted run computes again
LEAVES_OF_GROUP = 64  # that are one task: some seconds
LISTS_OF_LEAF = 10  # in the points of a leaf, at least: lists are full when the leaves of a point were searched
LEAF_SPREAD = 1.25  # mean square of the sizes of leaves over the square of their mean
# Seconds of a core with 512 bits at 3.5 GHz, as measured: ratios are what decides. One with tiles (AMX) multiplies
# twice as fast; the choice is the same there, so that a run has the same results.
SECONDS_OF_BYTE_PRODUCT = 3.5e-12  # a coordinate of a pair of points
SECONDS_OF_PAIR_OF_TILES = 2e-10  # of points, for any coordinates
# A neighbour of exact search with all that came before it, and each coordinate of these.
SECONDS_OF_LISTED, SECONDS_OF_LISTED_TERM = 3e-7, 4.5e-9
SECONDS_OF_PAIR_OF_LEAF = 2.5e-10  # of points, for any coordinates
# Of a point in a leaf, and of each pair of candidates that it keeps: they are inserted one by one.
SECONDS_OF_COPY, SECONDS_OF_INSERTION = 1e-6, 7.6e-10
SECONDS_OF_NEAR = 1.4e-10  # a coordinate of each pair of edges that rounds among neighbours of neighbours look along
SECONDS_OF_NONZERO = 1.8e-10  # of a sparse row, for each row that it is compared with
SECONDS_OF_PAIR = 4.6e-9  # of rows, for any columns
SECONDS_OF_TERM = 2.75e-11  # a coordinate of the sketch of a row, in a cell that is visited
SECONDS_OF_CANDIDATE, SECONDS_OF_BYTE = 4.3e-8, 5.5e-11  # that is settled, and of its coordinates
# Of rows that a function compares, as the sum of differences is: others take as many times as much everywhere.
SECONDS_OF_COMPARED_PAIR, SECONDS_OF_COMPARED_TERM = 3e-9, 1.6e-10
SECONDS_OF_JUDGED_TERM = 7e-10  # of the certificate, by SciPy
SECONDS_OF_SPARSE_CANDIDATE, SECONDS_OF_SPARSE_BYTE = 3e-7, 3e-10
# By the first draws and the rounds that follow: 0.03 of 30,000 tokens, 0.05 of 200,000 sums, 0.11 of a million.
MISSED_AT_FIRST, MISSED_POINTS, MISSED_GROWTH = 0.06, 200_000, 0.4
CELLS_OF_DIMENSION = 0.35  # intrinsic, for each tenth of the true neighbours that may lie elsewhere
LEAST_MISSED = 1e-3
LEAST_MUTUAL = 10
MORE_JOINED = 5  # candidates than neighbours: products in float32 may order near ties otherwise
BYTES_OF_CANDIDATE = 8
BYTES_OF_MEMBER = 20  # of a leaf: as its leaders are computed, and sorted by leaf
MOST_TOGETHER = 16  # times the points that a leaf is to have, whose coordinates are in memory together
STRIPES = 8  # of an exact search: 36 tasks, and lists of a point in each of them
STRIPE_BYTES = 2**28  # of points, at most
LEAST_STRIPED = 4  # blocks
COPIES_OF_STRIPES, COPIES_OF_LISTS = 2, 3  # as read and together; as filled, as stored, and encoded
BYTES_OF_LIMITS = 20  # of a list: the index of its row, and what it still takes


def paired_bytes(search: StageTask | Sizes) -> int:
    """Return what points and lists take in memory where an exact search has all of them at hand; 0 where it has not."""
    dimensions = search.dimensions
    if dimensions.sparse or dimensions.n_points > MOST_PAIRED or compares_rows(search.params.points.metric):
        return 0
    edge = np.dtype(np.int32).itemsize + dimensions.distance_dtype.itemsize
    of_point = dimensions.row_bytes + search.params.n_neighbors * edge + BYTES_OF_LIMITS
    return dimensions.n_points * of_point + coded(dimensions.n_points, dimensions.n_features)


def stripe_blocks(search: StageTask | Sizes) -> int:
    """Return how many blocks of points a stripe of an exact search has: there are STRIPES, or more of many points."""
    dimensions = search.dimensions
    stripes = max(STRIPES, -(-dimensions.n_points * dimensions.row_bytes // STRIPE_BYTES))
    return -(-dimensions.n_blocks // stripes)


def crossed_bytes(search: StageTask | Sizes) -> int:
    """Return what two stripes take while they are searched in each other; 0 where points are not searched so."""
    dimensions, rows = search.dimensions, 2 * stripe_blocks(search) * search.dimensions.block_rows
    if dimensions.sparse or compares_rows(search.params.points.metric) or dimensions.n_blocks < LEAST_STRIPED:
        return 0
    edge = np.dtype(np.int32).itemsize + dimensions.distance_dtype.itemsize
    listed = BYTES_OF_LIMITS + COPIES_OF_LISTS * search.params.n_neighbors * edge
    return rows * (COPIES_OF_STRIPES * dimensions.row_bytes + listed) + coded(rows, dimensions.n_features)


def n_compared(dimensions: Dimensions) -> int:
    """Return on how many points the recall of an exact search is measured: all of few ones."""
    values = dimensions.n_points * dimensions.n_features if dimensions.nonzeros is None else dimensions.nonzeros
    affordable = int(COMPARED_NUMBERS / max(1, values))
    return min(dimensions.n_points, int(np.clip(affordable, FEWEST_COMPARED, MOST_COMPARED)))


def cells_to_visit(near: np.ndarray, cells: np.ndarray, sought: float) -> int:
    """Return how many cells have to be visited until they hold a share of some neighbours, or all cells of `near`.

    Parameters
    ----------
    near : (q, m) int, the cells nearest to each of q points, nearest first
    cells : (q, k) int, the cells in which their neighbours lie, -1 for none
    sought : the share of all these neighbours
    """
    held = (near[:, :, np.newaxis] == np.where(cells < 0, -2, cells)[:, np.newaxis]).sum(axis=(0, 2))
    enough = np.cumsum(held) >= sought * np.count_nonzero(cells >= 0)
    return int(np.argmax(enough)) + 1 if enough.any() else near.shape[1]


def n_candidates(search: StageTask | Sizes, number: int) -> int:
    """Return how many candidates of a round are settled by exact distances."""
    params, k = search.params, search.params.n_neighbors
    if number == 0 and search.dimensions.n_features <= params.partition.sketch_dimensions:
        return round(WHOLE_CANDIDATES * k)
    tuning = params.neighbors
    first = tuning.few_candidates if k <= tuning.few_neighbors else tuning.first_candidates
    if number == 0:
        return max(round(first * k), math.ceil(k / RETAINED_SHARE))
    return round((first if k <= tuning.few_neighbors else tuning.later_candidates) * k)


def n_listed(params: Resolved) -> int:
    """Return how much of the list of a neighbour is looked at."""
    return min(params.neighbors.most_listed, params.n_neighbors)


def n_mutual(params: Resolved) -> int:
    """Return how many neighbours of a point, and how many whose neighbour it is, are looked at after leaves."""
    return min(params.n_neighbors, LEAST_MUTUAL + params.n_neighbors // 9)


class LeafSizes(NamedTuple):
    """How leaves cut the points, and what is retained of their candidates."""

    of_point: int  # leaves that a point is in
    points: int  # that a leaf is to have: several times as many as a list
    leaders: int  # of a draw, one a leaf
    of_group: int  # points that the leaves of a task have together
    groups: int  # tasks in which the leaves of a draw are searched, for any workers
    together: int  # points of one leaf that are in memory together: larger leaves are cut
    joined: int  # candidates of a point that a round over leaves settles by exact distances
    n_bytes: int  # that candidates and leaves of all points take in memory


def leaf_sizes(search: StageTask | Sizes) -> LeafSizes:
    """Return how a search cuts points into leaves."""
    tuning, n_points, joined = (
        search.params.neighbors,
        search.dimensions.n_points,
        search.params.n_neighbors + MORE_JOINED,
    )
    of_point = min(tuning.leaf_overlap, n_points)
    points = max(tuning.leaf_points, LISTS_OF_LEAF * search.params.n_neighbors)
    of_group = LEAVES_OF_GROUP * points
    return LeafSizes(
        of_point,
        points,
        count_leaders(n_points, points, of_point),
        of_group,
        -(-n_points * of_point // of_group),
        MOST_TOGETHER * points,
        joined,
        n_points * (joined * BYTES_OF_CANDIDATE + of_point * BYTES_OF_MEMBER + BYTES_OF_LIMITS),
    )


def exact_seconds(search: StageTask | Sizes) -> float:
    """Return the predicted processor seconds of exact search: of products, each pair of points once or twice."""
    dimensions, at_once = search.dimensions, 0.5 if paired_bytes(search) or crossed_bytes(search) else 1.0
    if compares_rows(search.params.points.metric):
        listed = search.params.n_neighbors * SECONDS_OF_LISTED
        return dimensions.n_points * (dimensions.n_points * compared_pair_seconds(dimensions) + listed)
    if dimensions.sparse:
        return dimensions.n_points**2 * pair_seconds(dimensions)
    pair = SECONDS_OF_PAIR_OF_TILES + dimensions.n_features * SECONDS_OF_BYTE_PRODUCT
    listed = SECONDS_OF_LISTED + dimensions.n_features * SECONDS_OF_LISTED_TERM
    return dimensions.n_points * (at_once * dimensions.n_points * pair + search.params.n_neighbors * listed)


def pair_seconds(dimensions: Dimensions) -> float:
    """Return those of two rows that are compared: by sketches, which leave few dense ones, or by all their nonzeros."""
    return SECONDS_OF_PAIR + (dimensions.nonzeros or 0) / dimensions.n_points * SECONDS_OF_NONZERO


def compared_pair_seconds(dimensions: Dimensions) -> float:
    """Return those of two rows that a function compares."""
    return SECONDS_OF_COMPARED_PAIR + dimensions.n_features * SECONDS_OF_COMPARED_TERM


def cells_seconds(search: StageTask | Sizes, difficulty: Difficulty) -> float:
    """Return those of a search through cells, its certificate too, by how hard neighbours are to find in a sample.

    Cells are scanned, then rounds look at the neighbours of neighbours; all of them settle candidates. Hard data is
    expected to take all rounds, as `next_round` widens them.
    """
    params, dimensions, tuning = search.params, search.dimensions, search.params.neighbors
    missed = max(tuning.missed * (1.0 - tuning.recall), LEAST_MISSED)
    probes = -CELLS_OF_DIMENSION * difficulty.dimension * math.log10(missed)
    n_rounds = tuning.max_rounds if difficulty.hard else min(int(probes > tuning.least_probes), tuning.max_rounds)
    n_cells = min(max(probes, tuning.least_probes), tuning.most_probes) * MORE_CELLS ** (n_rounds // 2)
    n_scanned = min(n_cells, dimensions.n_points / params.partition.cell_points) * params.partition.cell_points
    scanned = n_scanned * min(params.partition.sketch_dimensions, dimensions.n_features) * SECONDS_OF_TERM
    later = sum(2 ** (number // 2) for number in range(1, n_rounds + 1))  # candidates, in those of one round
    candidates = n_candidates(search, 0) + later * n_candidates(search, 1)
    one, byte = SECONDS_OF_CANDIDATE, SECONDS_OF_BYTE
    if dimensions.sparse:
        one, byte = SECONDS_OF_SPARSE_CANDIDATE, SECONDS_OF_SPARSE_BYTE
    settled = candidates * (one + dimensions.row_bytes * byte)
    return dimensions.n_points * (params.neighbors.sampled_queries * pair_seconds(dimensions) + scanned + settled)


def draw_seconds(search: StageTask | Sizes) -> float:
    """Return those of a draw of leaders: products within leaves and with leaders, and settled candidates."""
    leaves, n_features = leaf_sizes(search), search.dimensions.n_features
    compared = LEAF_SPREAD * leaves.of_point * leaves.points + leaves.leaders
    pairs = compared * (SECONDS_OF_PAIR_OF_LEAF + n_features * SECONDS_OF_BYTE_PRODUCT)
    if compares_rows(search.params.points.metric):  # within leaves once for both points
        within = LEAF_SPREAD * leaves.of_point * leaves.points / 2
        pairs = (within + leaves.leaders) * compared_pair_seconds(search.dimensions)
    copies = leaves.of_point * (SECONDS_OF_COPY + leaves.joined**2 * SECONDS_OF_INSERTION)
    settled = leaves.joined * (SECONDS_OF_CANDIDATE + search.dimensions.row_bytes * SECONDS_OF_BYTE)
    return search.dimensions.n_points * (pairs + copies + settled)


def leaves_seconds(search: StageTask | Sizes) -> float:
    """Return those of a search within leaves, for the requested recall."""
    n_points, n_edges = search.dimensions.n_points, 2 * n_mutual(search.params)
    missed = min(1.0, MISSED_AT_FIRST * (n_points / MISSED_POINTS) ** MISSED_GROWTH)
    later = draws_wanted(missed, 1.0 - search.params.neighbors.recall)
    near = n_points * n_edges**2 * search.dimensions.n_features * SECONDS_OF_NEAR
    if compares_rows(search.params.points.metric):
        judged = search.params.neighbors.sampled_queries * search.dimensions.n_features * SECONDS_OF_JUDGED_TERM
        near = n_points * (n_edges**2 * compared_pair_seconds(search.dimensions) + judged)
    return draw_seconds(search) * (FIRST_DRAWS + max(0, later)) + near


def most_draws(search: StageTask | Sizes) -> float:
    """Return how many draws of leaders cost as much as exact search."""
    return exact_seconds(search) / draw_seconds(search)
