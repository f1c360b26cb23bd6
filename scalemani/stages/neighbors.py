"""The k-nearest-neighbour graph of the work points, in rounds, until its measured recall is what was asked.

Round 0 looks through the cells nearest to each point; every later round looks among the neighbours of its neighbours.
Candidates are chosen by sketches and settled by exact distances. Each round is a full set of arrays, so that a round
that was cut short, or a block that was lost, can be computed anew on its own.
"""

import functools
from typing import Any

import numpy as np

from scalemani.chunked.needs import CACHE, EACH_PROCESS, EACH_TASK, GROWING, MAPPED, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.tiled_search import (
    NUMBER_BYTES,
    PROPOSED_BYTES,
    SETTLED_BYTES,
    propose_by_tiles,
    refine_by_tiles,
)
from scalemani.chunked.work import Arrays, Dimensions, StageTask, StageWork
from scalemani.errors import ShortfallWarning
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.cell_scan import search_enough_cells
from scalemani.kernels.neighbors.cells import nearest_cells, nearest_nearby_cells
from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors, no_neighbors, recall_at_k
from scalemani.kernels.neighbors.rounds import Round, next_round, without_known
from scalemani.kernels.rows.sketches import rounded_sketches, rounding_error, rounding_step
from scalemani.memory.mapped import Table
from scalemani.params import Parameters
from scalemani.records.graph import StoredNeighbors, round_step
from scalemani.records.points import StoredPartition, StoredWorkPoints
from scalemani.store.schema import RowArray

BYTES_OF_EDGE = 5  # a neighbour and whether it is fresh
BYTES_OF_NEIGHBOR = 9  # the same with its distance, in float32
COPIES_OF_LISTS = 4  # those before, those found, the same encoded, and what a block is merged with
BYTES_BY_DESCENT = 60  # of pynndescent: lists with their distances, new and old candidates
SPARE_CANDIDATES, COPIES_OF_CANDIDATES = 144, 4  # of a pool; pools of a block, in order, and numbered anew
COPIES_OF_BLOCK = 2  # decoded, and put together
COPIES_OF_SKETCHES = 4  # of two blocks, as read and in panels


def n_probes(dimensions: Dimensions, params: Parameters) -> int:
    """Return how many cells a point visits."""
    asked = params.neighbors
    more = asked.more_probes if params.n_neighbors > asked.few_neighbors else 0
    return asked.n_probes or (asked.few_probes if dimensions.n_points <= asked.few_points else asked.many_probes) + more


def n_candidates(params: Parameters, number: int) -> int:
    """Return how many candidates of a round are settled by exact distances."""
    asked, k = params.neighbors, params.n_neighbors
    if k <= asked.few_neighbors:
        return round(asked.few_candidates * k)
    return round((asked.first_candidates if number == 0 else asked.later_candidates) * k)


def n_listed(params: Parameters) -> int:
    """Return how much of the list of a neighbour is looked at."""
    return min(params.neighbors.most_listed, params.n_neighbors)


def memory(sizes: Sizes) -> list[Held]:
    """List what the method holds, and the lists of a block."""
    k, rows = sizes.params.n_neighbors, sizes.dimensions.block_rows
    lists = Held("lists of a block", EACH_TASK, rows, k * BYTES_OF_NEIGHBOR, "uint8", COPIES_OF_LISTS)
    by_method = {"exact": exact_held, "partition": partition_held, "pynndescent": descent_held}
    return [lists, *by_method[sizes.params.neighbors.method_for(sizes.dimensions.n_points)](sizes)]


def exact_held(sizes: Sizes) -> list[Held]:
    """List what a block takes that is compared with all others."""
    dimensions, width = sizes.dimensions, sizes.sketch_width
    rows, features, dtype = dimensions.block_rows, dimensions.n_features, dimensions.dtype
    return [
        Held("sketches of all points", GROWING, dimensions.n_points, width, "float32"),
        Held("points of a block and of the one it is compared with", EACH_TASK, rows, features, dtype, 2),
        Held("block that points are in while they are gathered", EACH_TASK, rows, features, dtype),
        Held("sketches of both blocks", EACH_TASK, rows, width, "float32", COPIES_OF_SKETCHES),
    ]


