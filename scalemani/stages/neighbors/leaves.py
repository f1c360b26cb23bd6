"""Rounds of a search within overlapping leaves: points find leaders, leaves are searched, candidates are settled.

Leaders and splits are drawn anew for every draw; a round has one or several. A group of leaves is one task: products of
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

from scalemani.engine.memory.files import Table
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.grouping import PART_ITEMS, group_by, group_large
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.neighbors.cell_groups import CellGroups
from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.neighbors.leaves import (
    Candidates,
    Leaders,
    index_leaders,
    join_leaf,
    merge_candidates,
    nearest_leaders,
)
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.neighbors.rounds import Round, still_fresh, without_known
from scalemani.kernels.rows.products import middle_of_rows
from scalemani.stages.arrays.graph import StoredNeighbors, joined_step, leaves_step, round_step
from scalemani.stages.neighbors.cells import fill_short_lists
from scalemani.stages.neighbors.counts import (
    BYTES_OF_CANDIDATE,
    joined_bytes,
    n_groups_of_leaves,
    n_joined,
    n_leaders,
    n_leaves_of_point,
    n_points_of_leaf,
    n_together,
)
from scalemani.stages.neighbors.lists import (
    arrays,
    holds_points,
    is_whole,
    nearest_of_candidates,
    no_known,
    points_at_hand,
    round_arrays,
    round_block,
)
from scalemani.stages.neighbors.tables import basis_of, coordinates_of, work_points_of
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


class GroupCandidates(NamedTuple):
    """What a group of leaves gives: work rows (n,) int32, ascending, and their candidates (n, c)."""

    rows: np.ndarray
    candidates: Candidates


def search_leaves(asked: Round, work: StageWork, number: int) -> None:
    """Compute the missing blocks of a round within leaves, whose lists follow those of the round before."""
    task, output, step = work.task, work.task.output, round_step(number)
    output.create(task.dimensions.n_points, arrays(task), step)
    if is_whole(task, number):
        pass
    elif work.executor.on_threads and holds_points(task, joined_bytes(task)):
        work.map_blocks(functools.partial(settled_block, search_in_memory(asked, work, number), number), step)
    else:
        search_in_store(asked, work, number)
    if not work.executor.keep:
        output.remove_step(leaves_step(number))
        output.remove_step(joined_step(number))


def search_in_memory(asked: Round, work: StageWork, number: int) -> Candidates:
    """Return the candidates of all points, on threads of this process."""
    task, lock = work.task, threading.Lock()
    n_groups, width = n_groups_of_leaves(task), n_leaves_of_point(task)
    candidates = Candidates.empty(task.dimensions.n_points, n_joined(task))
    work.executor.progress.start(task.stage, asked.draws * n_groups, "leaves")
    for draw in (Draw(number, i) for i in range(asked.draws)):
        blocks = work.executor.over(functools.partial(leaves_of_block, task, draw), range(task.dimensions.n_blocks))
        items, bounds = group_by(np.concatenate(blocks).ravel(), n_leaders(task))
        members = Members(items, bounds, width)

        def join(group: int, draw: Draw = draw, members: Members = members) -> None:
            found = join_group(task, draw, members, group)
            with lock:
                merge_candidates(*candidates, found.rows, *found.candidates)
                work.executor.progress.advance()

        work.executor.over(join, range(n_groups))
    return candidates


def search_in_store(asked: Round, work: StageWork, number: int) -> None:
    """Compute the missing blocks of a round, whose leaves and candidates are stored until it is done."""
    task, width = work.task, asked.draws * n_leaves_of_point(work.task)
    assigned, joined = leaves_step(number), joined_step(number)
    task.output.create(task.dimensions.n_points, [StoredNeighbors.leaves.sized(width)], assigned)
    work.map_blocks(functools.partial(leaves_block, asked, number), assigned)
    n_groups = asked.draws * n_groups_of_leaves(task)
    work.map_blocks(functools.partial(joined_part, asked, number), joined, n_groups)
    blocks = work.run_blocks(task.dimensions.block_rows * n_joined(task) * BYTES_OF_CANDIDATE)
    work.map_runs(functools.partial(merged_blocks, n_groups, number), blocks, round_step(number))


def leaders_of(task: StageTask, draw: Draw) -> Leaders | CellGroups:
    """Return the leaders of a draw."""
    rows = sample_rows(task.params.seed, draw.stage, task.dimensions.n_points, n_leaders(task))
    stored = work_points_of(task).points
    points = stored.read_once()[rows] if holds_points(task) else stored.gather(rows)
    return index_leaders(coordinates_of(task, points))


def leaves_of_block(task: StageTask, draw: Draw, block: int) -> np.ndarray:
    """Return the leaders (n, f) int32 nearest to the points of a block."""
    stored = work_points_of(task).points
    rows = slice(*task.dimensions.rows(block))
    points = stored.read_once()[rows].copy() if holds_points(task) else stored.read_block(block)
    return nearest_leaders(coordinates_of(task, points), task.once(leaders_of, draw), n_leaves_of_point(task))


def leaves_block(asked: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the leaders nearest to the points of a block in each draw: those of later draws are numbered on."""
    found = [leaves_of_block(task, Draw(number, i), block) + i * n_leaders(task) for i in range(asked.draws)]
    return {StoredNeighbors.leaves: np.concatenate(found, axis=1).astype(np.int32)}


