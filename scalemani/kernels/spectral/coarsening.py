"""Coarse graphs: points joined into small aggregates, and the graph between these, level by level.

Points are joined with their strongest neighbour in one pass; the graph between aggregates is W_c = Q^T W Q with the 0/1
membership matrix Q, in a second one; degrees stay row sums, so W_c is an affinity graph (with weight inside aggregates
on its diagonal) and coarsens further. Strength of connection is that of aggregation multigrid [Vanek, Mandel and
Brezina 1996].

Points that are appended join existing aggregates, and no edge is summed again. What a point adds to the weight of an
aggregate counts as weight inside it: on the diagonal of the coarse graphs, whose other entries stay. Their Laplacian
D - W is then that of the graph before, normalised by the degrees of the grown one. That is what they precondition, up
to the edges of the points that were added.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.machine.compile import compiled

MOST_MEMBERS = 8
DENSE_NODES = 1000  # solved densely: a fifth of a second
LEAST_SHRINKAGE = 0.9  # a level that keeps more of its nodes than this ends the coarsening
SLOTS_OF_COLUMN = 2  # in the table of the columns of a node: half of it is free, so that few others are met
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads consecutive numbers [Knuth 1973]
HIGH, NEXT = np.uint64(32), np.uint64(1)
NODES_AT_ONCE = 2048  # of a coarse graph, whose parts are merged: a few MB, of points of many neighbours tens of them


class AggregateState(NamedTuple):
    """`labels` (N,) int32, -1 where a row has no aggregate yet; `sizes` (N,) int32; `count`, aggregates so far."""

    labels: np.ndarray
    sizes: np.ndarray
    count: int


class SummedRows(NamedTuple):
    """Sums of rows with the same aggregate: `nodes` (R,), and (indptr, indices, values) of their rows."""

    nodes: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class Level(NamedTuple):
    """One graph of the hierarchy.

    `rows`, (indptr int64, indices int32, values float32) of W; `degrees` (n,) float64, its row sums; `labels` (n,)
    int32, the node of the next coarser graph of each node, empty for the coarsest.
    """

    rows: Rows
    degrees: np.ndarray
    labels: np.ndarray


def no_aggregates(n_points: int, workspace: Workspace = IN_MEMORY) -> AggregateState:
    """Return the state before any row, in arrays that the workspace makes."""
    labels = workspace.empty((n_points,), np.int32)
    labels[:] = -1
    return AggregateState(labels, workspace.zeros((n_points,), np.int32), 0)


@compiled
def _aggregate(
    rows: Rows,
    inverse_roots: np.ndarray,
    start: int,
    labels: np.ndarray,
    sizes: np.ndarray,
    count: int,
) -> int:
    indptr, indices, values = rows
    for row in range(indptr.shape[0] - 1):
        node = start + row
        if labels[node] >= 0:
            continue
        strongest, partner = 0.0, -1
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            strength = values[entry] * inverse_roots[other]
            if other != node and strength > strongest and (labels[other] < 0 or sizes[labels[other]] < MOST_MEMBERS):
                strongest, partner = strength, other
        if partner >= 0 and labels[partner] >= 0:
            labels[node] = labels[partner]
        else:
            labels[node] = count
            count += 1
            if partner >= 0:
                labels[partner] = labels[node]
                sizes[labels[node]] += 1
        sizes[labels[node]] += 1
    return count


def aggregated(state: AggregateState, rows: Rows, inverse_roots: np.ndarray, start: int) -> AggregateState:
    """Return the state after rows [start, start + n): each joins its strongest neighbour whose aggregate has room.

    Blocks must come in row order; their size leaves no trace. The arrays of the state before, of all rows before
    `start`, are handed over: those of its successor are the same ones. `inverse_roots` (N,) are degrees to the power
    -1/2.
    """
    return state._replace(count=_aggregate(rows, inverse_roots, start, state.labels, state.sizes, state.count))


@compiled
def _sum_rows(
    rows: Rows,
    order: np.ndarray,
    nodes: np.ndarray,
    table: tuple[np.ndarray, np.ndarray],
    out: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> int:
    """Sum the rows of equal `nodes`, met in `order`.

    `table` (places, slots) finds the place of a column among the entries of a node that were written: column c is
    looked for from a slot on that its number gives, up to a free one; places are all -1 before and after.
    """
    indptr, indices, values = rows
    places, slots = table
    out_nodes, out_indptr, out_indices, out_values = out
    mask, count, begun, written = np.uint64(places.shape[0] - 1), 0, 0, 0
    for position in range(order.shape[0]):
        row = order[position]
        for entry in range(indptr[row], indptr[row + 1]):
            column = indices[entry]
            slot = ((np.uint64(column) * MULTIPLIER) >> HIGH) & mask
            while places[slot] >= 0 and out_indices[begun + places[slot]] != column:
                slot = (slot + NEXT) & mask
            if places[slot] < 0:
                places[slot] = written - begun
                slots[written - begun] = slot
                out_indices[written] = column
                out_values[written] = 0.0
                written += 1
            out_values[begun + places[slot]] += values[entry]
        if position + 1 == order.shape[0] or nodes[order[position + 1]] != nodes[row]:
            for place in range(written - begun):
                places[slots[place]] = -1
            begun = written
            out_nodes[count] = nodes[row]
            count += 1
            out_indptr[count] = written
    return count


def _summed(rows: Rows, nodes: np.ndarray) -> SummedRows:
    indptr, indices, _ = rows
    order = np.argsort(nodes, kind="stable")
    firsts = np.flatnonzero(np.diff(nodes[order], prepend=-1))
    most = int(np.add.reduceat(np.diff(indptr)[order], firsts).max()) if len(nodes) else 0
    size = 1 << max(SLOTS_OF_COLUMN * most, 1).bit_length()
    table = np.full(size, -1, np.int32), np.empty(size, np.uint64)
    out = SummedRows(
        np.empty(len(nodes), np.int32),
        np.zeros(len(nodes) + 1, np.int64),
        np.empty(len(indices), np.int32),
        np.empty(len(indices)),
    )
    count = _sum_rows(rows, order, nodes, table, tuple(out))
    sizes = (count, count + 1, out.indptr[count], out.indptr[count])
    return SummedRows(*(part[:size].copy() for part, size in zip(out, sizes, strict=True)))


def row_slice(rows: Rows, first: int, stop: int) -> Rows:
    """Return rows [first, stop) of rows in CSR form, without a copy of their entries."""
    indptr = rows[0][first : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return indptr - indptr[0], rows[1][entries], rows[2][entries]


def coarse_part(rows: Rows, labels: np.ndarray, start: int, workspace: Workspace = IN_MEMORY) -> SummedRows:
    """Return one block's part of Q^T W Q: `labels` (N,) int32 of all points, `rows` of W from `start` on."""
    parts = []
    for tile in slices(len(rows[0]) - 1, TILE_ROWS):
        indptr, indices, values = row_slice(rows, tile.start, tile.stop)
        nodes = labels[start + tile.start : start + tile.stop]
        parts.append(_summed((indptr, labels[indices], values), nodes))
    return joined(parts, workspace)


