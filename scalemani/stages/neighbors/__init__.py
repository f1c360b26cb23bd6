"""The k-nearest-neighbour graph of the work points, in rounds, until its measured recall is what was asked.

Round 0 looks through the cells nearest to each point; every later round looks among the neighbours of its neighbours.
With `neighbors.method` leaves the first rounds look within overlapping leaves instead. Candidates are chosen by
sketches, or by all coordinates, and settled by exact distances. Each round is a full set of arrays, so that a round
that was cut short goes on where it stopped. What a round has found is all that the next one needs, and a measured round
is described by its recall: a round is removed once the one after it was measured. Where blocks of the last measured
round were lost and the round before is removed, the rounds are computed anew from the first on, to the same bits.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.errors import ShortfallWarning
from scalemani.kernels.measures import Measure
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.neighbors.rounds import (
    FIRST_DRAWS,
    Round,
    next_round,
    next_round_of_leaves,
    still_fresh,
)
from scalemani.stages.arrays.graph import QUERIES, TRUTH, StoredGivenLists, StoredNeighbors, recall_unit, round_step
from scalemani.stages.neighbors.cells import fill_short_lists, first_round, further_cells_block, near_cells_block
from scalemani.stages.neighbors.continued import continued_block
from scalemani.stages.neighbors.counts import exact_seconds, most_draws, n_candidates, n_compared
from scalemani.stages.neighbors.exact import compared_recall, exact_block, exact_search
from scalemani.stages.neighbors.leaves import search_leaves
from scalemani.stages.neighbors.lists import (
    arrays,
    given_block,
    is_whole,
    nearest_of_candidates,
    no_known,
    round_block,
)
from scalemani.stages.neighbors.needs import disk, memory
from scalemani.stages.neighbors.recall import find_truth, measured_recall
from scalemani.stages.neighbors.tables import centroids_of, list_tables, work_points_of
from scalemani.stages.shared.tiled_search import propose_by_tiles
from scalemani.store.groups import StageGroup

BEYOND_ALL = np.finfo(np.float32).max  # the distance of an entry that is missing: what is stored is finite


def near_neighbors_block(asked: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block after looking among the neighbours of those of the round before."""
    start, _ = task.dimensions.rows(block)
    step = round_step(number - 1)
    known, own = round_block(task, number - 1, block)
    sketches, unit, lists = list_tables(task, step, asked.of_leaves)
    with np.errstate(over="ignore"):  # from far out, nothing is too far
        limits = ((known.distances[:, -1] / unit) ** 2).astype(np.float32)
    if asked.of_leaves:
        rows = slice(start, start + len(known.indices))
        own = NeighborLists(*(np.ascontiguousarray(table[rows]) for table in lists))
    visited = np.ascontiguousarray(own.indices[:, : task.params.neighbors.most_visited])
    if asked.of_changed:
        visited = np.where(own.fresh.any(axis=1, keepdims=True), visited, np.int32(-1))
    count = asked.candidates * n_candidates(task, number)
    candidates = propose_by_tiles(sketches, start, own, visited, lists, limits, count)
    found = dict(nearest_of_candidates(task, start, candidates, known))
    if asked.of_changed:
        found[StoredNeighbors.fresh] |= still_fresh(own, found[StoredNeighbors.indices])
    return found