def members_of(task: StageTask, draws: int, number: int) -> Members:
    """Return the points of all leaves of a round."""
    leaves, width = StoredNeighbors(task.output).leaves(leaves_step(number)), draws * n_leaves_of_point(task)

    def read(items: slice) -> np.ndarray:
        first, last = items.start // width, -(-items.stop // width)
        return leaves.read_rows(slice(first, last)).ravel()[items.start - first * width :][: items.stop - items.start]

    n_items, empty = task.dimensions.n_points * width, cast(Empty, task.table)  # of a table slices alone are taken
    in_memory = task.in_memory or n_items <= PART_ITEMS
    items, bounds = group_large(read, n_items, draws * n_leaders(task), np.empty if in_memory else empty)
    return Members(items, bounds, width)


def limits_before(task: StageTask, number: int) -> np.ndarray:
    """Return the squares (N,) float32 that candidates do not exceed: lists before a round reach no farther."""
    if number == 0:
        return np.full(task.dimensions.n_points, np.inf, np.float32)
    distances = StoredNeighbors(task.output).distances(round_step(number - 1))
    reaches = np.concatenate([distances.read_block(block)[:, -1] for block in range(task.dimensions.n_blocks)])
    scale = basis_of(task).scale
    with np.errstate(over="ignore"):
        return (0.5 * OFFERED_SLACK * (reaches.astype(np.float64) / scale) ** 2).astype(np.float32)


def join_group(task: StageTask, draw: Draw, members: Members, group: int) -> GroupCandidates:
    """Return the candidates that consecutive leaves of a draw, a group of them, give to their points."""
    items, bounds, width = members
    shares = np.array([group, group + 1]) * (bounds[-1] - bounds[0]) // n_groups_of_leaves(task)
    first, last = np.searchsorted(bounds, bounds[0] + shares)
    last = len(bounds) - 1 if group == n_groups_of_leaves(task) - 1 else last
    rows, places = np.unique(items[bounds[first] : bounds[last]] // width, return_inverse=True)
    found, limits = Candidates.empty(len(rows), n_joined(task)), task.once(limits_before, draw.of_round)[rows]
    for leaf in range(first, last):
        own = places[bounds[leaf] - bounds[first] : bounds[leaf + 1] - bounds[first]]
        for part, some in enumerate(np.array_split(own, -(-len(own) // n_together(task)) or 1)):
            if len(some) > 1:
                draws = generator(task.params.seed, f"{draw.stage}/{part}", leaf)
                vectors, size = vectors_about_middle(task, rows[some]), n_points_of_leaf(task)
                join_leaf(vectors, some, rows.astype(np.int32), limits, found, size, draws)
    return GroupCandidates(rows, found)


def vectors_about_middle(task: StageTask, rows: np.ndarray) -> np.ndarray:
    """Return all coordinates (m, D) float32 of some points about their middle, in units of the sketches."""
    points = points_at_hand(task)[rows]
    return about(middle_of_rows(points), points, basis_of(task).scale)


def joined_part(asked: Round, number: int, task: StageTask, part: int) -> Arrays:
    """Return what a group of leaves gives to its points, as it is stored."""
    members = task.latest(members_of, asked.draws, number)
    draw, group = divmod(part, n_groups_of_leaves(task))
    first, described = draw * n_leaders(task), StoredNeighbors.JOINED
    own = members._replace(bounds=members.bounds[first : first + n_leaders(task) + 1])
    rows, candidates = join_group(task, Draw(number, draw), own, group)
    return {
        described.rows: rows.astype(np.int32),
        described.indices: candidates.indices.ravel(),
        described.squares: candidates.squares.ravel(),
    }


def merged_blocks(n_parts: int, number: int, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the lists of consecutive blocks: one pass over what all groups have found collects their candidates."""
    first, last = task.dimensions.rows(blocks[0])[0], task.dimensions.rows(blocks[-1])[1]
    candidates = Candidates.empty(last - first, n_joined(task))
    for part in range(n_parts):
        rows, found = read_joined(task, number, part, first, last)
        merge_candidates(*candidates, rows - first, *found)
    for block in blocks:
        yield (
            block,
            settle(candidates.indices[slice(*(np.array(task.dimensions.rows(block)) - first))], number, task, block),
        )


def read_joined(task: StageTask, number: int, part: int, first: int, last: int) -> GroupCandidates:
    """Return which of the work rows from `first` to `last` a group of leaves has, and their candidates."""
    unit, described, width = block_unit(part, joined_step(number)), StoredNeighbors.JOINED, n_joined(task)
    rows = task.output.read_rows(f"{unit}/{described.rows.name}")
    start, stop = np.searchsorted(rows, [first, last])
    found = (
        task.output.read_rows(f"{unit}/{array.name}", int(start) * width, int(stop) * width).reshape(-1, width)
        for array in (described.indices, described.squares)
    )
    return GroupCandidates(rows[start:stop].astype(np.int64), Candidates(*found))


def settled_block(candidates: Candidates, number: int, task: StageTask, block: int) -> Arrays:
    """Return the lists of a block out of the candidates of all points."""
    return settle(candidates.indices[slice(*task.dimensions.rows(block))], number, task, block)


def settle(candidates: np.ndarray, number: int, task: StageTask, block: int) -> Arrays:
    """Return the lists of a block after a round: what was known and the candidates (n, c), by exact distance.

    What leaves of few points do not fill, the cells nearest to a point do.
    """
    start, _ = task.dimensions.rows(block)
    known = no_known(task, block)
    before = NeighborLists(known.indices, np.zeros(known.indices.shape, bool))
    if number:
        known, before = round_block(task, number - 1, block)
    found = nearest_of_candidates(task, start, without_known(candidates, known.indices), known)
    lists = Neighbors(found[StoredNeighbors.indices], found[StoredNeighbors.distances])
    fill_short_lists(task, start, lists)
    # Rounds over leaves follow each other, and no list was looked at from others yet.
    fresh = (without_known(lists.indices, known.indices) >= 0) | still_fresh(before, lists.indices)
    return round_arrays(lists, fresh)
