"""What the search takes of memory and of the disk, by method."""

import math

from scalemani.config.metrics import compares_rows
from scalemani.config.params import Resolved
from scalemani.config.stages import INPUT_LISTS, PRECOMPUTED
from scalemani.engine.memory_model import Disk, Memory, Terms, array
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.grouping import PART_ITEMS
from scalemani.kernels.neighbors.leaves import CUTS_OF_POOL, LARGE, MULTIPLIED_ROWS, most_waiting
from scalemani.kernels.neighbors.plain import QUERIES_AT_ONCE, ROWS_AT_ONCE
from scalemani.kernels.neighbors.rounds import MOST_DRAWS
from scalemani.kernels.neighbors.sparse_scan import LANES
from scalemani.kernels.rows.metrics import METRICS, n_words
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.neighbors.counts import (
    BYTES_OF_CANDIDATE,
    crossed_bytes,
    leaf_sizes,
    n_candidates,
    n_compared,
    n_listed,
    n_mutual,
    paired_bytes,
    stripe_blocks,
)
from scalemani.stages.shared.tiled_search import NUMBER_BYTES, PROPOSED_BYTES, SETTLED_BYTES, compared

BYTES_OF_EDGE = 5  # a neighbour and whether it is fresh
BYTES_OF_NEIGHBOR = 9  # the same with its distance, in float32
SPARE_CANDIDATES = 144  # of a pool
SHARE_OF_FLAGS = 0.5  # that bytes of 0 and 1 take compressed: an eighth at the least, 0.27 on digits


def memory(sizes: Sizes) -> Memory:
    """Return what the method takes, and the lists of a block: before the search, after it, encoded, merged."""
    n_listed = sizes.dimensions.block_rows * sizes.params.n_neighbors
    lists = Memory(task={"lists of a block": 4 * BYTES_OF_NEIGHBOR * n_listed})
    if sizes.params.points.metric == PRECOMPUTED:
        return lists + Memory(task={"neighbours and distances as given": 2 * array("float64", n_listed, 2)})
    by_method = {
        "exact": memory_of_exact,
        "partition": memory_of_partition,
        "pynndescent": memory_of_descent,
        INPUT_LISTS: memory_of_partition,
        "leaves": memory_of_leaves,
    }
    dimensions, method = sizes.dimensions, sizes.params.neighbors.method_for(sizes.dimensions.n_points)
    held = lists + by_method[method](sizes)
    if compares_rows(sizes.params.points.metric) and method != "exact":
        return held + Memory(points={"points in float64": array("float64", dimensions.n_points, dimensions.n_features)})
    if dimensions.sparse or not METRICS[sizes.params.points.metric].of_sets:
        return held
    sets = array("float64", dimensions.n_points, n_words(dimensions.n_features))
    return held + Memory(points={"sets of all points": sets})


def compared_in_block(sizes: Sizes) -> Terms:
    """Return what a comparison of points with those of a block takes: sparse ones are spread out, dense multiplied."""
    features = sizes.dimensions.n_features
    if not sizes.dimensions.sparse:
        return compared(sizes, sizes.dimensions.block_rows)
    # Of each query one row is spread out; of a tile of rows, at most all columns have a place in it.
    of_rows = array("float64", features, 2) + array("float32", features, LANES)
    return {"a row spread out, and a tile of rows side by side": of_rows}


def memory_of_exact(sizes: Sizes) -> Memory:
    """Return what a block takes that is compared with all others."""
    dimensions, row = sizes.dimensions, sizes.dimensions.row_bytes
    of_sets = METRICS[sizes.params.points.metric].of_sets and not dimensions.sparse
    width = sizes.sketch_width if of_sets else 0
    tiles = (QUERIES_AT_ONCE + ROWS_AT_ONCE) * (
        2 * row if dimensions.sparse else array("float64", dimensions.n_features)
    )
    sampled = {"sampled queries": n_compared(dimensions) * row}
    wide = {"points of two blocks in float64": 2 * array("float64", dimensions.block_rows, dimensions.n_features)}
    return Memory(
        task={
            "points of two blocks, and their sketches": 2 * dimensions.block_rows * (row + array("float32", width)),
            **(wide if compares_rows(sizes.params.points.metric) else compared_in_block(sizes)),
        },
        points={"sketches of all points": array("float32", dimensions.n_points, width)},
        cache={
            "points of all blocks and their lists, or of two stripes": paired_bytes(sizes) or crossed_bytes(sizes),
        },
        steps={"recall": Memory(sampled, {"tiles that are compared": tiles})},
    )


