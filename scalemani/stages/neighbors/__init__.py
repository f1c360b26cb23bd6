"""The k-nearest-neighbour graph of the work points, in rounds, until its measured recall reaches the target.

Round 0 looks through the cells nearest to each point; every later round looks among the neighbours of its neighbours.
With `neighbors.method` leaves the first rounds look within overlapping leaves instead. Candidates are chosen by
sketches, or by all coordinates, and settled by exact distances. Each round is a full set of arrays, so that a round
that was interrupted is resumed where it stopped. The next round needs the lists of a round alone, and a measured round
is described by its recall: a round is removed once the one after it was measured. Where blocks of the last measured
round were lost and the round before is removed, all rounds are computed again, to the same bits.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from scalemani.config.functions import is_function, load_function, plain_function
from scalemani.config.metrics import MINKOWSKI, compares_rows, power_of
from scalemani.config.stages import INPUT_LISTS, PRECOMPUTED
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.errors import ShortfallWarning
from scalemani.kernels.measures import Measure
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rounds import (
    FIRST_DRAWS,
    Round,
    next_round,
    next_round_of_leaves,
    still_fresh,
)
from scalemani.kernels.rows.reduced import ComparedTable
from scalemani.stages.arrays.graph import QUERIES, TRUTH, StoredGivenLists, StoredNeighbors, recall_unit, round_step
from scalemani.stages.neighbors.cells import cells_block, fill_short_lists, first_round
from scalemani.stages.neighbors.continued import continued_block
from scalemani.stages.neighbors.counts import exact_seconds, most_draws, n_candidates, n_compared
from scalemani.stages.neighbors.exact import compared_recall, exact_graphs, search_exactly
from scalemani.stages.neighbors.leaves import search_leaves, searches_in_memory, stored_leaves
from scalemani.stages.neighbors.lists import (
    arrays,
    is_whole,
    lists_before,
    precomputed_block,
    round_arrays,
    settled,
    taken_lists,
)
from scalemani.stages.neighbors.memory_model import disk, memory
from scalemani.stages.neighbors.recall import find_truth, measured_recall, truth_graphs
from scalemani.stages.neighbors.tables import centroids_of, distance_of_points, list_tables, work_points_of
from scalemani.stages.shared.tiled_search import propose_by_tiles
from scalemani.store.groups import BlockRows, StageGroup, TakenBlock

BEYOND_ALL = np.finfo(np.float32).max  # the distance of an entry that is missing: what is stored is finite
STANDARD_ERRORS = 2  # between the measured recall and the target: the true one is below it in one run of forty

__all__ = ["disk", "graphs", "memory", "run"]


def near_neighbors_block(current: Round, number: int, task: StageTask, block: int) -> BlockRows:
    """Return the neighbours of a block after looking among the neighbours of those of the round before.

    Lists that came with the points may be too short even then, as those of points without any neighbour. Where lists
    that have changed alone look, a block without such stays as it is.
    """
    of_given = StoredGivenLists.STAGE in task.inputs
    if current.of_changed and not of_given:
        step = round_step(number - 1)
        if not StoredNeighbors(task.output).fresh(step).read_block(block).any():
            return {**taken_lists(task.output, step), StoredNeighbors.fresh: TakenBlock(task.output, step)}
    (start, stop), (known, before) = task.dimensions.rows(block), lists_before(task, number, block)
    sketches, unit, lists = list_tables(task, round_step(number - 1), current.of_leaves)
    distance = distance_of_points(task)
    with np.errstate(over="ignore"):  # from far out, nothing is too far
        reaches = known.distances[:, -1] / unit
        limits = (reaches if distance.by_function else reaches**2).astype(np.float32)
    looked_at = before
    if current.of_leaves:  # their heads, and the rows in whose heads a row is
        looked_at = NeighborLists(*(table[start:stop] for table in lists))
    width = task.params.neighbors.most_visited
    visited = NeighborLists(*(np.ascontiguousarray(part[:, :width]) for part in looked_at))
    if current.of_changed:
        changed = before.fresh.any(axis=1, keepdims=True)
        visited = visited._replace(indices=np.where(changed, visited.indices, np.int32(-1)))
    count = current.candidates * n_candidates(task, number)
    table = ComparedTable(distance, sketches)
    candidates = propose_by_tiles(table, start, known.indices, visited, lists, limits, count)
    neighbors, fresh = settled(task, start, candidates, known)
    if current.of_changed:
        fresh |= still_fresh(before, neighbors.indices)
    if of_given:
        fill_short_lists(task, start, neighbors)
    return round_arrays(neighbors, fresh)


def pynndescent_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block as pynndescent finds them, with distances recomputed."""
    start, stop = task.dimensions.rows(block)
    rows = task.once(pynndescent_graph)[start:stop]
    # pynndescent lists a point among its neighbours, not always first.
    itself = np.arange(start, stop, dtype=np.int32)[:, np.newaxis]
    return round_arrays(*settled(task, start, np.where(rows == itself, np.int32(-1), rows)))


