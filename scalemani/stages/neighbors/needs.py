"""What the search holds in memory and writes, by method."""

import math
from collections.abc import Sequence

from scalemani.config.params import Resolved
from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED
from scalemani.engine.needs import (
    CACHE,
    EACH_PROCESS,
    EACH_TASK,
    LOOKED_UP,
    MAPPED,
    PASSING,
    STORED,
    Held,
    Stay,
    Written,
)
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.grouping import PART_ITEMS
from scalemani.kernels.neighbors.leaves import LARGE, MULTIPLIED_ROWS
from scalemani.kernels.neighbors.plain import QUERIES_AT_ONCE, ROWS_AT_ONCE
from scalemani.kernels.neighbors.rounds import MOST_DRAWS
from scalemani.kernels.neighbors.sparse_scan import LANES
from scalemani.kernels.rows.metrics import METRICS, n_words
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.neighbors.counts import (
    BYTES_OF_CANDIDATE,
    leaf_sizes,
    n_candidates,
    n_compared,
    n_listed,
    n_mutual,
    paired_bytes,
)
from scalemani.stages.shared.compared_rows import products_held
from scalemani.stages.shared.tiled_search import NUMBER_BYTES, PROPOSED_BYTES, SETTLED_BYTES

BYTES_OF_EDGE = 5  # a neighbour and whether it is fresh
BYTES_OF_NEIGHBOR = 9  # the same with its distance, in float32
COPIES_OF_LISTS = 4  # those before, those found, the same encoded, and what a block is merged with
BYTES_BY_DESCENT = 60  # of pynndescent: lists with their distances, new and old candidates
SPARE_CANDIDATES, COPIES_OF_CANDIDATES = 144, 4  # of a pool; pools of a block, in order, and numbered anew
COPIES_OF_ROWS = 5  # of both orders, from one to the other and back, and which are new
COPIES_OF_VISITS = 3  # as found, by cell, and numbered
COPIES_OF_CELLS = 4  # while rows are listed by cell
COPIES_OF_BLOCK = 2  # decoded, and put together
SHARE_OF_FLAGS = 0.5  # that bytes of 0 and 1 take compressed: an eighth at the least, 0.27 on digits
COPIES_OF_SKETCHES = 2  # of two blocks
COPIES_OF_LEADERS = 4  # as gathered, their coordinates, in groups, and centred in panels
COPIES_OF_MEMBERS = 5  # as stored, in order with their places, and distinct
LEAF_BYTES = 5  # of a coordinate: one byte, and four where the processor multiplies no bytes
COPIES_OF_LEAF = 3  # of all, of a part, and of leaders with what they are compared with


def memory(sizes: Sizes) -> list[Held]:
    """List what the method holds, and the lists of a block."""
    k, rows = sizes.params.n_neighbors, sizes.dimensions.block_rows
    lists = Held("lists of a block", EACH_TASK, rows, k * BYTES_OF_NEIGHBOR, "uint8", COPIES_OF_LISTS)
    if sizes.params.points.metric == PRECOMPUTED:
        return [lists, Held("neighbours and distances as given", EACH_TASK, rows, 2 * k, "float64", 2)]
    by_method = {
        "exact": exact_held,
        "partition": partition_held,
        "pynndescent": descent_held,
        GIVEN_LISTS: partition_held,
        "leaves": leaves_held,
    }
    return [lists, *sets_held(sizes), *by_method[sizes.params.neighbors.method_for(sizes.dimensions.n_points)](sizes)]


def sets_held(sizes: Sizes) -> list[Held]:
    """List what dense points take as they are compared, where that is as sets."""
    if sizes.dimensions.sparse or not METRICS[sizes.params.points.metric].of_sets:
        return []
    return [Held("sets of all points", LOOKED_UP, sizes.dimensions.n_points, n_words(sizes.dimensions.n_features))]


def compared_held(sizes: Sizes, step: str = "") -> list[Held]:
    """List what a comparison of points by products takes beside them."""
    features = sizes.dimensions.n_features
    if sizes.dimensions.sparse:
        # Of each query one row is spread out; of a tile of rows, at most all columns have a place in it.
        spread = Held("a row spread out, and the places of columns", EACH_TASK, features, 2, step=step)
        return [spread, Held("tile of rows side by side", EACH_TASK, features, LANES, "float32", step=step)]
    return products_held(sizes, sizes.dimensions.block_rows, step)


