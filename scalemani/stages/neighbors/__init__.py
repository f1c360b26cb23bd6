"""The k-nearest-neighbour graph of the work points, in rounds, until its measured recall is what was asked.

Round 0 looks through the cells nearest to each point; every later round looks among the neighbours of its neighbours.
Candidates are chosen by sketches and settled by exact distances. Each round is a full set of arrays, so that a round
that was cut short goes on where it stopped.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from scalemani.chunked.work import StageTask, StageWork
from scalemani.errors import ShortfallWarning
from scalemani.kernels.measures import Measure
from scalemani.kernels.neighbors.rounds import Round, next_round
from scalemani.records.graph import StoredNeighbors
from scalemani.records.points import StoredPartition
from scalemani.routes import PRECOMPUTED
from scalemani.stages.neighbors.cells import first_round, further_cells_block, near_cells_block
from scalemani.stages.neighbors.continued import continued_block
from scalemani.stages.neighbors.counts import n_candidates, n_compared
from scalemani.stages.neighbors.exact import compared_recall, exact_block
from scalemani.stages.neighbors.lists import given_block
from scalemani.stages.neighbors.needs import disk, memory
from scalemani.stages.neighbors.nn_descent import near_neighbors_block, pynndescent_block
from scalemani.stages.neighbors.recall import find_truth
from scalemani.stages.neighbors.rounds import first_needed, run_measured_round, run_round

STANDARD_ERRORS = 2  # between what is measured and what is asked: the truth is below what is asked in one run of forty

__all__ = ["disk", "memory", "run"]


def run(work: StageWork) -> dict[str, Any]:
    """Search, then refine until the recall asked for is measured, no round would help, or rounds run out."""
    task, asked = work.task, work.task.params.neighbors
    if task.params.points.metric == PRECOMPUTED:
        run_round(work, 0, given_block)
        write_last_round(task, 0)
        return {"method": PRECOMPUTED}
    method = asked.method_for(task.dimensions.n_points)
    first = {"exact": exact_block, "partition": near_cells_block, "pynndescent": pynndescent_block}[method]
    continued = method == "partition" and task.earlier is not None
    if method == "exact":
        run_round(work, 0, first)
        write_last_round(task, 0)
        return {"method": method, **exact_certificates(work)}
    find_truth(work)
    rounds = [first_round(task) if method == "partition" else Round(0, 1)]
    needed = first_needed(work)
    recalls = [run_measured_round(work, 0, needed, continued_block if continued else first)]
    while len(rounds) <= asked.max_rounds:
        following = following_round(work, rounds, recalls, continued)
        if following is None:
            break
        number = len(rounds)
        compute = further_cells_block if following.over_cells else near_neighbors_block
        rounds.append(following)
        find = functools.partial(compute, following, number)
        recalls.append(run_measured_round(work, number, needed, find))
    recall = recalls[-1]
    if recall.value < asked.recall:
        work.warn(
            f"neighbors: recall {recall.value:.4f} after {len(rounds) - 1} rounds is below the {asked.recall} asked "
            "for: raise neighbors.max_rounds, neighbors.n_probes or partition.sketch_dimensions",
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
    }


def following_round(
    work: StageWork, rounds: Sequence[Round], recalls: Sequence[Measure], continued: bool
) -> Round | None:
    """Return the round after `rounds`, whose `recalls` were measured, or None where none would help.

    Parameters
    ----------
    work : the search
    rounds, recalls : so far
    continued : whether the first round went on from an earlier graph
    """
    task = work.task
    n_cells = len(StoredPartition(task.inputs["partition"]).centroids.read_once())
    most = -(-task.dimensions.n_points // n_candidates(task, 0))
    sought = min(1.0, task.params.neighbors.recall + STANDARD_ERRORS * recalls[-1].error)
    if not continued:
        return next_round(rounds, [recall.value for recall in recalls], sought, n_cells, most)
    # Appended points have been through cells alone, which the recall of all points does not show. What the round among
    # changed lists brings says nothing of one among all.
    if len(rounds) == 1:
        return Round(rounds[0].last, rounds[0].last, of_changed=True)
    return next_round(rounds, [recall.value for recall in recalls[1:]], sought, n_cells, most)


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