def pynndescent_graph(task: StageTask) -> np.ndarray:
    """Return the rows (N, k + 1) that pynndescent finds for all points in memory: it compiles for some 30 seconds."""
    from pynndescent import NNDescent  # its import alone takes seconds

    points = work_points_of(task).points.read().astype(np.float32)
    width = min(task.params.n_neighbors + 1, task.dimensions.n_points)
    metric, arguments = pynndescent_metric(task.params.points.metric)
    seed = task.params.seed % 2**32
    index = NNDescent(points, metric, metric_kwds=arguments, n_neighbors=width, random_state=seed, low_memory=True)
    return np.asarray(index.neighbor_graph[0], dtype=np.int32)


def pynndescent_metric(metric: str) -> tuple[Any, dict[str, float]]:
    """Return what pynndescent calls a metric of points as they are stored, or the function of users, and arguments."""
    if not compares_rows(metric):
        return "euclidean", {}
    if is_function(metric):
        return numba.njit(plain_function(load_function(metric))), {}  # of rows in float32, whatever a signature says
    power = power_of(metric)
    if power is not None:
        return MINKOWSKI, {"p": power}
    return {"wasserstein": "manhattan"}.get(metric, metric), {}  # cumulative sums are stored


def passed_block(task: StageTask, block: int) -> Arrays:
    """Return the lists of a block that accompany the points, by recomputed distances.

    The entries of lists that miss some are fresh: these points alone look among the neighbours of their neighbours.
    """
    indices = task.stored(StoredGivenLists).indices.read_block(block)
    neighbors, fresh = settled(task, task.dimensions.rows(block)[0], indices)
    np.minimum(neighbors.distances, BEYOND_ALL, out=neighbors.distances)
    return round_arrays(neighbors, fresh & (indices[:, -1:] < 0))


def n_incomplete(task: StageTask, block: int) -> int:
    """Return how many of the lists of a block that accompany the points miss entries."""
    indices = task.stored(StoredGivenLists).indices.read_block(block)
    return int(np.count_nonzero(indices[:, -1] < 0))


