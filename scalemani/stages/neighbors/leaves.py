"""Rounds of a search within overlapping leaves: points find leaders, leaves are searched, candidates are settled.

Leaders and splits differ from draw to draw; a round has one or several. A group of leaves is one task: products of
coordinates in bytes choose the candidates that its leaves give to their points. Those of all groups are merged by block
and settled by exact distances. Where threads of this process search and everything has room, groups add to the
candidates of all points at once, and nothing but the round is stored. Groups and their order do not change a bit of
what is merged.
"""

import functools
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, all_blocks
from scalemani.engine.memory.files import Table
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.grouping import PART_ITEMS, group_by, group_large
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.neighbors.leaves import (
    Candidates,
    LeaderIndex,
    index_leaders,
    join_leaf,
    merge_candidates,
    nearest_leaders,
)
from scalemani.kernels.neighbors.rounds import Round, still_fresh, without_known
from scalemani.kernels.rows.products import middle_of_rows
from scalemani.kernels.rows.reduced import ComparedTable
from scalemani.stages.arrays.graph import StoredNeighbors, joined_step, leaves_step, round_step
from scalemani.stages.neighbors.cells import fill_short_lists
from scalemani.stages.neighbors.counts import BYTES_OF_CANDIDATE, leaf_sizes
from scalemani.stages.neighbors.lists import arrays, is_whole, lists_before, round_arrays, settled
from scalemani.stages.neighbors.tables import (
    basis_of,
    compared_points,
    distance_of_points,
    holds_points,
    leaf_vectors_at,
    points_at_hand,
    rows_of,
)
from scalemani.store.groups import block_unit

OFFERED_SLACK = 1.01  # of squared distances, that rounding coordinates to bytes adds


class Draw(NamedTuple):
    """One of the draws of leaders of a round: both are numbers."""

    of_round: int
    number: int

    @property
    def stage(self) -> str:
        """The name of its random draws."""
        return f"neighbors/{leaves_step(self.of_round)}/{self.number}"


class Members(NamedTuple):
    """The points of all leaves, leaf after leaf.

    `items` (N f,) int64 are their work rows times `width`, and a number below that; leaves begin at `bounds` (L + 1,).
    """

    items: Table
    bounds: np.ndarray
    width: int


def search_leaves(current: Round, context: StageContext, number: int) -> None:
    """Compute the missing blocks of a round within leaves, whose lists follow those of the round before."""
    task, output, step = context.task, context.task.output, round_step(number)
    output.create(task.dimensions.n_points, arrays(task), step)
    if is_whole(task, number):
        pass
    elif searches_in_memory(context):
        candidates = search_in_memory(current, context, number)
        context.map_blocks(functools.partial(settled_block, candidates.indices, 0, number), step)
    else:
        search_in_store(current, context, number)
    if not context.executor.keep:
        output.remove_step(leaves_step(number))
        output.remove_step(joined_step(number))


def searches_in_memory(context: StageContext) -> bool:
    """Return whether this process has room for the candidates of all points, and runs all tasks."""
    return context.executor.on_threads and holds_points(context.task, leaf_sizes(context.task).n_bytes)


def search_in_memory(current: Round, context: StageContext, number: int) -> Candidates:
    """Return the candidates of all points, on threads of this process."""
    task, lock, leaves = context.task, threading.Lock(), leaf_sizes(context.task)
    candidates = Candidates.empty(task.dimensions.n_points, leaves.joined)
    context.executor.progress.start(task.stage, current.draws * leaves.groups, "group")
    for draw in (Draw(number, i) for i in range(current.draws)):
        blocks = context.executor.over(functools.partial(leaves_of_block, task, draw), range(task.dimensions.n_blocks))
        items, bounds = group_by(np.concatenate(blocks).ravel(), leaves.leaders)
        members = Members(items, bounds, leaves.of_point)

        def join(group: int, draw: Draw = draw, members: Members = members) -> None:
            rows, proposed = join_group(task, draw, members, group)
            with lock:
                merge_candidates(*candidates, rows, *proposed)
                context.executor.progress.advance()

        context.executor.over(join, range(leaves.groups))
    return candidates