def joined(parts: Iterable[SummedRows], workspace: Workspace = IN_MEMORY) -> SummedRows:
    """Return parts one after the other."""
    parts, row, entry = list(parts), 0, 0
    indptr = workspace.empty((1 + sum(len(part.nodes) for part in parts),), np.int64)
    for part in parts:
        indptr[row : row + len(part.indptr)] = part.indptr + entry
        row, entry = row + len(part.nodes), entry + len(part.indices)
    return SummedRows(
        workspace.concatenate([part.nodes for part in parts]),
        indptr,
        workspace.concatenate([part.indices for part in parts]),
        workspace.concatenate([part.values for part in parts]),
    )


@compiled
def _place_by_panel(nodes: np.ndarray, next_place: np.ndarray, order: np.ndarray) -> None:
    for row in range(nodes.shape[0]):
        panel = nodes[row] // NODES_AT_ONCE
        order[next_place[panel]] = row
        next_place[panel] += 1


def rows_by_panel(nodes: np.ndarray, n_nodes: int, workspace: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers (R,) of rows by the panel of their nodes, ascending in each, and where each panel begins."""
    bounds = np.zeros(-(-n_nodes // NODES_AT_ONCE) + 1, np.int64)
    for part in panels(len(nodes)):
        bounds[1:] += np.bincount(nodes[part] // NODES_AT_ONCE, minlength=len(bounds) - 1)
    np.cumsum(bounds, out=bounds)
    order = workspace.empty((len(nodes),), np.int64)
    _place_by_panel(nodes, bounds.copy(), order)
    return order, bounds


def coarse_graph(parts: SummedRows, n_aggregates: int, workspace: Workspace = IN_MEMORY) -> Rows:
    """Return the rows of W_c = Q^T W Q, float32, from the parts of all blocks in row order."""
    order, bounds = rows_by_panel(parts.nodes, n_aggregates, workspace)

    def merged(panel: slice) -> SummedRows:
        chosen = order[panel]
        counts = parts.indptr[chosen + 1] - parts.indptr[chosen]
        indptr = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(parts.indptr[chosen] - indptr[:-1], counts) + np.arange(indptr[-1])
        rows = (indptr, parts.indices[entries], parts.values[entries])
        summed = _summed(rows, parts.nodes[chosen])
        return joined([summed._replace(values=summed.values.astype(np.float32))], workspace)

    filled = [slice(first, stop) for first, stop in itertools.pairwise(bounds) if stop > first]
    _, indptr, indices, values = joined(workspace.over(merged, filled), workspace)
    return indptr, indices, values


def coarser(rows: Rows, workspace: Workspace = IN_MEMORY) -> Iterator[Level]:
    """Yield the levels of a graph in memory, itself first, each once it is known how it coarsens.

    The last has at most DENSE_NODES nodes, or shrinks no more (a star does not).
    """
    while True:
        n_nodes, degrees = len(rows[0]) - 1, workspace.as_large(row_sums(rows[2], rows[0]))
        coarsest = Level(rows, degrees, np.empty(0, np.int32))
        if n_nodes <= DENSE_NODES:
            yield coarsest
            return
        inverse_roots = workspace.empty((n_nodes,), np.float64)
        np.divide(1, np.sqrt(degrees, out=inverse_roots), out=inverse_roots)
        state = aggregated(no_aggregates(n_nodes, workspace), rows, inverse_roots, 0)
        if state.count > LEAST_SHRINKAGE * n_nodes:
            yield coarsest
            return
        yield coarsest._replace(labels=state.labels)
        rows = next_graph(rows, state, workspace)


def next_graph(rows: Rows, aggregates: AggregateState, workspace: Workspace = IN_MEMORY) -> Rows:
    """Return the rows of the graph between the aggregates of a graph in memory."""

    def part(panel: slice) -> SummedRows:
        of_panel = row_slice(rows, panel.start, panel.stop)
        return coarse_part(of_panel, aggregates.labels, panel.start, workspace)

    parts = joined(workspace.over(part, panels(len(rows[0]) - 1)), workspace)
    return coarse_graph(parts, aggregates.count, workspace)


CROWDED = 2 * MOST_MEMBERS  # members of an aggregate that a node stands for poorly


@compiled
def _strongest_labels(
    rows: Rows,
    inverse_roots: np.ndarray,
    labels: np.ndarray,
    waiting: np.ndarray,
    joined: np.ndarray,
) -> None:
    indptr, indices, values = rows
    for at in range(waiting.size):
        strongest = 0.0
        joined[at] = -1
        for entry in range(indptr[waiting[at]], indptr[waiting[at] + 1]):
            other = indices[entry]
            strength = values[entry] * inverse_roots[other]
            if labels[other] >= 0 and strength > strongest:
                strongest, joined[at] = strength, labels[other]


def join_strongest(rows: AffinityRows, numbers: np.ndarray, inverse_roots: np.ndarray, labels: np.ndarray) -> bool:
    """Let points join the aggregate of their strongest neighbour that has one; return whether all have joined one.

    Points next to those with an aggregate come first, then the points next to these.

    Parameters
    ----------
    rows, numbers : rows (n, N) of W, and their numbers (n,) int64.
    inverse_roots : (N,) float64, degrees to the power -1/2.
    labels : (N,) int32, the aggregate of each point, -1 for none; written.
    """
    waiting = np.arange(len(numbers))
    while len(waiting):
        joined = np.empty(len(waiting), labels.dtype)
        _strongest_labels(tuple(rows), inverse_roots, labels, waiting, joined)
        labels[numbers[waiting]] = joined
        if (joined < 0).all():
            return False
        waiting = waiting[joined < 0]
    return True


def crowded_share(labels: np.ndarray, n_nodes: int) -> float:
    """Return the share of points (N,) that are in an aggregate of more than CROWDED."""
    sizes = np.bincount(labels, minlength=n_nodes)
    return float(sizes[sizes > CROWDED].sum() / len(labels))


@compiled
def _count_loops(indptr: np.ndarray, indices: np.ndarray) -> int:
    count = 0
    for row in range(indptr.size - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            count += indices[entry] == row
    return count


@compiled
def _add_loops(rows: Rows, added: np.ndarray, out: Rows) -> None:
    indptr, indices, values = rows
    out_indptr, out_indices, out_values = out
    written = 0
    out_indptr[0] = 0
    for row in range(added.size):
        missing = True
        for entry in range(indptr[row], indptr[row + 1]):
            out_indices[written], out_values[written] = indices[entry], values[entry]
            if indices[entry] == row:
                out_values[written] = values[entry] + added[row]
                missing = False
            written += 1
        if missing:
            out_indices[written], out_values[written] = row, added[row]
            written += 1
        out_indptr[row + 1] = written


def with_degrees(levels: Sequence[Level], degrees: np.ndarray, workspace: Workspace = IN_MEMORY) -> list[Level]:
    """Return coarse graphs, the finest first, whose first has other degrees (n,): what differs is on the diagonals."""
    changed, added = [], degrees - levels[0].degrees
    for level in levels:
        indptr, indices, values = level.rows
        n_nodes = len(level.degrees)
        n_entries = len(indices) + n_nodes - _count_loops(indptr, indices)
        rows = tuple(
            workspace.empty((count,), part.dtype)
            for count, part in zip((n_nodes + 1, n_entries, n_entries), level.rows, strict=True)
        )
        _add_loops((indptr, indices, values), added, rows)
        changed.append(Level(rows, workspace.as_large(level.degrees + added), level.labels))
        if len(level.labels):
            added = np.bincount(level.labels, weights=added)
    return changed