def run(context: StageContext) -> dict[str, Any]:
    """Search, then refine until the target recall is measured, no round would help, or rounds run out.

    Lists that accompany the points are measured, and refined once where some miss entries.
    """
    task, tuning = context.task, context.task.params.neighbors
    if task.params.points.metric == PRECOMPUTED:
        run_round(context, 0, precomputed_block)
        write_last_round(task, 0)
        return {"method": PRECOMPUTED}
    method = tuning.method_for(task.dimensions.n_points)
    if method == "exact":
        search_exactly(context, 0)
        write_last_round(task, 0)
        return {"method": method, **exact_certificates(context)}
    find_truth(context)
    incomplete = context.compute(incomplete_lists) if method == INPUT_LISTS else 0
    needed, recalls = first_needed(context), list[Measure]()
    starts = {"leaves": Round(0, 0, draws=FIRST_DRAWS), "partition": first_round(task)}
    rounds = [starts.get(method, Round(0, 1))]
    while len(recalls) < len(rounds):
        recalls.append(run_measured_round(context, method, rounds[-1], len(recalls), needed))
        following = following_round(context, method, rounds, recalls, incomplete)
        rounds.extend([] if following is None else [following])
    first, last = recalls[0], recalls[-1]
    if last.value < tuning.recall:
        context.warn(
            f"neighbors: recall {last.value:.4f} after {len(rounds) - 1} rounds is below the target of "
            f"{tuning.recall}: {remedy_of(task, method, first)}",
            ShortfallWarning,
        )
    write_last_round(task, len(rounds) - 1)
    of_method: dict[str, dict[str, float]] = {
        "partition": {"probes": rounds[0].last},
        "leaves": {"draws": sum(one.draws for one in rounds)},
        INPUT_LISTS: {
            "given_recall": first.value,
            "given_recall_error": first.error,
            "incomplete_lists": incomplete,
        },
    }
    return {
        "method": method,
        "recall": last.value,
        "recall_error": last.error,
        "rounds": len(rounds) - 1,
        "sampled_queries": last.n_sampled,
        **of_method.get(method, {}),
    }


def graphs(context: StageContext) -> Steps:
    """Yield the first round; how many follow, and which, says the recall of those before."""
    task, tuning = context.task, context.task.params.neighbors
    method, first = tuning.method_for(task.dimensions.n_points), first_needed(context)
    if task.params.points.metric == PRECOMPUTED:
        yield functools.partial(lists_of_round, 0, precomputed_block)
    elif method == "exact":
        yield from exact_graphs(context)
    else:
        yield from truth_graphs(context)
        if method == INPUT_LISTS:
            yield incomplete_lists
        yield "where each point is looked for, by the true neighbours"
        if method == "leaves" and searches_in_memory(context):
            yield "leaves, on the driver's threads, and a task for each block of lists"
        elif method == "leaves":
            yield functools.partial(stored_leaves, Round(0, 0, draws=FIRST_DRAWS), first)
        else:
            yield functools.partial(lists_of_round, first, near_neighbors_block)
        yield f"recall: below the target another round follows, {tuning.most_rounds} at most"


def incomplete_lists(graph: StageGraph) -> Key | None:
    """Add how many of the lists that accompany the points miss entries."""
    return graph.fold_blocks(n_incomplete, operator.add, "recall")


def remedy_of(task: StageTask, method: str, first: Measure) -> str:
    """Return what reaches a recall that a method has missed, which its first round began with."""
    if method == INPUT_LISTS:
        held = f"the lists that were passed held {first.value:.4f}: search more widely for them"
        return f"{held}, or leave out --graph (graph=), and the neighbours are searched to that recall"
    exact = f"neighbors.method=exact, some {exact_seconds(task):.0f} processor seconds of products"
    if method == "leaves":
        return f"raise neighbors.max_rounds or neighbors.leaf_points, or take {exact}"
    raised = "raise neighbors.max_rounds, neighbors.n_probes or partition.sketch_dimensions"
    return raised if task.dimensions.sparse else f"take neighbors.method=leaves, or {exact}, or {raised}"


