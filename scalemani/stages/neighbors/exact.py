"""Neighbours by looking at every point: of all points at once, of a block, and of any other queries.

The recall of the exact search itself is measured by plain distances, which share no code with it.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import pair_rounds, tile_rows
from scalemani.kernels.neighbors.exact import (
    SketchedRows,
    crossed_neighbors,
    nearest_among,
    paired_neighbors,
)
from scalemani.kernels.neighbors.plain import Comparison, compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, compared_rows
from scalemani.stages.arrays.graph import StoredNeighbors, crossed_step, round_step, stripes_step
from scalemani.stages.neighbors.counts import crossed_bytes, n_compared, paired_bytes, stripe_blocks
from scalemani.stages.neighbors.lists import arrays, empty_lists, is_whole, round_arrays
from scalemani.stages.neighbors.tables import (
    points_at,
    rows_of,
    sketch_tables,
    sketched_rows,
    work_points_of,
)
from scalemani.store.groups import block_unit


def search_exactly(context: StageContext, number: int) -> None:
    """Compute the missing blocks of a round by looking at all pairs of points.

    Each pair once where this process has room for all of them, or tasks for stripes of them; else block by block.
    """
    task, step = context.task, round_step(number)
    task.output.create(task.dimensions.n_points, arrays(task), step)
    if is_whole(task, number):
        pass
    elif searches_pairs(context):
        context.compute(functools.partial(lists_of_pairs, search_pairs(context), number))
    else:
        context.compute(functools.partial(exact_lists, number))
    if not context.executor.keep:  # of a search that was interrupted too, whichever way it was resumed
        task.output.remove_step(crossed_step(number))
        task.output.remove_step(stripes_step(number))


def exact_graphs(context: StageContext) -> Steps:
    """Yield the lists by all pairs of points, and what certifies them."""
    if searches_pairs(context):
        yield "all pairs, on the driver's threads"
        yield functools.partial(lists_of_pairs, empty_lists(context.task, 0), 0)
    else:
        yield functools.partial(exact_lists, 0)
    yield plain_lists


def searches_pairs(context: StageContext) -> bool:
    """Return whether this process has room for all pairs, and runs all tasks."""
    return context.executor.on_threads and 0 < paired_bytes(context.task) <= context.task.cache_bytes


def lists_of_pairs(lists: Neighbors, number: int, graph: StageGraph) -> None:
    """Add the blocks of lists that are in memory, of all points."""
    graph.map_blocks(functools.partial(paired_block, lists), round_step(number))


def exact_lists(number: int, graph: StageGraph) -> None:
    """Add the lists of a round: by stripes where a process has room for two, else block by block."""
    if 0 < crossed_bytes(graph.context.task) <= graph.context.task.cache_bytes // graph.context.in_one_process:
        lists_by_stripes(number, graph)
    else:
        graph.map_blocks(exact_block, round_step(number))


def lists_by_stripes(number: int, graph: StageGraph) -> None:
    """Add each stripe in itself, then pairs of them, whose lists are merged."""
    stripes = stripes_of(graph.context.task)
    pairs = pairs_of(stripes)
    graph.map_blocks(stripe_part, stripes_step(number), len(stripes))
    crossed, stripes_read = functools.partial(crossed_part, number), functools.partial(operator.getitem, pairs)
    graph.map_blocks(crossed, crossed_step(number), len(pairs), stripes_read)
    merged, read = functools.partial(merged_blocks, number), functools.partial(pairs_read, pairs, len(stripes[0]))
    graph.map_block_ranges(merged, len(stripes[0]), round_step(number), read)


def stripes_of(task: StageTask) -> list[range]:
    """Return the blocks of each stripe."""
    together, n_blocks = stripe_blocks(task), task.dimensions.n_blocks
    return [range(start, min(start + together, n_blocks)) for start in range(0, n_blocks, together)]


def pairs_of(stripes: Sequence[range]) -> list[tuple[int, int]]:
    """Return the pairs of stripes that are searched in each other."""
    return list(itertools.combinations(range(len(stripes)), 2))


def pairs_read(pairs: Sequence[tuple[int, int]], together: int, block: int) -> Sequence[int]:
    """Return the pairs in which the stripe of a block is."""
    return [part for part, pair in enumerate(pairs) if block // together in pair]


def stripe_part(task: StageTask, stripe: int) -> Arrays:
    """Return the lists of the points of a stripe in itself, as they are stored."""
    blocks = stripes_of(task)[stripe]
    rows, first = searched_blocks(task, blocks), task.dimensions.rows_of(blocks)[0]
    lists = paired_neighbors(rows, empty_lists(task, len(rows.points)))
    return stored_lists_of(lists, first + np.arange(len(rows.points)))


def crossed_part(number: int, task: StageTask, part: int) -> Arrays:
    """Return the lists of the points of two stripes in each other, as they are stored.

    None is longer than the list of its point in the stripe of that point: what is farther is no neighbour.
    """
    stripes = stripes_of(task)
    pair = pairs_of(stripes)[part]
    both = [searched_blocks(task, stripes[stripe]) for stripe in pair]
    rows = both[0]._replace(
        points=np.concatenate([half.points for half in both]), sketches=np.concatenate([half.sketches for half in both])
    )
    known = [read_lists_of(task, block_unit(stripe, stripes_step(number))) for stripe in pair]
    limits = np.concatenate([farthest(lists) for lists in known])
    lists = crossed_neighbors(rows, len(both[0].points), empty_lists(task, len(limits)), limits)
    work_rows = [np.arange(*task.dimensions.rows_of(stripes[stripe])) for stripe in pair]
    return stored_lists_of(lists, np.concatenate(work_rows))


def merged_blocks(number: int, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the lists of blocks of a stripe: the nearest of those in it, and in all other stripes."""
    stripes, width = stripes_of(task), task.params.n_neighbors
    stripe = blocks[0] // len(stripes[0])
    start, stop = task.dimensions.rows_of(stripes[stripe])
    unit = block_unit(stripe, stripes_step(number))
    task.output.find([unit])  # of the layer before the last, whose blocks are found for all that read them
    lists = read_lists_of(task, unit)
    pairs = pairs_of(stripes)
    for part in pairs_read(pairs, len(stripes[0]), blocks[0]):
        crossed = read_lists_of(task, block_unit(part, crossed_step(number)))
        leads = pairs[part][0] == stripe
        rows = slice(0, stop - start) if leads else slice(len(crossed.indices) - (stop - start), None)
        lists = merge_neighbors(lists, Neighbors(*(field[rows] for field in crossed)), width)
    for block in blocks:
        first, last = task.dimensions.rows(block)
        inside = slice(first - start, last - start)
        fresh = np.ones((last - first, width), np.uint8)
        yield block, round_arrays(Neighbors(*(field[inside] for field in lists)), fresh)


