"""The hierarchy of coarse graphs of W: small aggregates of points, aggregates of these, and so on.

Points that are appended to a run join its graphs as long as they are few: the graphs precondition, and the refinement
certifies what it reaches with them, so they may be those of most of the points.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from scalemani.engine.context import StageContext, Steps
from scalemani.engine.memory.process import return_freed_memory
from scalemani.engine.memory_model import Disk, Memory, array, entries
from scalemani.engine.sizes import Sizes, pixels, written
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
from scalemani.stages.shared.edges import rows_of_appended

# Shares of W, as s, the share of edges that go one way, asks for. Of W of points with s = 0.12, 0.45, 0.68 and 0.74 are
# left: in sums of the rows of a tile 0.30, 0.53, 0.88 and 0.93; in the first coarse graph 0.25, 0.48, 0.79 and 0.88; in
# the sums for the next one 0.07, 0.24, 0.61 and 0.80; in that one 0.07, 0.22, 0.51 and 0.75.
MERGED_OF_PARTS, MERGED_OF_FIRST = 0.22, 0.15  # added to s
SHARE_OF_NEXT_PARTS, SHARE_OF_NEXT = 1.1, 1.05  # of s
MOST_GROWTH = 1.1  # times as many points as the graphs were made of: then more passes cost half of what is saved
MOST_CROWDED = 0.01  # of all points; appended points that are among themselves need new aggregates


def memory(sizes: Sizes) -> Memory:
    """Return what sums of rows take on their way to the first coarse graph, the largest, and what points do."""
    n_points, nonzeros, one_way = sizes.dimensions.n_points, sizes.nonzeros, sizes.one_way_share
    sums, first = (min(1.0, merged + one_way) * nonzeros for merged in (MERGED_OF_PARTS, MERGED_OF_FIRST))
    next_sums, following = (min(1.0, share * one_way) * nonzeros for share in (SHARE_OF_NEXT_PARTS, SHARE_OF_NEXT))
    nodes = max(sizes.first_coarse_nodes, NODES_AT_ONCE)
    # Of the rows of some nodes: their places, in order, summed, and cut to size, in 12 bytes each.
    panel = {"rows of a panel of nodes": 5 * array("int32", NODES_AT_ONCE / nodes * sums, 3)}
    appended = {
        "work rows of the earlier run": 4 * array("int64", n_points),
        "W's rows of the appended points": 4 * array("float32", sizes.n_appended_nonzeros),
    }
    of_nodes = {"degrees of the first coarse graph, as they are summed": array("float64", sizes.first_coarse_nodes)}
    of_first = {
        "summed rows, and their order": entries(sums) + array("int64", n_points),
        "degrees of the first coarse graph": array("float64", sizes.first_coarse_nodes, 2),
        "the first coarse graph, by panel and together": 2 * array("float32", first, 2),
    }
    of_next = {
        "the first coarse graph, and its summed rows": array("float32", first, 2) + entries(next_sums),
        "the next coarse graph, by panel and together": 2 * array("float32", following, 2),
    }
    return Memory(
        process=pixels(sizes),
        points={
            "degrees, aggregate of each point, and its size": array("float64", n_points, 2),
            "aggregates and row pointers of summed rows": array("float64", n_points, 2),
        },
        steps={
            "parts": Memory(
                appended if sizes.n_appended else {},
                {"a block of W: as read, numbered anew, and summed": 3 * entries(sizes.block_nonzeros, "float32")},
                {"summed rows, by block and together": 2 * entries(sums)},
            ),
            "first graph": Memory(of_nodes, panel, of_first),
            "next graph": Memory({}, panel, of_next),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the coarse graphs, and the aggregate of each point."""
    return Disk(written(StoredCoarseGraphs.ARRAYS, sizes, nonzero=sizes.coarse_nonzeros))


def run(context: StageContext) -> dict[str, Any]:
    """Join points into aggregates, sum the graph between them, coarsen that in memory, and write all levels."""
    workspace = context.workspace
    reused = None if context.task.earlier is None else reused_graphs(context, workspace)
    if reused is not None:
        labels, levels, made_of = reused
        return {**write_graphs(context, labels, levels), StoredCoarseGraphs.MADE_OF: made_of}
    labels, rows = first_coarse_graph(context, workspace)
    return write_graphs(context, labels, coarser(rows, workspace))  # each is made once that before it is written


def write_graphs(context: StageContext, labels: np.ndarray, levels: Iterable[Level]) -> dict[str, Any]:
    """Write the aggregate (N,) of each point and the coarse graphs, each as it comes; return their certificates."""
    nodes, nonzeros, output = [], [], context.task.output
    output.write_whole({StoredCoarseGraphs.labels: labels})
    for number, level in enumerate(levels, 1):
        return_freed_memory()  # what the sums of this graph were made in; those of the next are smaller
        nodes.append(len(level.degrees))
        nonzeros.append(len(level.rows[1]))
        output.write_whole(StoredCoarseGraphs.level_arrays(level), f"level-{number}", level_folder(number))
    output.write_whole({StoredCoarseGraphs.levels: np.array(len(nodes))}, StoredCoarseGraphs.levels.name)
    sizes = {StoredCoarseGraphs.NODES: nodes, StoredCoarseGraphs.NONZEROS: nonzeros}
    return {StoredCoarseGraphs.levels.name: len(nodes), **sizes}


def first_coarse_graph(context: StageContext, workspace: Workspace) -> tuple[np.ndarray, Rows]:
    """Return the aggregate of each point, and the graph between aggregates: two passes over W."""
    task, blocks = context.task, range(context.task.dimensions.n_blocks)
    graph = affinity_graph(task.inputs)
    inverse_roots = graph.read_degrees(task.dimensions.n_points, workspace.empty)
    np.divide(1, np.sqrt(inverse_roots, out=inverse_roots), out=inverse_roots)
    aggregates = no_aggregates(task.dimensions.n_points, workspace)
    context.executor.progress.start(task.stage, 2 * len(blocks))
    for block in blocks:
        rows = graph.read_rows(block)
        aggregates = aggregated(aggregates, rows, inverse_roots, task.dimensions.rows(block)[0])
        context.executor.progress.advance()
    labels = aggregates.labels

    def part_of_block(block: int) -> SummedRows:
        return coarse_part(graph.read_rows(block), labels, task.dimensions.rows(block)[0], workspace)

    # Nothing but the sums of all blocks together is held while they are ordered: those by block end here.
    summed = joined(context.executor.map_here(part_of_block, blocks), workspace)
    return_freed_memory()
    return labels, coarse_graph(summed, aggregates.count, workspace)


def reused_graphs(context: StageContext, workspace: Workspace) -> tuple[np.ndarray, Iterable[Level], int] | None:
    """Return labels, coarse graphs of the earlier run and the points they were made of; None where too many are new."""
    task, earlier = context.task, context.task.earlier_results
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


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does alone."""
    yield "points are joined into aggregates, and these again"