def search_in_store(current: Round, context: StageContext, number: int) -> None:
    """Compute the missing blocks of a round, whose leaves and candidates are stored until it is done."""
    described = StoredNeighbors.leaves.sized(current.draws * leaf_sizes(context.task).of_point)
    context.task.output.create(context.task.dimensions.n_points, [described], leaves_step(number))
    context.compute(functools.partial(stored_leaves, current, number))


def stored_leaves(current: Round, number: int, graph: StageGraph) -> None:
    """Add the leaves of the points, the candidates of groups of leaves, and the lists that are made of these."""
    task, leaves = graph.context.task, leaf_sizes(graph.context.task)
    graph.map_blocks(functools.partial(leaves_block, current, number), leaves_step(number))
    n_groups = current.draws * leaves.groups
    joined = functools.partial(joined_part, current, number)
    graph.map_blocks(joined, joined_step(number), n_groups, reads=all_blocks)
    blocks = graph.context.blocks_per_range(task.dimensions.block_rows * leaves.joined * BYTES_OF_CANDIDATE)
    merged = functools.partial(merged_blocks, n_groups, number)
    graph.map_block_ranges(merged, blocks, round_step(number), reads=all_blocks)


def leaders_of(task: StageTask, draw: Draw) -> LeaderIndex:
    """Return the leaders of a draw."""
    rows = sample_rows(task.params.seed, draw.stage, task.dimensions.n_points, leaf_sizes(task).leaders)
    return index_leaders(ComparedTable(distance_of_points(task), leaf_vectors_at(task, rows)))


def leaves_of_block(task: StageTask, draw: Draw, block: int) -> np.ndarray:
    """Return the leaders (n, f) int32 nearest to the points of a block."""
    vectors = leaf_vectors_at(task, rows_of(task, block))
    return nearest_leaders(vectors, task.once(leaders_of, draw), leaf_sizes(task).of_point)