def searched_at(task: StageTask, rows: slice) -> SketchedRows:
    """Return the points of a block as neighbours are compared."""
    return searched_rows(task, points_at(task, rows, True), rows)


def searched_rows(task: StageTask, points: Points, rows: slice) -> SketchedRows:
    """Return points as neighbours are compared at consecutive rows: of sets with sketches, which choose candidates."""
    sketches = np.empty((rows.stop - rows.start, 0), np.float32)
    if METRICS[task.params.points.metric].of_sets and not task.dimensions.sparse:
        sketches = sketch_tables(task).by_row[rows]
    return sketched_rows(task, points, sketches)


def searched_blocks(task: StageTask, blocks: range) -> SketchedRows:
    """Return the points of consecutive blocks as neighbours are compared."""
    parts = [searched_at(task, rows_of(task, block)) for block in blocks]
    points, sketches = ([getattr(part, name) for part in parts] for name in ("points", "sketches"))
    return parts[0]._replace(points=np.concatenate(points), sketches=np.concatenate(sketches))


def stored_lists_of(lists: Neighbors, work_rows: np.ndarray) -> Arrays:
    """Return lists as they are stored: places among rows become work rows, and what is missing has no distance."""
    missing = lists.indices < 0
    indices = np.where(missing, np.int32(-1), work_rows[lists.indices].astype(np.int32))
    described, distances = StoredNeighbors.STRIPES, np.where(missing, lists.distances.dtype.type(0), lists.distances)
    return {described.indices: indices.ravel(), described.distances: distances.ravel()}


