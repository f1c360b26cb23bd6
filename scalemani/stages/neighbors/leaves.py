"""Rounds of a search within overlapping leaves: points find leaders, leaves are searched, lists are merged by block.

Leaders and splits are drawn anew for every such round. A group of leaves is one task: it stores the lists that its
leaves give to their points, and blocks take from all groups what is theirs. What a list takes was settled by exact
distances, and what it leaves out is farther: groups and their order do not change a bit of the merged lists.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np

from scalemani.engine.memory.files import Table
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.grouping import PART_ITEMS, group_large
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.neighbors.cell_groups import CellGroups
from scalemani.kernels.neighbors.exact import SketchedRows
from scalemani.kernels.neighbors.leaves import index_leaders, join_leaf, nearest_leaders
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors
from scalemani.kernels.neighbors.rounds import without_known
from scalemani.stages.arrays.graph import StoredNeighbors, joined_step, leaves_step, round_step
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.cells import nearest_in_cells
from scalemani.stages.neighbors.counts import (
    n_groups_of_leaves,
    n_leaders,
    n_leaves_of_point,
    n_points_of_leaf,
    n_together,
)
from scalemani.stages.neighbors.lists import arrays, empty_lists, holds_points, no_known, round_arrays, round_block
from scalemani.stages.neighbors.tables import coordinates_of
from scalemani.store.groups import block_unit


class Members(NamedTuple):
    """The work rows (N f,) int64 of the points of all leaves, leaf after leaf, and where leaves begin: (L + 1,)."""

    rows: Table
    bounds: np.ndarray


def search_leaves(work: StageWork, number: int) -> None:
    """Compute the missing blocks of a round within leaves, whose lists follow those of the round before."""
    task, output, n_points = work.task, work.task.output, work.task.dimensions.n_points
    assigned, joined, step = leaves_step(number), joined_step(number), round_step(number)
    output.create(n_points, arrays(task), step)
    if not all(output.committed(block_unit(block, step)) for block in range(task.dimensions.n_blocks)):
        output.create(n_points, [StoredNeighbors.leaves.sized(n_leaves_of_point(task))], assigned)
        work.map_blocks(functools.partial(leaves_block, number), assigned)
        work.map_parts(functools.partial(joined_part, number), joined, n_groups_of_leaves(task))
        blocks = work.run_blocks(task.dimensions.block_rows * lists_bytes(task))
        work.map_runs(functools.partial(merged_blocks, number), blocks, step)
    if not work.executor.keep:
        output.remove_step(assigned)
        output.remove_step(joined)


def lists_bytes(task: StageTask) -> int:
    """Return what the list of a point takes."""
    return task.params.n_neighbors * (np.dtype(np.int32).itemsize + task.dimensions.distance_dtype.itemsize)


def leaders_of(task: StageTask, number: int) -> CellGroups:
    """Return the leaders of a round."""
    stage, count = f"neighbors/{leaves_step(number)}", n_leaders(task)
    rows = sample_rows(task.params.seed, stage, task.dimensions.n_points, count)
    points = StoredWorkPoints(task.inputs["work_points"]).points.gather(rows)
    return index_leaders(coordinates_of(task, points))


def leaves_block(number: int, task: StageTask, block: int) -> Arrays:
    """Return the leaders nearest to the points of a block."""
    points = StoredWorkPoints(task.inputs["work_points"]).points.read_block(block)
    leaders = task.latest(leaders_of, number)
    return {StoredNeighbors.leaves: nearest_leaders(coordinates_of(task, points), leaders, n_leaves_of_point(task))}


def members_of(task: StageTask, number: int) -> Members:
    """Return the points of all leaves of a round."""
    leaves, width = StoredNeighbors(task.output).leaves(leaves_step(number)), n_leaves_of_point(task)

    def read(items: slice) -> np.ndarray:
        first, last = items.start // width, -(-items.stop // width)
        return leaves.read_rows(slice(first, last)).ravel()[items.start - first * width :][: items.stop - items.start]

    n_items, empty = task.dimensions.n_points * width, cast(Empty, task.table)  # of a table slices alone are taken
    in_memory = task.in_memory or n_items <= PART_ITEMS
    return Members(*group_large(read, n_items, n_leaders(task), np.empty if in_memory else empty))


def reaches_before(task: StageTask, number: int) -> np.ndarray:
    """Return how far the lists (N,) reach before a round: to their last neighbours."""
    if number == 0:
        return np.full(task.dimensions.n_points, np.inf)
    distances = StoredNeighbors(task.output).distances(round_step(number - 1))
    return np.concatenate([distances.read_block(block)[:, -1] for block in range(task.dimensions.n_blocks)])


def joined_part(number: int, task: StageTask, group: int) -> Arrays:
    """Return the lists that consecutive leaves give to their points, whose leaves have so many points together."""
    (items, bounds), n_groups = task.latest(members_of, number), n_groups_of_leaves(task)
    first, last = np.searchsorted(bounds, (bounds[-1] * np.array([group, group + 1])) // n_groups)
    last = len(bounds) - 1 if group == n_groups - 1 else last
    rows, places = np.unique(items[bounds[first] : bounds[last]] // n_leaves_of_point(task), return_inverse=True)
    lists, limits = empty_lists(task, len(rows)), task.latest(reaches_before, number)[rows].astype(np.float64)
    for leaf in range(first, last):
        members = places[bounds[leaf] - bounds[first] : bounds[leaf + 1] - bounds[first]]
        for part, some in enumerate(np.array_split(members, -(-len(members) // n_together(task)) or 1)):
            if len(some) > 1:
                draws = generator(task.params.seed, f"neighbors/{leaves_step(number)}/{part}", leaf)
                join_points(task, rows, some, lists, limits, draws)
    found = lists.indices >= 0
    return {
        StoredNeighbors.JOINED.rows: rows.astype(np.int32),
        StoredNeighbors.JOINED.bounds: np.concatenate([[0], np.cumsum(found.sum(axis=1))]),
        StoredNeighbors.JOINED.indices: lists.indices[found],
        StoredNeighbors.JOINED.distances: lists.distances[found],
    }


def join_points(
    task: StageTask,
    rows: np.ndarray,
    members: np.ndarray,
    lists: Neighbors,
    limits: np.ndarray,
    draws: np.random.Generator,
) -> None:
    """Compare points with each other, for their lists, which are changed in place.

    Parameters
    ----------
    rows : (n,) int64, work rows, ascending
    members : (m,) int64, which of these are compared, ascending
    lists : (n, k), of the rows
    limits : (n,) how far these reach at most
    """
    stored = StoredWorkPoints(task.inputs["work_points"]).points
    points = (stored.read_once() if holds_points(task) else stored.keep_in_file())[rows[members]]
    scale = StoredPartition(task.inputs["partition"]).basis.scale
    leaf = SketchedRows(points, coordinates_of(task, points), scale)
    reached = np.minimum(limits[members], lists.distances[members, -1])
    found = join_leaf(leaf, empty_lists(task, len(members)), reached, n_points_of_leaf(task), draws)
    numbers = np.where(found.indices < 0, -1, rows[members][found.indices]).astype(np.int32)
    merge_into(lists, members, Neighbors(numbers, found.distances))


def merged_blocks(number: int, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the lists of consecutive blocks: one pass over what all groups have found collects them."""
    first, last = task.dimensions.rows(blocks[0])[0], task.dimensions.rows(blocks[-1])[1]
    before = [known_lists(task, number, block) for block in blocks]
    lists = Neighbors(*(np.concatenate(parts) for parts in zip(*before, strict=True)))
    for group in range(n_groups_of_leaves(task)):
        rows, found = read_joined(task, number, group, first, last)
        merge_into(lists, rows - first, found)
    short = np.flatnonzero(lists.indices[:, -1] < 0)
    if len(short):  # in leaves of few points
        merge_into(lists, short, nearest_in_cells(task, first + short))
    for block, known in zip(blocks, before, strict=True):
        start, stop = task.dimensions.rows(block)
        own = Neighbors(*(part[start - first : stop - first] for part in lists))
        yield block, round_arrays(own, without_known(own.indices, known.indices) >= 0)