def memory_of_partition(sizes: Sizes) -> Memory:
    """Return what sketches and lists of all points take, and a block of them."""
    params, width, n_cells, n_points = sizes.params, sizes.sketch_width, sizes.n_cells, sizes.dimensions.n_points
    nearby = max(params.neighbors.nearby_cells, params.neighbors.nearby_per_probe * most_probes(params))
    held = Memory(
        process={"cells near each cell": array("int32", n_cells, min(n_cells, nearby))},
        points={
            "sketches of all points in bytes": array("int8", n_points, width),
            "heads of all lists": n_points * n_listed(params) * BYTES_OF_EDGE,
        },
    )
    return held + memory_of_rounds(sizes, width, n_candidates(sizes, 0) + SPARE_CANDIDATES)


def memory_of_rounds(sizes: Sizes, width: int, n_settled: int) -> Memory:
    """Return what rounds take whose recall is measured.

    Parameters
    ----------
    width : of the rows that rounds among neighbours of neighbours compare
    n_settled : candidates of a point that a block holds
    """
    dimensions, n_points, row = sizes.dimensions, sizes.dimensions.n_points, sizes.dimensions.row_bytes
    gathered = max(PROPOSED_BYTES, SETTLED_BYTES + n_candidates(sizes, 1) * row)
    of_rounds = {
        # Pools of a block, in order, and numbered anew.
        "candidates of a block": 4 * array("int32", dimensions.block_rows, n_settled),
        "rows that a tile looks at": min(gathered, n_points * (row + 4 * width + NUMBER_BYTES)),
    }
    sketches = {"sketches of all points": array("float32", n_points, sizes.sketch_width)}
    # As decoded, and put together.
    of_recall = {"points of a block that queries are compared with": 2 * dimensions.block_rows * row}
    return continued(sizes) + Memory(
        process={"sampled queries": min(sizes.params.neighbors.sampled_queries, n_points) * row},
        points=sketches if sizes.stores_sketches else {},
        cache={"points of all blocks, or tables in turn": n_points * row},
        steps={"recall": Memory(task={**of_recall, **compared_in_block(sizes)}), "rounds": Memory(task=of_rounds)},
    )


def most_probes(params: Resolved) -> int:
    """Return how many cells a point visits at most, also where a run measures how many are enough."""
    return params.neighbors.n_probes or params.neighbors.most_probes


def continued(sizes: Sizes) -> Memory:
    """Return what a search takes that continues from an earlier graph, which lacks the appended points."""
    n_points, n_appended, width = sizes.dimensions.n_points, sizes.n_appended, sizes.sketch_width
    if not n_appended:
        return Memory()
    visits, in_block = n_appended * most_probes(sizes.params), min(n_appended, sizes.dimensions.block_rows)
    return Memory(
        process={
            # Of both orders, from one to the other and back, and which are new; while rows are listed by cell.
            "work rows of the earlier graph, and by cell": array("int64", n_points, 5 + 4),
            "sketches of appended points, and for each cell": array("float32", n_appended + visits, width),
            "cells that they look through, as found, by cell, and numbered": 3 * array("int64", visits),
        },
        points={"sketches of all points by cell": array("float32", n_points, width)},
        steps={"recall": Memory(task={"appended points of a block": in_block * sizes.dimensions.row_bytes})},
    )


def memory_of_descent(sizes: Sizes) -> Memory:
    """Return what the points take, and pynndescent: lists with their distances, new and old candidates."""
    dimensions, n_points = sizes.dimensions, sizes.dimensions.n_points
    in_float32 = dimensions.row_bytes if dimensions.sparse else array("float32", dimensions.n_features)
    return continued(sizes) + Memory(
        {
            "points, and in float32": n_points * (dimensions.row_bytes + in_float32),
            "lists of pynndescent": n_points * sizes.params.n_neighbors * 60,
        }
    )