def read_lists_of(task: StageTask, unit: str) -> Neighbors:
    """Return the lists that a unit has stored."""
    indices, distances = (
        task.output.read_rows(f"{unit}/{described.name}").reshape(-1, task.params.n_neighbors)
        for described in StoredNeighbors.STRIPES
    )
    return Neighbors(indices, np.where(indices < 0, distances.dtype.type(np.inf), distances))


def farthest(lists: Neighbors) -> np.ndarray:
    """Return the distance (n,) float64 of the last neighbour of each list; inf where it is not full."""
    return lists.distances[:, -1].astype(np.float64)


def search_pairs(context: StageContext) -> Neighbors:
    """Return the neighbours of all points, on threads of this process."""
    task, executor = context.task, context.executor
    points = compared_rows(work_points_of(task).points.read(), task.params.points.metric)
    executor.progress.start(task.stage, len(pair_rounds(-(-len(points) // tile_rows(len(points))))), "round")

    def map_round(function: Callable[[Any], Any], pairs: Sequence[Any]) -> list[Any]:
        results = executor.over(function, pairs)
        executor.progress.advance()
        return results

    rows = searched_rows(task, points, slice(0, len(points)))
    return paired_neighbors(rows, empty_lists(task, len(points)), map_round)


def paired_block(lists: Neighbors, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block out of those of all points."""
    indices, distances = (field[rows_of(task, block)] for field in lists)
    return round_arrays(Neighbors(indices, distances), np.ones(indices.shape, np.uint8))


def exact_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block by looking at every point."""
    labels, queries = np.arange(*task.dimensions.rows(block)), searched_at(task, rows_of(task, block))
    lists, unlimited = empty_lists(task, len(labels)), np.full(len(labels), np.inf)
    for other in (rows_of(task, number) for number in range(task.dimensions.n_blocks)):
        lists = nearest_among(queries, labels, searched_at(task, other), other.start, lists, unlimited)
    return round_arrays(lists, np.ones(lists.indices.shape, np.uint8))


def compared_recall(context: StageContext) -> float:
    """Return the share of the true neighbours of a random sample of points that the exact search has stored."""
    return recall_of(
        context.compute(plain_lists), stored_lists(context.task)[2], context.task.dimensions.distance_dtype
    )


def plain_lists(graph: StageGraph) -> Key | None:
    """Add the comparison of the stored lists of a sample with all points."""
    return graph.fold_blocks(compared_with_block, merged, "recall")


def compared_with_block(task: StageTask, block: int) -> Comparison:
    """Compare the stored lists of the sample with a block of points."""
    rows, (sampled, labels, lists) = rows_of(task, block), task.once(stored_lists)
    metric = task.params.points.metric
    of_sets = METRICS[metric].of_sets
    queries, points = (some > 0 if of_sets else some for some in (sampled, points_at(task, rows)))
    return compared(queries, labels, lists, points, rows.start, metric if compares_rows(metric) else "")


def stored_lists(task: StageTask) -> tuple[Points, np.ndarray, np.ndarray]:
    """Return the sample by which an exact search is judged: points (m, D), their rows (m,), and lists as stored."""
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, n_compared(task.dimensions))
    return points_at(task, rows), rows, StoredNeighbors(task.output).indices(round_step(0)).gather(rows)