def partition_held(sizes: Sizes) -> list[Held]:
    """List sketches and lists of all points, and what a block takes of them."""
    dimensions, params, width = sizes.dimensions, sizes.params, sizes.sketch_width
    n_points, row_bytes = dimensions.n_points, dimensions.row_bytes
    rows, features, dtype = dimensions.block_rows, dimensions.n_features, dimensions.dtype
    n_queries = min(params.neighbors.sampled_queries, n_points)
    n_cells = n_points // params.partition.cell_points + 1
    pools = n_candidates(params, 0) + SPARE_CANDIDATES
    gathered = max(PROPOSED_BYTES, SETTLED_BYTES + n_candidates(params, 1) * row_bytes)
    everything = n_points * (row_bytes + 4 * width + NUMBER_BYTES)
    return [
        Held("sketches of all points", GROWING, n_points, width, "float32"),
        Held("sketches of all points in bytes", GROWING, n_points, width, "int8"),
        Held("heads of all lists", GROWING, n_points, n_listed(params) * BYTES_OF_EDGE, "uint8"),
        Held("points of all blocks", CACHE, n_points, features, dtype),
        Held("sampled queries", EACH_PROCESS, n_queries, features, dtype),
        Held("cells near each cell", EACH_PROCESS, n_cells, min(n_cells, params.neighbors.nearby_cells), "int32"),
        Held(
            "points of a block that queries are compared with",
            EACH_TASK,
            rows,
            features,
            dtype,
            COPIES_OF_BLOCK,
            "recall",
        ),
        Held("candidates of a block", EACH_TASK, rows, pools, "int32", COPIES_OF_CANDIDATES, "rounds"),
        Held("rows that a tile looks at", EACH_TASK, min(gathered, everything), 1, "uint8", step="rounds"),
    ]