def memory_of_leaves(sizes: Sizes) -> Memory:
    """Return what leaves and coordinates of all points take, and a group of leaves and one leaf of them."""
    dimensions, leaves, features = sizes.dimensions, leaf_sizes(sizes), sizes.dimensions.n_features
    n_points, rows, row = dimensions.n_points, dimensions.block_rows, dimensions.row_bytes
    of_part = min(n_points, math.ceil(LARGE * leaves.points))
    in_group, together = min(n_points, 2 * leaves.of_group), min(n_points, leaves.together)
    of_candidates = leaves.joined * BYTES_OF_CANDIDATE
    in_leaves = Memory(
        # As gathered, their coordinates, in groups, and centred in panels.
        {"leaders": 4 * array("float32", leaves.leaders, features)},  # or as stored, and in float64
        {"points of a block, about their mean, and coordinates": rows * row + array("float64", rows, features)},
    )
    # Coordinates of all, of a part, and of leaders with what they are compared with; one byte of each, and four where
    # the processor multiplies no bytes.
    coordinates = 3 * array("float32", together, features) + 5 * array("int8", of_part, features)
    near = {"products of some rows of a part of it": array("int32", MULTIPLIED_ROWS, of_part)}
    tables = {"coordinates of all points": array("float32", n_points, features)}
    if compares_rows(sizes.params.points.metric):
        coordinates, tables = array("float64", together + of_part, features), {}
        waiting = CUTS_OF_POOL * most_waiting(leaves.joined)
        near = {"what is near the points of a part of it": of_part * waiting * BYTES_OF_CANDIDATE}
    joined = Memory(
        {
            "leaves of some points, while they are sorted": array("int64", PART_ITEMS, 4),
            "how far lists reach": array(dimensions.distance_dtype, n_points, 3),
        },
        {
            # Points as stored, in order with their places, and distinct.
            "a group of leaves: candidates, and points": in_group * (2 * of_candidates + array("int64", 5)),
            "points of a leaf, and coordinates": together * row + coordinates,
            **near,
        },
        {"points of all leaves": array("int64", n_points * leaves.of_point)},
        {"candidates of all points": leaves.n_bytes},
    )
    merged = Memory(
        task={"candidates that a group gives to all points": 2 * in_group * of_candidates},
        cache={"candidates of the blocks of a task": n_points * of_candidates},
    )
    by_point = {
        **tables,
        "heads of all lists": n_points * 2 * n_mutual(sizes.params) * BYTES_OF_EDGE,
    }
    steps = {"leaves": in_leaves, "joined": joined, "merged": merged, "rounds": Memory(points=by_point)}
    return memory_of_rounds(sizes, features, n_candidates(sizes, 1)) + Memory(steps=steps)


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: rounds, the sampled queries; and all points where they are mapped."""
    dimensions, search, stored = sizes.dimensions, sizes.params.neighbors, StoredNeighbors
    precomputed = sizes.params.points.metric == PRECOMPUTED
    exact = precomputed or search.method_for(dimensions.n_points) == "exact"
    earlier_rounds = search.most_rounds * sizes.stores_rounds * (not exact)
    queries = [stored.query_rows, stored.query_limits, stored.true_distances]
    listed = {**round_written(sizes, 1 + earlier_rounds), **written(queries, sizes, query=search.sampled_queries)}
    crossed: Terms = {}
    if not precomputed and crossed_bytes(sizes):
        stripes = -(-sizes.dimensions.n_blocks // stripe_blocks(sizes))
        crossed = written(
            stored.STRIPES, sizes, stripe_edge=stripes * sizes.dimensions.n_points * sizes.params.n_neighbors
        )
    if exact:
        return Disk(listed, crossed)
    before = round_written(sizes) if search.most_rounds and not earlier_rounds else {}
    if search.method == "leaves":
        leaves = leaf_sizes(sizes)
        width = MOST_DRAWS * leaves.of_point
        points = width * dimensions.n_points
        lengths = {"leaf": width, "joined_point": points, "joined_edge": points * leaves.joined}
        before = {**before, **written([stored.leaves, *stored.JOINED], sizes, 1 + earlier_rounds, **lengths)}
    return Disk(listed, before, {"points in work order": dimensions.n_points * dimensions.row_bytes})


def round_written(sizes: Sizes, count: int = 1) -> Terms:
    """Return what some rounds of the search take."""
    graph = written([StoredNeighbors.indices, StoredNeighbors.distances], sizes, count)
    return {**graph, **written([StoredNeighbors.fresh], sizes, count * SHARE_OF_FLAGS)}