def exact_held(sizes: Sizes) -> list[Held]:
    """List what a block takes that is compared with all others."""
    dimensions, width = sizes.dimensions, sizes.sketch_width
    rows = dimensions.block_rows
    compared = (2 * dimensions.row_bytes, "uint8") if dimensions.sparse else (dimensions.n_features, "float64")
    return [
        Held("sketches of all points", LOOKED_UP, dimensions.n_points, width, "float32"),
        Held("points of a block and of the one it is compared with", EACH_TASK, rows, *dimensions.kept_row, 2),
        Held("points of all blocks, and their lists", CACHE, paired_bytes(sizes), 1, "uint8"),
        Held("sketches of both blocks", EACH_TASK, rows, width, "float32", COPIES_OF_SKETCHES),
        *compared_held(sizes),
        Held("sampled queries", EACH_PROCESS, n_compared(dimensions), *dimensions.kept_row, step="recall"),
        Held("tiles that are compared", EACH_TASK, QUERIES_AT_ONCE + ROWS_AT_ONCE, *compared, step="recall"),
    ]


def partition_held(sizes: Sizes) -> list[Held]:
    """List sketches and lists of all points, and what a block takes of them."""
    params, width, n_cells, n_points = sizes.params, sizes.sketch_width, sizes.n_cells, sizes.dimensions.n_points
    nearby = max(params.neighbors.nearby_cells, params.neighbors.nearby_per_probe * most_probes(params))
    found = [
        Held("sketches of all points in bytes", LOOKED_UP, n_points, width, "int8"),
        Held("heads of all lists", LOOKED_UP, n_points, n_listed(params) * BYTES_OF_EDGE, "uint8"),
        Held("cells near each cell", EACH_PROCESS, n_cells, min(n_cells, nearby), "int32"),
    ]
    return rounds_held(sizes, found, width, n_candidates(sizes, 0) + SPARE_CANDIDATES)


def rounds_held(sizes: Sizes, found: Sequence[Held], width: int, n_settled: int) -> list[Held]:
    """List what rounds hold whose recall is measured, and after it what they find candidates by.

    Parameters
    ----------
    width : of the rows that rounds among neighbours of neighbours compare
    n_settled : candidates of a point that a block holds
    """
    dimensions, n_points = sizes.dimensions, sizes.dimensions.n_points
    rows, row = dimensions.block_rows, dimensions.kept_row
    n_queries = min(sizes.params.neighbors.sampled_queries, n_points)
    gathered = max(PROPOSED_BYTES, SETTLED_BYTES + n_candidates(sizes, 1) * dimensions.row_bytes)
    everything = n_points * (dimensions.row_bytes + 4 * width + NUMBER_BYTES)
    return [
        Held("sketches of all points", LOOKED_UP, n_points, sizes.sketch_width, "float32"),
        Held("points of all blocks, or tables in turn", CACHE, n_points, *row),
        Held("sampled queries", EACH_PROCESS, n_queries, *row),
        Held("points of a block that queries are compared with", EACH_TASK, rows, *row, COPIES_OF_BLOCK, "recall"),
        *compared_held(sizes, "recall"),
        *found,
        Held("candidates of a block", EACH_TASK, rows, n_settled, "int32", COPIES_OF_CANDIDATES, "rounds"),
        Held("rows that a tile looks at", EACH_TASK, min(gathered, everything), 1, "uint8", step="rounds"),
        *continued_held(sizes),
    ]


def most_probes(params: Resolved) -> int:
    """Return how many cells a point visits at most; what is found out is not known before a run."""
    return params.neighbors.n_probes or params.neighbors.most_probes


def continued_held(sizes: Sizes) -> list[Held]:
    """List what goes on from an earlier graph: where its rows are, and the sketches of the points that it lacks."""
    if not sizes.n_appended:
        return []
    visits = sizes.n_appended * most_probes(sizes.params)
    in_block = min(sizes.n_appended, sizes.dimensions.block_rows)
    return [
        Held("work rows of the earlier graph", EACH_PROCESS, sizes.dimensions.n_points, 1, "int64", COPIES_OF_ROWS),
        Held("sketches of all points by cell", LOOKED_UP, sizes.dimensions.n_points, sizes.sketch_width, "float32"),
        Held("work rows by cell", EACH_PROCESS, sizes.dimensions.n_points, 1, "int64", COPIES_OF_CELLS),
        Held("sketches of the appended points", EACH_PROCESS, sizes.n_appended, sizes.sketch_width, "float32"),
        Held("the same for each cell looked through", EACH_PROCESS, visits, sizes.sketch_width, "float32"),
        Held("cells that appended points look through", EACH_PROCESS, visits, 1, "int64", COPIES_OF_VISITS),
        Held("appended points of a block", EACH_TASK, in_block, *sizes.dimensions.kept_row, step="recall"),
    ]