def pynndescent_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block as pynndescent finds them, with distances computed anew."""
    start, stop = task.dimensions.rows(block)
    found = task.once(pynndescent_graph)[start:stop]
    # pynndescent lists a point among its own neighbours, not always first.
    itself = np.arange(start, stop, dtype=np.int32)[:, np.newaxis]
    return nearest_of_candidates(task, start, np.where(found == itself, np.int32(-1), found), no_known(task, block))


def pynndescent_graph(task: StageTask) -> np.ndarray:
    """Return the rows (N, k + 1) that pynndescent finds for all points in memory: it compiles for some 30 seconds."""
    from pynndescent import NNDescent  # its import alone takes seconds

    points = work_points_of(task).points.read().astype(np.float32)
    width = min(task.params.n_neighbors + 1, task.dimensions.n_points)
    index = NNDescent(points, n_neighbors=width, random_state=task.params.seed % 2**32, low_memory=True)
    return np.asarray(index.neighbor_graph[0], dtype=np.int32)


def handed_block(task: StageTask, block: int) -> Arrays:
    """Return the lists of a block that accompany the points, by distances that are computed anew.

    The entries of lists that miss some are fresh: these points alone look among the neighbours of their neighbours.
    """
    given = task.stored(StoredGivenLists).indices.read_block(block)
    found = dict(nearest_of_candidates(task, task.dimensions.rows(block)[0], given, no_known(task, block)))
    found[StoredNeighbors.fresh] &= given[:, -1:] < 0
    found[StoredNeighbors.distances] = np.minimum(found[StoredNeighbors.distances], BEYOND_ALL)
    return found


def completed_block(task: StageTask, block: int) -> Arrays:
    """Return the lists of a block, those that missed entries completed by the neighbours of neighbours.

    Lists that are still too short, as those of points without any neighbour, by the points of near cells.
    """
    found = near_neighbors_block(Round(0, 0, of_changed=True), 1, task, block)
    lists = Neighbors(found[StoredNeighbors.indices], found[StoredNeighbors.distances])
    fill_short_lists(task, task.dimensions.rows(block)[0], lists)
    return found


def n_incomplete(task: StageTask, block: int) -> int:
    """Return how many of the lists of a block that accompany the points miss entries."""
    given = task.stored(StoredGivenLists).indices.read_block(block)
    return int(np.count_nonzero(given[:, -1] < 0))


STANDARD_ERRORS = 2  # between what is measured and what is asked: the truth is below what is asked in one run of forty
FindBlock = Callable[[StageTask, int], Arrays]
FindRound = Callable[[StageWork, int], None]

__all__ = ["disk", "memory", "run"]


def run(work: StageWork) -> dict[str, Any]:
    """Search, then refine until the recall asked for is measured, no round would help, or rounds run out."""
    task, asked = work.task, work.task.params.neighbors
    if task.params.points.metric == PRECOMPUTED:
        run_round(work, 0, given_block)
        write_last_round(task, 0)
        return {"method": PRECOMPUTED}
    method = asked.method_for(task.dimensions.n_points)
    first = pynndescent_block if method == "pynndescent" else near_cells_block
    continued = method == "partition" and task.earlier is not None
    if method == "exact":
        run_round(work, 0, exact_block if is_whole(task, 0) else exact_search(work))
        write_last_round(task, 0)
        return {"method": method, **exact_certificates(work)}
    find_truth(work)
    if method == GIVEN_LISTS:
        return complete_lists(work)
    rounds = [Round(0, 0, draws=FIRST_DRAWS) if method == "leaves" else Round(0, 1)]
    if method == "partition":
        rounds = [first_round(task)]
    needed = first_needed(work)
    find = functools.partial(run_round, function=continued_block if continued else first)
    if method == "leaves":
        find = functools.partial(search_leaves, rounds[0])
    recalls = [run_measured_round(work, 0, needed, find)]
    while len(rounds) <= asked.most_rounds:
        following = following_round(work, rounds, recalls, continued)
        if following is None:
            break
        rounds.append(following)
        recalls.append(run_measured_round(work, len(rounds) - 1, needed, functools.partial(find_round, following)))
    recall = recalls[-1]
    if recall.value < asked.recall:
        work.warn(
            f"neighbors: recall {recall.value:.4f} after {len(rounds) - 1} rounds is below the {asked.recall} asked "
            f"for: {remedy_of(task, method)}",
            ShortfallWarning,
        )
    write_last_round(task, len(rounds) - 1)
    return {
        "method": method,
        "recall": recall.value,
        "recall_error": recall.error,
        "rounds": len(recalls) - 1,
        "sampled_queries": recall.n_sampled,
        **({"probes": rounds[0].last} if method == "partition" else {}),
        **({"draws": sum(one.draws for one in rounds)} if method == "leaves" else {}),
    }


def complete_lists(work: StageWork) -> dict[str, Any]:
    """Certify lists that accompany the points, as they are and after those that miss entries were completed."""
    asked, needed = work.task.params.neighbors.recall, first_needed(work)
    as_given, completed = (functools.partial(run_round, function=one) for one in (handed_block, completed_block))
    handed = run_measured_round(work, 0, needed, as_given)
    incomplete = work.fold_blocks(n_incomplete, operator.add, "recall")
    recall = run_measured_round(work, 1, needed, completed) if incomplete else handed
    if recall.value < asked:
        work.warn(
            f"neighbors: the lists that were given hold {handed.value:.4f} of the true neighbours, measured on "
            f"{handed.n_sampled} points, {recall.value:.4f} once completed, below the {asked} asked for: search more "
            "widely for them, or leave out --graph (graph=), and the neighbours are found to that recall",
            ShortfallWarning,
        )
    write_last_round(work.task, int(incomplete > 0))
    return {
        "method": GIVEN_LISTS,
        "recall": recall.value,
        "recall_error": recall.error,
        "given_recall": handed.value,
        "given_recall_error": handed.error,
        "incomplete_lists": incomplete,
        "rounds": int(incomplete > 0),
        "sampled_queries": recall.n_sampled,
    }


def remedy_of(task: StageTask, method: str) -> str:
    """Return what reaches a recall that a method has missed."""
    exact = f"neighbors.method=exact, some {exact_seconds(task):.0f} processor seconds of products"
    if method == "leaves":
        return f"raise neighbors.max_rounds or neighbors.leaf_points, or take {exact}"
    raised = "raise neighbors.max_rounds, neighbors.n_probes or partition.sketch_dimensions"
    return raised if task.dimensions.sparse else f"take neighbors.method=leaves, or {exact}, or {raised}"


def following_round(
    work: StageWork, rounds: Sequence[Round], recalls: Sequence[Measure], continued: bool
) -> Round | None:
    """Return the round after `rounds`, whose `recalls` were measured, or None where none would help."""
    task, asked = work.task, work.task.params.neighbors.recall
    values, error = [recall.value for recall in recalls], recalls[-1].error
    if rounds[0].draws:
        # The error falls with the share that is missed, until that is what was asked.
        allowed, missed = 1.0 - asked, 1.0 - values[-1]
        error *= float(np.sqrt(min(1.0, allowed / max(missed, allowed, 1e-9))))
    sought = min(1.0, asked + STANDARD_ERRORS * error)
    if rounds[0].draws:
        return next_round_of_leaves(rounds, values, sought, most_draws(task))
    n_cells = len(centroids_of(task))
    most = -(-task.dimensions.n_points // n_candidates(task, 0))
    # Appended points have been through cells alone, which the recall of all points does not show. What the round among
    # changed lists brings says nothing of one among all.
    if continued and len(rounds) == 1:
        return Round(rounds[0].last, rounds[0].last, of_changed=True)
    return next_round(rounds, values[1:] if continued else values, sought, n_cells, most)


def find_round(asked: Round, work: StageWork, number: int) -> None:
    """Compute the missing blocks of a round after the first."""
    if asked.draws:
        search_leaves(asked, work, number)
    elif asked.exact:
        run_round(work, number, exact_search(work))
    else:
        compute = further_cells_block if asked.over_cells else near_neighbors_block
        run_round(work, number, functools.partial(compute, asked, number))


def run_round(work: StageWork, number: int, function: FindBlock) -> None:
    """Compute the missing blocks of a round."""
    work.task.output.create(work.task.dimensions.n_points, arrays(work.task), round_step(number))
    work.map_blocks(function, round_step(number))


def run_measured_round(work: StageWork, number: int, first: int, find: FindRound) -> Measure:
    """Compute what is missing of a round and of its recall; return the recall.

    The round before is removed then, unless rounds are kept.

    Parameters
    ----------
    find : computes the missing blocks of a round
    first : the first round whose arrays are needed, see `first_needed`: of those before it the recall is known
    """
    output, unit = work.task.output, recall_unit(number)
    if number >= first:
        find(work, number)
        if number >= n_measured(output):
            recall = np.array(measured_recall(work.task, number), np.float64)
            output.write_whole({StoredNeighbors.recall: recall}, unit, unit)
        if number and not work.executor.keep:
            output.remove_step(round_step(number - 1))
    value, error, n_sampled = StoredNeighbors(output).read_recall(number)
    return Measure(float(value), float(error), int(n_sampled))


def first_needed(work: StageWork) -> int:
    """Return the first round whose arrays a search needs: the last measured one, if it is whole.

    If it is not, the one before, from which it is computed anew; the first of all where that is removed.
    """
    if work.executor.keep:
        return 0
    measured = n_measured(work.task.output)
    return next((number for number in (measured - 1, measured - 2) if is_whole(work.task, number)), 0)


def n_measured(output: StageGroup) -> int:
    """Return how many rounds have a recall, by the queries that are still there."""
    count = 0
    while all(output.committed(unit) for unit in (QUERIES, TRUTH, recall_unit(count))):
        count += 1
    return count


def exact_certificates(work: StageWork) -> dict[str, Any]:
    """Certify an exact search as any other: by the recall that it has on a sample."""
    recall, queries = compared_recall(work), n_compared(work.task.dimensions)
    if recall < 1.0:
        work.warn(
            f"neighbors: the exact search has found {recall:.4f} of the neighbours of {queries} points and should have "
            "found all: do not trust this graph, and report it with the versions and the machine",
            ShortfallWarning,
        )
    return {"recall": recall, "rounds": 0, "sampled_queries": queries}


def write_last_round(task: StageTask, number: int) -> None:
    """Say which round the graph is."""
    task.output.write_whole({StoredNeighbors.last_round: np.array(number)}, StoredNeighbors.last_round.name)