def leaves_block(current: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the leaders nearest to the points of a block in each draw: those of later draws are numbered on."""
    n_leaders = leaf_sizes(task).leaders
    leaders = [leaves_of_block(task, Draw(number, i), block) + i * n_leaders for i in range(current.draws)]
    return {StoredNeighbors.leaves: np.concatenate(leaders, axis=1).astype(np.int32)}


def members_of(task: StageTask, draws: int, number: int) -> Members:
    """Return the points of all leaves of a round."""
    stored, leaves = StoredNeighbors(task.output).leaves(leaves_step(number)), leaf_sizes(task)
    width = draws * leaves.of_point

    def read(items: slice) -> np.ndarray:
        first, last = items.start // width, -(-items.stop // width)
        return stored.read_rows(slice(first, last)).ravel()[items.start - first * width :][: items.stop - items.start]

    n_items, empty = task.dimensions.n_points * width, cast(Empty, task.table)  # of a table slices alone are taken
    in_memory = task.in_memory or n_items <= PART_ITEMS
    return Members(*group_large(read, n_items, draws * leaves.leaders, np.empty if in_memory else empty), width)


def limits_before(task: StageTask, number: int) -> np.ndarray:
    """Return the squares (N,) float32 that candidates do not exceed: lists before a round reach no farther.

    Where a function compares rows, they are its distances.
    """
    if number == 0:
        return np.full(task.dimensions.n_points, np.inf, np.float32)
    distances = StoredNeighbors(task.output).distances(round_step(number - 1))
    reaches = np.concatenate([distances.read_block(block)[:, -1] for block in range(task.dimensions.n_blocks)])
    if distance_of_points(task).by_function:
        return (OFFERED_SLACK * reaches.astype(np.float64)).astype(np.float32)
    scale = basis_of(task).scale
    with np.errstate(over="ignore"):
        return (0.5 * OFFERED_SLACK * (reaches.astype(np.float64) / scale) ** 2).astype(np.float32)


def join_group(task: StageTask, draw: Draw, members: Members, group: int) -> tuple[np.ndarray, Candidates]:
    """Return the candidates that consecutive leaves of a draw, a group of them, give to their points.

    Returns
    -------
    rows : (n,) int64, the work rows of these points, ascending
    candidates : theirs
    """
    (items, bounds, width), leaves = members, leaf_sizes(task)
    shares = np.array([group, group + 1]) * (bounds[-1] - bounds[0]) // leaves.groups
    first, last = np.searchsorted(bounds, bounds[0] + shares)
    last = len(bounds) - 1 if group == leaves.groups - 1 else last
    rows, places = np.unique(items[bounds[first] : bounds[last]] // width, return_inverse=True)
    candidates, limits = Candidates.empty(len(rows), leaves.joined), task.once(limits_before, draw.of_round)[rows]
    for leaf in range(first, last):
        in_leaf = places[bounds[leaf] - bounds[first] : bounds[leaf + 1] - bounds[first]]
        for part, some in enumerate(np.array_split(in_leaf, -(-len(in_leaf) // leaves.together) or 1)):
            if len(some) > 1:
                draws, table = generator(task.params.seed, f"{draw.stage}/{part}", leaf), leaf_table(task, rows[some])
                join_leaf(table, some, rows.astype(np.int32), limits, candidates, leaves.points, draws)
    return rows, candidates


def leaf_table(task: StageTask, rows: np.ndarray) -> ComparedTable:
    """Return the points of a leaf as `join_leaf` takes them."""
    distance = distance_of_points(task)
    if distance.by_function:
        return ComparedTable(distance, np.asarray(compared_points(task)[rows]))
    points = points_at_hand(task)[rows]
    return ComparedTable(distance, about(middle_of_rows(points), points, basis_of(task).scale))


def joined_part(current: Round, number: int, task: StageTask, part: int) -> Arrays:
    """Return what a group of leaves gives to its points, as it is stored."""
    members, leaves = task.latest(members_of, current.draws, number), leaf_sizes(task)
    draw, group = divmod(part, leaves.groups)
    first, described = draw * leaves.leaders, StoredNeighbors.JOINED
    of_draw = members._replace(bounds=members.bounds[first : first + leaves.leaders + 1])
    rows, candidates = join_group(task, Draw(number, draw), of_draw, group)
    flat = (values.ravel() for values in candidates)
    return dict(zip(described, (rows.astype(np.int32), *flat), strict=True))


def merged_blocks(n_parts: int, number: int, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the lists of consecutive blocks: one pass over what all groups have stored collects their candidates."""
    first, last = task.dimensions.rows_of(blocks)
    candidates = Candidates.empty(last - first, leaf_sizes(task).joined)
    for part in range(n_parts):
        rows, proposed = read_joined(task, number, part, first, last)
        merge_candidates(*candidates, rows - first, *proposed)
    for block in blocks:
        yield block, settled_block(candidates.indices, first, number, task, block)


def read_joined(task: StageTask, number: int, part: int, first: int, last: int) -> tuple[np.ndarray, Candidates]:
    """Return which of the work rows from `first` to `last` a group of leaves has, and their candidates."""
    unit, described, width = block_unit(part, joined_step(number)), StoredNeighbors.JOINED, leaf_sizes(task).joined
    rows = task.output.read_rows(f"{unit}/{described.rows.name}")
    start, stop = (int(place) for place in np.searchsorted(rows, [first, last]))
    fields = (
        task.output.read_rows(f"{unit}/{array.name}", start * width, stop * width).reshape(-1, width)
        for array in (described.indices, described.squares)
    )
    return rows[start:stop].astype(np.int64), Candidates(*fields)


def settled_block(indices: np.ndarray, first: int, number: int, task: StageTask, block: int) -> Arrays:
    """Return the lists of a block after a round: what was known and the candidates, by exact distance.

    What leaves of few points do not fill, the cells nearest to a point do.

    Parameters
    ----------
    indices : (m, c) int32, the candidates of consecutive rows, those of the block among them
    first : the first of these rows
    """
    (start, stop), (known, before) = task.dimensions.rows(block), lists_before(task, number, block)
    candidates = without_known(indices[start - first : stop - first], known.indices)
    lists, _ = settled(task, start, candidates, known)
    fill_short_lists(task, start, lists)
    # Rounds over leaves follow each other, and no list was looked at from others yet.
    fresh = (without_known(lists.indices, known.indices) >= 0) | still_fresh(before, lists.indices)
    return round_arrays(lists, fresh)