def descent_held(sizes: Sizes) -> list[Held]:
    """List the points, and what pynndescent keeps of them."""
    dimensions, n_points = sizes.dimensions, sizes.dimensions.n_points
    in_float32 = dimensions.kept_row if dimensions.sparse else (dimensions.n_features, "float32")
    return [
        Held("points", EACH_PROCESS, n_points, *dimensions.kept_row),
        Held("points in float32", EACH_PROCESS, n_points, *in_float32),
        Held("lists of pynndescent", EACH_PROCESS, n_points, sizes.params.n_neighbors * BYTES_BY_DESCENT, "uint8"),
        *continued_held(sizes),
    ]


def leaves_held(sizes: Sizes) -> list[Held]:
    """List leaves and coordinates of all points, and what a group of leaves and one leaf take of them."""
    dimensions, leaves = sizes.dimensions, leaf_sizes(sizes)
    n_points, features, row = dimensions.n_points, dimensions.n_features, dimensions.kept_row
    rows, of_part = dimensions.block_rows, min(n_points, math.ceil(LARGE * leaves.points))
    in_group, together = min(n_points, 2 * leaves.of_group), min(n_points, leaves.together)
    listed, heads = leaves.joined * BYTES_OF_CANDIDATE, 2 * n_mutual(sizes.params) * BYTES_OF_EDGE
    found = [
        Held("leaders", EACH_PROCESS, leaves.leaders, features, "float32", COPIES_OF_LEADERS, "leaves"),
        Held("points of a block, and about their mean", EACH_TASK, rows, *row, step="leaves"),
        Held("coordinates of a block", EACH_TASK, rows, features, "float32", step="leaves"),
        Held("points of all leaves", LOOKED_UP, n_points * leaves.of_point, 1, "int64", step="joined"),
        Held("leaves of some points, while they are sorted", EACH_PROCESS, PART_ITEMS, 4, "int64", step="joined"),
        Held("how far lists reach", EACH_PROCESS, n_points, 3, dimensions.distance_dtype, step="joined"),
        Held("candidates of a group of leaves", EACH_TASK, in_group, listed, "uint8", 2, "joined"),
        Held("points of a group", EACH_TASK, in_group, COPIES_OF_MEMBERS, "int64", step="joined"),
        Held("points of a leaf", EACH_TASK, together, *row, step="joined"),
        Held("their coordinates", EACH_TASK, together, features, "float32", COPIES_OF_LEAF, "joined"),
        Held(
            "the same in bytes, and as they are multiplied", EACH_TASK, of_part, features, "int8", LEAF_BYTES, "joined"
        ),
        Held("products of some rows of a part of it", EACH_TASK, MULTIPLIED_ROWS, of_part, "int32", step="joined"),
        Held("candidates of all points", CACHE, leaves.n_bytes, 1, "uint8", step="joined"),
        Held("candidates that a group gives to all points", EACH_TASK, in_group, listed, "uint8", 2, "merged"),
        Held("candidates of the blocks of a task", CACHE, n_points, listed, "uint8", step="merged"),
        Held("coordinates of all points", LOOKED_UP, n_points, features, "float32", step="rounds"),
        Held("heads of all lists", LOOKED_UP, n_points, heads, "uint8", step="rounds"),
    ]
    return rounds_held(sizes, found, features, n_candidates(sizes, 1))


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: rounds, the sampled queries; and all points where they are mapped."""
    dimensions, stored = sizes.dimensions, StoredNeighbors
    given = sizes.params.points.metric == PRECOMPUTED
    exact = given or sizes.params.neighbors.method_for(dimensions.n_points) == "exact"
    queries, rounds = sizes.params.neighbors.sampled_queries, sizes.params.neighbors.most_rounds
    kept = rounds * sizes.rounds_kept * (not exact)
    sampled = [stored.query_rows, stored.query_limits, stored.true_distances]
    listed = [*round_written(sizes), *round_written(sizes, kept), *written(sampled, sizes, query=queries)]
    if exact:
        return listed
    before = round_written(sizes, 1, PASSING) if rounds and not kept else []
    if sizes.params.neighbors.method == "leaves":
        leaves = leaf_sizes(sizes)
        width = MOST_DRAWS * leaves.of_point
        points = width * dimensions.n_points
        lengths = {"leaf": width, "joined_point": points, "joined_edge": points * leaves.joined}
        before += written([stored.leaves, *stored.JOINED], sizes, 1 + kept, PASSING, **lengths)
    return [*listed, *before, Written("points in work order", MAPPED, dimensions.n_points, *dimensions.kept_row)]


def round_written(sizes: Sizes, count: int = 1, stay: Stay = STORED) -> list[Written]:
    """List the arrays of some rounds of the search."""
    graph = written([StoredNeighbors.indices, StoredNeighbors.distances], sizes, count, stay)
    return [*graph, *written([StoredNeighbors.fresh], sizes, count * SHARE_OF_FLAGS, stay)]