def following_round(
    context: StageContext, method: str, rounds: Sequence[Round], recalls: Sequence[Measure], incomplete: int
) -> Round | None:
    """Return the round after `rounds`, whose `recalls` were measured, or None where none would help.

    `incomplete` of the lists that accompany the points miss entries.
    """
    task, tuning = context.task, context.task.params.neighbors
    if method == INPUT_LISTS:
        return Round(0, 0, of_changed=True) if incomplete and len(rounds) == 1 else None
    if len(rounds) > tuning.most_rounds:
        return None
    values, error = [recall.value for recall in recalls], recalls[-1].error
    if method == "leaves":
        # The error falls with the share that is missed, down to the target.
        allowed, missed = 1.0 - tuning.recall, 1.0 - values[-1]
        error *= float(np.sqrt(min(1.0, allowed / max(missed, allowed, 1e-9))))
    sought = min(1.0, tuning.recall + STANDARD_ERRORS * error)
    if method == "leaves":
        return next_round_of_leaves(rounds, values, sought, most_draws(task))
    if method == "partition" and task.earlier is not None:
        # Appended points have been through cells alone, which the recall of all points does not show. What the round
        # among changed lists brings says nothing of one among all.
        if len(rounds) == 1:
            return Round(rounds[0].last, rounds[0].last, of_changed=True)
        values = values[1:]
    most = -(-task.dimensions.n_points // n_candidates(task, 0))
    return next_round(rounds, values, sought, len(centroids_of(task)), most)


def find_round(context: StageContext, method: str, current: Round, number: int) -> None:
    """Compute the missing blocks of a round."""
    firsts = {"pynndescent": pynndescent_block, INPUT_LISTS: passed_block}
    if current.draws:
        search_leaves(current, context, number)
    elif current.exact:
        search_exactly(context, number)
    elif number == 0 and method in firsts:
        run_round(context, number, firsts[method])
    elif number == 0 and context.task.earlier is not None:
        run_round(context, number, continued_block)
    else:
        compute = cells_block if current.over_cells else near_neighbors_block
        run_round(context, number, functools.partial(compute, current, number))


def run_round(context: StageContext, number: int, function: Callable[[StageTask, int], BlockRows]) -> None:
    """Compute the missing blocks of a round."""
    context.task.output.create(context.task.dimensions.n_points, arrays(context.task), round_step(number))
    context.compute(functools.partial(lists_of_round, number, function))


def lists_of_round(number: int, function: Callable[..., BlockRows], graph: StageGraph) -> None:
    """Add the lists of all blocks in a round."""
    graph.map_blocks(function, round_step(number))


def run_measured_round(context: StageContext, method: str, current: Round, number: int, first: int) -> Measure:
    """Compute what is missing of a round and of its recall; return the recall.

    The round before is removed then, unless rounds are retained.

    Parameters
    ----------
    first : the first round whose arrays are needed, see `first_needed`: of those before it the recall is known
    """
    output, unit = context.task.output, recall_unit(number)
    if number >= first:
        find_round(context, method, current, number)
        if number >= n_measured(output):
            recall = np.array(measured_recall(context.task, number), np.float64)
            output.write_whole({StoredNeighbors.recall: recall}, unit, unit)
        if number and not context.executor.keep:
            output.remove_step(round_step(number - 1))
    value, error, n_sampled = StoredNeighbors(output).read_recall(number)
    return Measure(float(value), float(error), int(n_sampled))


def first_needed(context: StageContext) -> int:
    """Return the first round whose arrays a search needs: the last measured one, if it is whole.

    If it is not, the one before, from which it is computed again; the first of all where that is removed.
    """
    if context.executor.keep:
        return 0
    measured = n_measured(context.task.output)
    return next((number for number in (measured - 1, measured - 2) if is_whole(context.task, number)), 0)


def n_measured(output: StageGroup) -> int:
    """Return how many rounds have a recall, by the queries that are still there."""
    count = 0
    while all(output.committed(unit) for unit in (QUERIES, TRUTH, recall_unit(count))):
        count += 1
    return count


def exact_certificates(context: StageContext) -> dict[str, Any]:
    """Certify an exact search as any other: by the recall that it has on a sample."""
    recall, queries = compared_recall(context), n_compared(context.task.dimensions)
    if recall < 1.0:
        context.warn(
            f"neighbors: the exact search lists {recall:.4f} of the neighbours of {queries} points and should list "
            "all of them: do not trust this graph, and report it with the versions and the machine",
            ShortfallWarning,
        )
    return {"recall": recall, "rounds": 0, "sampled_queries": queries}


def write_last_round(task: StageTask, number: int) -> None:
    """Say which round the graph is."""
    task.output.write_whole({StoredNeighbors.last_round: np.array(number)}, StoredNeighbors.last_round.name)
