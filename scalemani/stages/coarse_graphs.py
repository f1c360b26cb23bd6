"""The hierarchy of coarse graphs of W: small aggregates of points, aggregates of these, and so on.

Points that are appended to a run join its graphs as long as they are few: the graphs precondition, and the refinement
certifies what it reaches with them, so they may be those of most of the points.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from scalemani.engine.memory.process import return_freed_memory
from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, GROWING, Held, Written, entries_held
from scalemani.engine.sizes import Sizes, pixels_held, written
from scalemani.engine.work import StageWork
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.coarsening import (
    NODES_AT_ONCE,
    Level,
    Rows,
    SummedRows,
    aggregated,
    coarse_graph,
    coarse_part,
    coarser,
    crowded_share,
    join_strongest,
    joined,
    no_aggregates,
    with_degrees,
)
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import StoredCoarseGraphs, level_folder
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.appended import rows_of_appended

# Shares of W, as s, the share of edges that go one way, asks for. Of W of points with s = 0.12, 0.45, 0.68 and 0.74 are
# left: in sums of the rows of a tile 0.30, 0.53, 0.88 and 0.93; in the first coarse graph 0.25, 0.48, 0.79 and 0.88; in
# the sums for the next one 0.07, 0.24, 0.61 and 0.80; in that one 0.07, 0.22, 0.51 and 0.75.
MERGED_OF_PARTS, MERGED_OF_FIRST = 0.22, 0.15  # added to s
SHARE_OF_NEXT_PARTS, SHARE_OF_NEXT = 1.1, 1.05  # of s
COPIES_OF_BLOCK = 3  # as read, with numbers of aggregates, and summed
COPIES_OF_ROWS = 4  # of the orders of both runs, from one to the other, and which points were appended
COPIES_OF_GRAPH = 2  # by part of the nodes, and together
COPIES_OF_PANEL = 5  # of the rows of some nodes: their places, in order, summed, and cut to size, in 12 bytes each
MOST_GROWTH = 1.1  # times as many points as the graphs were made of: then more passes cost half of what is saved
MOST_CROWDED = 0.01  # of all points; appended points that are among themselves need aggregates of their own


def memory(sizes: Sizes) -> list[Held]:
    """List the sums of rows on their way to the first coarse graph, the largest, and what is known of each point."""
    n_points = sizes.dimensions.n_points
    one_way, nonzeros = sizes.one_way_share, sizes.nonzeros
    sums, first = (min(1.0, merged + one_way) * nonzeros for merged in (MERGED_OF_PARTS, MERGED_OF_FIRST))
    next_sums, following = (min(1.0, share * one_way) * nonzeros for share in (SHARE_OF_NEXT_PARTS, SHARE_OF_NEXT))
    panel = NODES_AT_ONCE / max(sizes.first_coarse_nodes, NODES_AT_ONCE) * sums
    appended = [
        Held("work rows of the earlier run", EACH_PROCESS, n_points, 1, "int64", COPIES_OF_ROWS, "parts"),
        Held("W's rows of the appended points", EACH_PROCESS, sizes.n_appended_nonzeros, 2, "float32", 2, "parts"),
    ]
    return [
        *(appended if sizes.n_appended else []),
        Held("aggregate of each point and its size", GROWING, n_points, 2, "int32"),
        *entries_held("a block of W", EACH_TASK, sizes.block_nonzeros, COPIES_OF_BLOCK, "parts", "float32"),
        Held("degrees", GROWING, n_points, 1, "float64"),
        *pixels_held(sizes),
        *entries_held("summed rows", GROWING, sums, 1, "parts"),
        Held("aggregates and row pointers of summed rows", GROWING, n_points, 2, "float64"),
        *entries_held("summed rows by block", GROWING, sums, 1, "parts"),
        *entries_held("summed rows", GROWING, sums, 1, "first graph"),
        Held("rows of a panel of nodes", EACH_TASK, panel, 3, "int32", COPIES_OF_PANEL, "first graph"),
        Held("order of the summed rows", GROWING, n_points, 1, "int64", 1, "first graph"),
        Held("degrees of the first coarse graph", GROWING, sizes.first_coarse_nodes, 2, "float64", 1, "first graph"),
        Held("the same as they are summed", EACH_PROCESS, sizes.first_coarse_nodes, 1, "float64", 1, "first graph"),
        Held("the first coarse graph", GROWING, first, 2, "float32", COPIES_OF_GRAPH, "first graph"),
        Held("the first coarse graph", GROWING, first, 2, "float32", 1, "next graph"),
        Held("rows of a panel of nodes", EACH_TASK, panel, 3, "int32", COPIES_OF_PANEL, "next graph"),
        *entries_held("its summed rows", GROWING, next_sums, 1, "next graph"),
        Held("the next coarse graph", GROWING, following, 2, "float32", COPIES_OF_GRAPH, "next graph"),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the coarse graphs, and the aggregate of each point."""
    return written(StoredCoarseGraphs.ARRAYS, sizes, nonzero=sizes.coarse_nonzeros)