def descent_held(sizes: Sizes) -> list[Held]:
    """List the points, and what pynndescent keeps of them."""
    n_points, features = sizes.dimensions.n_points, sizes.dimensions.n_features
    return [
        Held("points", EACH_PROCESS, n_points, features, sizes.dimensions.dtype),
        Held("points in float32", EACH_PROCESS, n_points, features, "float32"),
        Held("lists of pynndescent", EACH_PROCESS, n_points, sizes.params.n_neighbors * BYTES_BY_DESCENT, "uint8"),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: rounds, the sampled queries; and all points where they are mapped."""
    dimensions, k = sizes.dimensions, sizes.params.n_neighbors
    exact = sizes.params.neighbors.method_for(dimensions.n_points) == "exact"
    rounds = 1 if exact else 1 + sizes.params.neighbors.max_rounds
    queries = sizes.params.neighbors.sampled_queries
    written = [
        Written("neighbours, in every round", STORED, sizes.n_edges, 1, "int32", rounds),
        Written("distances, in every round", STORED, sizes.n_edges, 1, sizes.dimensions.distance_dtype, rounds),
        Written("whether they are new, in every round", STORED, sizes.n_edges, 1, "uint8", rounds),
        Written("rows and reaches of the sampled queries", STORED, queries, 2),
        Written("distances of their true neighbours", STORED, queries, k),
    ]
    points = Written("points in work order", MAPPED, dimensions.n_points, dimensions.n_features, dimensions.dtype)
    return written if exact else [*written, points]


def arrays(task: StageTask) -> list[RowArray]:
    """Describe one round."""
    width = task.params.n_neighbors
    return [
        StoredNeighbors.INDICES.sized(width),
        StoredNeighbors.DISTANCES.sized(width, dtype=task.dimensions.distance_dtype),
        StoredNeighbors.FRESH.sized(width),
    ]


def no_known(task: StageTask, block: int) -> Neighbors:
    """Return the lists of a block before anything is known."""
    start, stop = task.dimensions.rows(block)
    empty = no_neighbors(stop - start, task.params.n_neighbors)
    return Neighbors(empty.indices, empty.distances.astype(task.dimensions.distance_dtype))


def run(work: StageWork) -> dict[str, Any]:
    """Search, then refine until the recall asked for is measured, no round would help, or rounds run out."""
    task, asked = work.task, work.task.params.neighbors
    method = asked.method_for(task.dimensions.n_points)
    first = {"exact": exact_block, "partition": near_cells_block, "pynndescent": pynndescent_block}[method]
    run_round(work, 0, first)
    if method == "exact":
        write_last_round(task, 0)
        return {"method": method, "recall": 1.0, "rounds": 0}
    n_cells = len(StoredPartition(task.inputs["partition"]).centroids.read_once())
    rounds = [first_round(task) if method == "partition" else Round(0, 1)]
    recalls = [measured_recall(work, 0)]
    most = -(-task.dimensions.n_points // n_candidates(task.params, 0))
    while len(rounds) <= asked.max_rounds:
        following = next_round(rounds, recalls, asked.recall, n_cells, most)
        if following is None:
            break
        number = len(rounds)
        compute = further_cells_block if following.over_cells else near_neighbors_block
        run_round(work, number, functools.partial(compute, following, number))
        rounds.append(following)
        recalls.append(measured_recall(work, number))
    if recalls[-1] < asked.recall:
        work.warn(
            f"neighbors: recall {recalls[-1]:.4f} after {len(rounds) - 1} rounds is below the {asked.recall} asked "
            "for: raise neighbors.max_rounds, neighbors.n_probes or partition.sketch_dimensions",
            ShortfallWarning,
        )
    write_last_round(task, len(rounds) - 1)
    queries = min(asked.sampled_queries, task.dimensions.n_points)
    return {"method": method, "recall": recalls[-1], "rounds": len(recalls) - 1, "sampled_queries": queries}


def write_last_round(task: StageTask, number: int) -> None:
    """Say which round the graph is."""
    task.output.write_whole({StoredNeighbors.LAST_ROUND: np.array(number)}, StoredNeighbors.LAST_ROUND.name)


def run_round(work: StageWork, number: int, function: Any) -> None:
    """Compute the missing blocks of a round."""
    work.task.output.create(work.task.dimensions.n_points, arrays(work.task), round_step(number))
    work.map_blocks(function, round_step(number))


def first_round(task: StageTask) -> Round:
    """Return the first round of a partition: over the cells nearest to each point."""
    n_cells = len(StoredPartition(task.inputs["partition"]).centroids.read_once())
    return Round(0, min(n_probes(task.dimensions, task.params), n_cells))


def near_cells_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block among the points of the cells nearest to each of its points."""
    start, stop = task.dimensions.rows(block)
    candidates = candidates_of_cells(task, start, stop, first_round(task))
    return nearest_of_candidates(task, start, candidates, no_known(task, block))


def further_cells_block(asked: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block after looking through further cells, beside those of the round before."""
    indices, distances, _ = round_block(task, number - 1, block)
    first, parts = task.dimensions.rows(block)[0], []
    # With more candidates fewer rows are searched at a time: the memory is that of the first round.
    for part in slices(len(indices), -(-len(indices) // asked.candidates)):
        found = candidates_of_cells(task, first + part.start, first + part.stop, asked)
        known = Neighbors(indices[part], distances[part])
        parts.append(nearest_of_candidates(task, first + part.start, without_known(found, known.indices), known))
    return {described: np.concatenate([part[described] for part in parts]) for described in parts[0]}


def candidates_of_cells(task: StageTask, start: int, stop: int, asked: Round) -> np.ndarray:
    """Return the work rows (n, c) int32, -1 for none, that are nearest by sketch to rows `start` to `stop`."""
    work_points = StoredWorkPoints(task.inputs["work_points"])
    sketches, offsets = task.read_table(work_points.sketch), work_points.cell_offsets.read_once()
    centroids = StoredPartition(task.inputs["partition"]).centroids.read_once()
    near = task.once(nearby_cells, asked.last)
    own = sketches[start:stop]
    probes = nearest_nearby_cells(own, 0, len(own), offsets - start, centroids, near, asked.last)
    probes = np.ascontiguousarray(probes[:, asked.first :])
    count = asked.candidates * n_candidates(task.params, 0)
    return search_enough_cells(sketches, offsets, centroids, probes, start, count)


def round_block(task: StageTask, number: int, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indices, distances, fresh), (n, k) each, of a block after a round."""
    output, step = StoredNeighbors(task.output), round_step(number)
    readers = output.indices(step), output.distances(step), output.fresh(step)
    indices, distances, fresh = (array.read_block(block) for array in readers)
    return indices, distances, fresh


def nearby_cells(task: StageTask, n_wanted: int) -> np.ndarray:
    """Return the cells among which the `n_wanted` nearest to a point of each cell are looked for."""
    centroids = StoredPartition(task.inputs["partition"]).centroids.read_once()
    tuning = task.params.neighbors
    return nearest_cells(centroids, centroids, max(tuning.nearby_cells, tuning.nearby_per_probe * n_wanted))


def near_neighbors_block(asked: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block after looking among the neighbours of those of the round before."""
    start, _ = task.dimensions.rows(block)
    step = round_step(number - 1)
    indices, distances, fresh = round_block(task, number - 1, block)
    lists = task.latest(listed_edges, step)
    sketches, unit = task.once(short_sketches)
    limits = ((distances[:, -1] / unit) ** 2).astype(np.float32)
    most_visited = task.params.neighbors.most_visited
    own, visited = NeighborLists(indices, fresh.astype(bool)), np.ascontiguousarray(indices[:, :most_visited])
    count = asked.candidates * n_candidates(task.params, number)
    candidates = propose_by_tiles(sketches, start, own, visited, lists, limits, count)
    return nearest_of_candidates(task, start, candidates, Neighbors(indices, distances))


def short_sketches(task: StageTask) -> tuple[Table, float]:
    """Return the sketches of all points, in bytes unless that is too coarse for near neighbours, and their unit.

    The rows of a list lie all over memory: how many bytes each has decides how long a round takes.
    """
    tuning, sketches = task.params.neighbors, task.read_table(StoredWorkPoints(task.inputs["work_points"]).sketch)
    scale, output = StoredPartition(task.inputs["partition"]).basis.scale, StoredNeighbors(task.output)
    step = rounding_step(sketches[output.query_rows.read_once()])
    close = float(np.quantile(output.query_limits.read_once(), tuning.close_share))
    if not 0 < rounding_error(step, sketches.shape[1]) * scale <= tuning.rounding_share * close < np.inf:
        return sketches, scale
    rounded = task.table(sketches.shape, np.int8)
    for block in range(task.dimensions.n_blocks):
        rows = slice(*task.dimensions.rows(block))
        rounded[rows] = rounded_sketches(sketches[rows], step)
    return rounded, step * scale


def listed_edges(task: StageTask, step: str) -> tuple[Table, Table]:
    """Return the fields of `NeighborLists`, the head of every list after a round, read once and not by each block."""
    shape = (task.dimensions.n_points, n_listed(task.params))
    indices, fresh, output = task.table(shape, np.int32), task.table(shape, np.bool_), StoredNeighbors(task.output)
    for block in range(task.dimensions.n_blocks):
        rows = slice(*task.dimensions.rows(block))
        indices[rows] = output.indices(step).read_block(block)[:, : shape[1]]
        fresh[rows] = output.fresh(step).read_block(block)[:, : shape[1]]
    return indices, fresh


def nearest_of_candidates(task: StageTask, start: int, candidates: np.ndarray, known: Neighbors) -> Arrays:
    """Return the arrays of rows from `start` on: the nearest of what is known and the candidates, by exact distance."""
    stored, n_points = StoredWorkPoints(task.inputs["work_points"]).points, task.dimensions.n_points
    fits = task.in_memory and task.cache_bytes >= n_points * task.dimensions.row_bytes
    points: Table = stored.read_once() if fits else stored.map_once()
    found, fresh = refine_by_tiles(points, start, candidates, known)
    return round_arrays(found, fresh)


def round_arrays(found: Neighbors, fresh: np.ndarray) -> Arrays:
    """Return the lists of a block as they are stored."""
    return {
        StoredNeighbors.INDICES: found.indices,
        StoredNeighbors.DISTANCES: found.distances,
        StoredNeighbors.FRESH: fresh.astype(np.uint8),
    }


def exact_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block by looking at every point."""
    start, stop = task.dimensions.rows(block)
    rows = np.arange(start, stop)
    found, queries = no_known(task, block), sketched_rows(task, rows)
    for other in range(task.dimensions.n_blocks):
        found = nearest_of_block(task, queries, rows, found, np.full(stop - start, np.inf), other)
    return round_arrays(found, np.ones(found.indices.shape, np.uint8))


def sketched_rows(task: StageTask, rows: np.ndarray) -> SketchedRows:
    """Return the points at ascending work rows `rows`, with their sketches."""
    work_points = StoredWorkPoints(task.inputs["work_points"])
    scale = StoredPartition(task.inputs["partition"]).basis.scale
    return SketchedRows(work_points.points.gather(rows), task.read_table(work_points.sketch)[rows], scale)


def nearest_of_block(
    task: StageTask, queries: SketchedRows, rows: np.ndarray, known: Neighbors, limits: np.ndarray, block: int
) -> Neighbors:
    """Return the nearest of what is known and a block of points, for the points `queries` at work rows `rows`."""
    work_points = StoredWorkPoints(task.inputs["work_points"])
    start, stop = task.dimensions.rows(block)
    sketches = task.read_table(work_points.sketch)[start:stop]
    candidates = SketchedRows(work_points.points.read_block(block), sketches, queries.scale)
    return exact_neighbors(queries, rows, candidates, start, known, limits)


def measured_recall(work: StageWork, number: int) -> float:
    """Return the share of the true neighbours of a random sample of points that a round has found."""
    task, output = work.task, StoredNeighbors(work.task.output)
    rows = sample_rows(
        task.params.seed, "neighbors/queries", task.dimensions.n_points, task.params.neighbors.sampled_queries
    )
    found = output.distances(round_step(number)).gather(rows)
    if not task.output.committed("truth"):
        limits = found[:, -1].astype(np.float64) * (1 + np.finfo(np.float32).eps)
        queries = {StoredNeighbors.QUERY_ROWS: rows, StoredNeighbors.QUERY_LIMITS: limits}
        task.output.write_whole(queries, "queries")
        merge = functools.partial(merge_neighbors, n_neighbors=task.params.n_neighbors)
        truth = work.fold_blocks(nearest_to_queries, merge, "recall")
        task.output.write_whole({StoredNeighbors.TRUE_DISTANCES: truth.distances}, "truth")
    return recall_at_k(found, output.true_distances.read())


def nearest_to_queries(task: StageTask, block: int) -> Neighbors:
    """Return the nearest of a block of points to the sampled queries."""
    output = StoredNeighbors(task.output)
    rows = output.query_rows.read_once()
    queries = task.once(sampled_queries)
    empty = no_neighbors(len(rows), task.params.n_neighbors)
    return nearest_of_block(task, queries, rows, empty, output.query_limits.read_once(), block)


def sampled_queries(task: StageTask) -> SketchedRows:
    """Return the sampled queries. They lie in all blocks: gathered for every block, each would be read each time."""
    return sketched_rows(task, StoredNeighbors(task.output).query_rows.read_once())


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

    points = StoredWorkPoints(task.inputs["work_points"]).points.read().astype(np.float32)
    width = min(task.params.n_neighbors + 1, len(points))
    index = NNDescent(points, n_neighbors=width, random_state=task.params.seed % 2**32, low_memory=True)
    return np.asarray(index.neighbor_graph[0], dtype=np.int32)
