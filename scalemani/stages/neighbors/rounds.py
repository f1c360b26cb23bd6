"""Rounds of a search: computed, measured, and removed once the round after them was measured.

What a round has found is all that the next one needs, and a measured round is described by its recall. So a search
that was cut short goes on from its last measured round. Where blocks of that round were lost and the round before is
removed, the rounds are computed anew from the first on, to the same bits.
"""

from collections.abc import Callable

import numpy as np

from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.measures import Measure
from scalemani.records.graph import QUERIES, TRUTH, StoredNeighbors, recall_unit, round_step
from scalemani.stages.neighbors.lists import arrays
from scalemani.stages.neighbors.recall import measured_recall
from scalemani.store.groups import StageGroup, block_unit

FindBlock = Callable[[StageTask, int], Arrays]


def run_round(work: StageWork, number: int, function: FindBlock) -> None:
    """Compute the missing blocks of a round."""
    work.task.output.create(work.task.dimensions.n_points, arrays(work.task), round_step(number))
    work.map_blocks(function, round_step(number))


def run_measured_round(work: StageWork, number: int, first: int, function: FindBlock) -> Measure:
    """Compute what is missing of a round and of its recall; return the recall.

    The round before is removed then, unless rounds are kept.

    Parameters
    ----------
    work : the search
    number : of the round
    first : the first round whose arrays are needed, see `first_needed`: of those before it the recall is known
    function : computes a block of the round
    """
    output, unit = work.task.output, recall_unit(number)
    if number >= first:
        run_round(work, number, function)
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
    output, n_blocks = work.task.output, work.task.dimensions.n_blocks
    measured = n_measured(output)
    return next((number for number in (measured - 1, measured - 2) if whole(output, number, n_blocks)), 0)


def n_measured(output: StageGroup) -> int:
    """Return how many rounds have a recall, by the queries that are still there."""
    count = 0
    while all(output.committed(unit) for unit in (QUERIES, TRUTH, recall_unit(count))):
        count += 1
    return count


def whole(output: StageGroup, number: int, n_blocks: int) -> bool:
    """Return whether all blocks of a round are there."""
    return all(output.committed(block_unit(block, round_step(number))) for block in range(n_blocks))