def run(work: StageWork) -> dict[str, Any]:
    """Join points into aggregates, sum the graph between them, coarsen that in memory, and write all levels."""
    workspace = work.workspace()
    kept = None if work.task.earlier is None else kept_graphs(work, workspace)
    if kept is not None:
        labels, levels, made_of = kept
        return {**write_graphs(work, labels, levels), StoredCoarseGraphs.MADE_OF: made_of}
    labels, rows = first_coarse_graph(work, workspace)
    return write_graphs(work, labels, coarser(rows, workspace))  # each is made once that before it is written


def write_graphs(work: StageWork, labels: np.ndarray, levels: Iterable[Level]) -> dict[str, Any]:
    """Write the aggregate (N,) of each point and the coarse graphs, each as it comes; return what is told of them."""
    nodes, nonzeros, output = [], [], work.task.output
    output.write_whole({StoredCoarseGraphs.labels: labels})
    for number, level in enumerate(levels, 1):
        return_freed_memory()  # what the sums of this graph were made in; those of the next are smaller
        nodes.append(len(level.degrees))
        nonzeros.append(len(level.rows[1]))
        output.write_whole(StoredCoarseGraphs.level_arrays(level), f"level-{number}", level_folder(number))
    output.write_whole({StoredCoarseGraphs.levels: np.array(len(nodes))}, StoredCoarseGraphs.levels.name)
    sizes = {StoredCoarseGraphs.NODES: nodes, StoredCoarseGraphs.NONZEROS: nonzeros}
    return {StoredCoarseGraphs.levels.name: len(nodes), **sizes}


def first_coarse_graph(work: StageWork, workspace: Workspace) -> tuple[np.ndarray, Rows]:
    """Return the aggregate of each point, and the graph between aggregates: two passes over W."""
    task, blocks = work.task, range(work.task.dimensions.n_blocks)
    graph = affinity_graph(task.inputs)
    inverse_roots = graph.read_degrees(task.dimensions.n_points, workspace.empty)
    np.divide(1, np.sqrt(inverse_roots, out=inverse_roots), out=inverse_roots)
    aggregates = no_aggregates(task.dimensions.n_points, workspace)
    work.executor.progress.start(task.stage, 2 * len(blocks))
    for block in blocks:
        rows = graph.read_rows(block)
        aggregates = aggregated(aggregates, rows, inverse_roots, task.dimensions.rows(block)[0])
        work.executor.progress.advance()
    labels = aggregates.labels

    def part_of_block(block: int) -> SummedRows:
        return coarse_part(graph.read_rows(block), labels, task.dimensions.rows(block)[0], workspace)

    # Nothing but the sums of all blocks together is held while they are ordered: those by block end here.
    summed = joined(work.executor.map_locally(part_of_block, blocks), workspace)
    return_freed_memory()
    return labels, coarse_graph(summed, aggregates.count, workspace)


def kept_graphs(work: StageWork, workspace: Workspace) -> tuple[np.ndarray, Iterable[Level], int] | None:
    """Return labels, coarse graphs of the earlier run and the points they were made of; None where too many are new."""
    task, earlier = work.task, work.task.earlier_results
    stored = earlier.stored(StoredCoarseGraphs)
    made_of, n_points = stored.points_when_made(earlier.n_points), task.dimensions.n_points
    if n_points > MOST_GROWTH * made_of:
        return None
    order = task.stored(StoredWorkPoints).input_rows.read()
    before = earlier.stored(StoredWorkPoints).input_rows.read()
    labels = workspace.empty((n_points,), np.int32)
    labels[:] = -1
    labels[inverse_order(order)[before]] = stored.labels.read()
    degrees = affinity_graph(task.inputs).read_degrees(n_points, workspace.empty)
    appended = np.flatnonzero(order >= earlier.n_points)
    rows = rows_of_appended(task, appended, workspace.over)
    if not join_strongest(rows, appended, workspace.as_large(1 / np.sqrt(degrees)), labels):
        return None
    levels = stored.read_levels(workspace.empty)
    n_nodes = len(levels[0].degrees)
    if crowded_share(labels, n_nodes) > MOST_CROWDED:
        return None
    of_nodes = np.bincount(labels, weights=degrees, minlength=n_nodes)
    return labels, with_degrees(levels, of_nodes, workspace), made_of