def read_joined(task: StageTask, number: int, group: int, first: int, last: int) -> tuple[np.ndarray, Neighbors]:
    """Return which of the work rows from `first` to `last` a group of leaves has, and the lists that it gives them."""
    unit, described = block_unit(group, joined_step(number)), StoredNeighbors.JOINED
    rows = task.output.read_rows(f"{unit}/{described.rows.name}")
    here = slice(*np.searchsorted(rows, [first, last]))
    bounds = task.output.read_rows(f"{unit}/{described.bounds.name}")[here.start : here.stop + 1]
    lists = empty_lists(task, here.stop - here.start)
    filled = np.arange(task.params.n_neighbors) < np.diff(bounds)[:, np.newaxis]
    for values, array in zip(lists, (described.indices, described.distances), strict=True):
        values[filled] = task.output.read_rows(f"{unit}/{array.name}", int(bounds[0]), int(bounds[-1]))
    return rows[here], lists


def merge_into(lists: Neighbors, places: np.ndarray, found: Neighbors) -> None:
    """Merge neighbours (m, k) into lists (n, k) at distinct places (m,), which are changed in place."""
    known = Neighbors(lists.indices[places], lists.distances[places])
    lists.indices[places], lists.distances[places] = merge_neighbors(known, found, lists.indices.shape[1])


def known_lists(task: StageTask, number: int, block: int) -> Neighbors:
    """Return the lists of a block before a round."""
    if number == 0:
        return no_known(task, block)
    return Neighbors(*round_block(task, number - 1, block)[:2])
