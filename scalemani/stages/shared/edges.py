"""Edges of the neighbour graph by block, with affinities between all copies where points have weights; rows of W."""

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.memory_model import Memory, Terms, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import StageTask
from scalemani.kernels.affinities.entropic import Multiplicities, loops, summed_over_copies
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.stages.arrays.affinities import EDGE, StoredAffinities, affinity_graph
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import stored_weights

BYTES_OF_SET = 600  # three small arrays of Python's, and what holds them
SORTING_EDGES = 5  # times what edges take: places of their blocks, their order, sets by block, joined, and as one array


def edges_read(sizes: Sizes) -> Terms:
    """Return what a block of the graph takes as it is read."""
    n_edges = sizes.dimensions.block_rows * sizes.edge_columns
    of_edge = array("int32", n_edges) + array(sizes.dimensions.distance_dtype, n_edges)
    return {"neighbours of a block, and their distances": of_edge}


def incoming(sizes: Sizes, n_targets: int) -> int:
    """Return the bytes of the edges that end in so many blocks, as many as start there, in sets of each block."""
    n_edges = n_targets * sizes.dimensions.block_rows * sizes.params.affinity_neighbors
    return int(array(EDGE, n_edges)) + n_targets * sizes.dimensions.n_blocks * BYTES_OF_SET


def rows_merged(sizes: Sizes) -> Terms:
    """Return what the rows of W of a block take as they are made of its edges and of those that end in it."""
    rows, k = sizes.dimensions.block_rows, sizes.params.affinity_neighbors
    return {
        **edges_read(sizes),
        "edges into a block, by the block they come from and joined": 2 * incoming(sizes, 1),
        "affinities of a block, and an order of the edges": array("float32", rows, 3 * k),
        "rows of W in a block, before and after they are cut": 2 * entries(rows * 2 * k, "float32"),
    }


def rows_made(sizes: Sizes) -> Memory:
    """Return what reading W takes where its rows are made of affinities; nothing where they are stored."""
    if sizes.params.symmetric_affinities.stored:
        return Memory()
    of_block = array(EDGE, sizes.dimensions.block_rows * sizes.params.affinity_neighbors)
    sorting = {"edges of a block as they are sorted by the block that they end in": SORTING_EDGES * of_block}
    cache = {"edges of blocks, by the block that they end in": sizes.dimensions.n_blocks * of_block}
    return Memory(task={**rows_merged(sizes), **sorting}, cache=cache)


def stored_affinities(task: StageTask) -> StoredAffinities | None:
    """Return the affinities of the graph; None for methods that go by its distances."""
    group = task.inputs.get(StoredAffinities.STAGE)
    return None if group is None else StoredAffinities(group)


def edges_of_block(task: StageTask, block: int, summed_as: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours (n, k) of a block that have affinities, and these; ones where edges have none.

    Where points have weights, affinities are sums over the copies at both ends, in a dtype.
    """
    neighbors, affinities = task.stored(StoredNeighbors), stored_affinities(task)
    lists = neighbors.indices(neighbors.final_step).read_block(block)
    indices = np.ascontiguousarray(lists[:, : task.params.affinity_neighbors])
    if affinities is None:
        return indices, np.ones(indices.shape)
    values, counts = affinities.values.read_block(block), multiplicities(task, block, indices)
    return indices, values if counts is None else summed_over_copies(values.astype(summed_as), counts)


def loops_of_block(task: StageTask, block: int) -> np.ndarray | None:
    """Return the affinity (n,) of each point of a block to itself, that of its copies; None where these are single."""
    affinities, weights = stored_affinities(task), stored_weights(task.inputs)
    if affinities is None or weights is None:
        return None
    return loops(affinities.twins.read_block(block), weights.read_block(block))


def multiplicities(task: StageTask, block: int, indices: np.ndarray) -> Multiplicities | None:
    """Return how many points each of a block and its neighbours (n, k) stand for; None where points have no weights."""
    weights = stored_weights(task.inputs)
    if weights is None:
        return None
    of_neighbors = task.read_table(weights)[indices.ravel()].reshape(indices.shape)
    return Multiplicities(weights.read_block(block), of_neighbors)


def raise_neighbors(params: Resolved) -> str:
    """Return what gives a graph more edges, or longer ones."""
    bandwidths = {"entropic": " or affinities.perplexity", "gaussian": " or affinities.sigma"}
    return f"raise neighbors.n_neighbors{bandwidths.get(params.affinities.kind or '', '')}"


def rows_of_appended(task: StageTask, appended: np.ndarray, over: Mapper) -> AffinityRows:
    """Return rows (n, N) of W in memory, at ascending work rows (n,) int64."""
    rows = affinity_graph(task.inputs).read_at(appended, task.dimensions, over)
    return AffinityRows(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data)
