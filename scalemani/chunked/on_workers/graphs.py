"""Stored graphs as operators on distant vectors: a task reads the rows of W of a panel, and the vectors they reach."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from scalemani.chunked.on_workers.rows import ArrayPanels
from scalemani.chunked.on_workers.spread import Spread
from scalemani.chunked.task import StageTask
from scalemani.kernels.arrays.columns import column_squares, panels
from scalemani.kernels.arrays.tall import DerivedRows, DistantRows, Tall, written_panel
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.product import Rows, normalized_product, smoothed
from scalemani.kernels.spectral.coarsening import row_slice
from scalemani.kernels.spectral.multilevel import jacobi_shares, loops_of
from scalemani.records.affinity_graph import StoredNormalizedAffinities, StoredSymmetricAffinities, affinity_graph
from scalemani.records.coarse import StoredCoarseGraphs, level_folder
from scalemani.records.points import StoredWorkPoints
from scalemani.store.groups import StageGroup

READ_FOR_ROWS = (StoredNormalizedAffinities.STAGE, StoredSymmetricAffinities.STAGE, StoredWorkPoints.STAGE)


class GraphRows(Protocol):
    """What reads the rows of a graph; it travels with tasks."""

    def rows(self, panel: slice) -> Rows:
        """Return (indptr, indices, values) of the rows of a panel."""


@dataclass(frozen=True)
class AffinityRows:
    """Rows of W, which is stored by the blocks of the run, and its degrees."""

    inputs: Mapping[str, StageGroup]
    block_rows: int

    @classmethod
    def of(cls, task: StageTask) -> "AffinityRows":
        """Return those that a stage reads: a task opens no other group."""
        groups = {name: group for name, group in task.inputs.items() if name in READ_FOR_ROWS}
        return cls(groups, task.dimensions.block_rows)

    def rows(self, panel: slice) -> Rows:
        """Return (indptr, indices, values) of the rows of a panel."""
        stored, parts = affinity_graph(self.inputs), []
        for block, inside in self._blocks(panel):
            rows = stored.read_rows(block)
            parts.append(row_slice(rows, inside.start, min(inside.stop, len(rows[0]) - 1)))
        counts = np.concatenate([np.diff(indptr) for indptr, _, _ in parts])
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        return indptr, np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])

    def degrees(self, panel: slice) -> np.ndarray:
        """Return the degrees (n,) float64 of the rows of a panel."""
        stored = affinity_graph(self.inputs)
        return np.concatenate([stored.read_block_degrees(block)[inside] for block, inside in self._blocks(panel)])

    def _blocks(self, panel: slice) -> list[tuple[int, slice]]:
        """Return the blocks that share rows with a panel, and which of their rows these are."""
        size = self.block_rows
        return [
            (block, slice(max(panel.start - block * size, 0), min(panel.stop - block * size, size)))
            for block in range(panel.start // size, -(-panel.stop // size))
        ]


@dataclass(frozen=True)
class LevelRows:
    """Rows of a stored coarse graph."""

    stored: StoredCoarseGraphs
    number: int

    def rows(self, panel: slice) -> Rows:
        """Return (indptr, indices, values) of the rows of a panel."""
        folder = level_folder(self.number)
        indptr, indices, values = (
            self.stored.reader(described, folder).zarr()
            for described in (self.stored.INDPTR, self.stored.INDICES, self.stored.VALUES)
        )
        bounds = np.asarray(indptr[panel.start : panel.stop + 1])
        entries = slice(int(bounds[0]), int(bounds[-1]))
        return bounds - bounds[0], np.asarray(indices[entries]), np.asarray(values[entries])


class Reached(NamedTuple):
    """Rows of a graph with columns counted among the `nodes` (u,) that they reach; the panel begins at `start`."""

    rows: Rows
    nodes: np.ndarray
    start: int


@dataclass(frozen=True)
class PanelGraph:
    """A stored graph as tasks see it: its rows, degrees (n,) and shares (n,) of a Jacobi step."""

    source: GraphRows
    degrees: DistantRows
    smoothing: DistantRows

    def reached(self, panel: slice) -> Reached:
        """Return the rows of a panel, and the nodes that a product with them reads: itself, and all neighbours."""
        indptr, indices, values = self.source.rows(panel)
        nodes = np.unique(np.concatenate([indices, np.arange(panel.start, panel.stop, dtype=indices.dtype)]))
        columns = np.searchsorted(nodes, indices).astype(indices.dtype)
        return Reached((indptr, columns, values), nodes.astype(np.int64), int(np.searchsorted(nodes, panel.start)))


def inverse_roots(degrees: np.ndarray) -> np.ndarray:
    """Return degrees to the power -1/2."""
    return np.asarray(1 / np.sqrt(degrees))


def root_column(degrees: np.ndarray) -> np.ndarray:
    """Return the roots of degrees (n,) as a column (n, 1)."""
    return np.sqrt(degrees)[:, np.newaxis]


def unit_part(length: float, degrees: np.ndarray) -> np.ndarray:
    """Return the roots of degrees over the length of the roots of all."""
    return np.asarray(np.sqrt(degrees) / length)


def without_loops(degrees: np.ndarray) -> np.ndarray:
    """Return the shares of a Jacobi step where the diagonal of W is zero."""
    return jacobi_shares(np.zeros(degrees.shape))


def product_panel(graph: PanelGraph, vectors: DistantRows, out: Tall, panel: slice) -> None:
    """Write a panel of S times vectors.

    Parameters
    ----------
    graph : S.
    vectors : (n, m).
    out : (n, m), written.
    panel : which rows of it.
    """
    rows, nodes, start = graph.reached(panel)
    roots = inverse_roots(graph.degrees.gather(nodes))
    with written_panel(out, panel) as target:
        normalized_product(rows, roots, start, vectors.gather(nodes), target)


def smoothed_panel(graph: PanelGraph, right: DistantRows, found: DistantRows, out: Tall, panel: slice) -> None:
    """Write a panel of a Jacobi step.

    Parameters
    ----------
    graph, out, panel : as of `product_panel`.
    right : (n, m), the right side.
    found : (n, m), from where the step goes.
    """
    rows, nodes, start = graph.reached(panel)
    roots, smoothing = inverse_roots(graph.degrees.gather(nodes)), graph.smoothing.gather(nodes)
    with written_panel(out, panel) as target:
        smoothed(rows, roots, smoothing, start, right.gather(nodes), found.gather(nodes), target)


def degrees_panel(source: AffinityRows, out: Tall, panel: slice) -> None:
    """Write the degrees of a panel of W."""
    with written_panel(out, panel) as target:
        target[:] = source.degrees(panel)


def smoothing_panel(source: GraphRows, degrees: DistantRows, out: Tall, panel: slice) -> None:
    """Write a panel of the shares of a Jacobi step: damping over the diagonal of I - S.

    Parameters
    ----------
    source : reads the rows of the graph.
    degrees : (n,), their sums.
    out : (n,), written.
    panel : which rows of it.
    """
    with written_panel(out, panel) as target:
        target[:] = jacobi_shares(loops_of(source.rows(panel), panel.start) / degrees[panel])


class SpreadGraph:
    """A stored graph as an operator on distant vectors.

    Parameters
    ----------
    spread : where panels are worked on.
    source : reads the rows of the graph.
    degrees : (n,), their sums.
    has_loops : whether its diagonal may be other than zero.
    """

    def __init__(self, spread: Spread, source: GraphRows, degrees: DistantRows, has_loops: bool) -> None:
        self.workspace: Workspace = spread.workspace
        shape, over = degrees.shape, spread.over
        self.smoothing: DistantRows = DerivedRows(degrees, without_loops, shape, np.float64)
        if has_loops:
            self.smoothing = spread.rows(shape, np.float64)
            run(over(functools.partial(smoothing_panel, source, degrees, self.smoothing), panels(len(degrees))))
        roots = DerivedRows(degrees, root_column, (len(degrees), 1), np.float64)
        length = float(np.sqrt(column_squares(roots, over)[0]))
        self.trivial: DistantRows = DerivedRows(degrees, functools.partial(unit_part, length), shape, np.float64)
        self.graph = PanelGraph(source, degrees, self.smoothing)

    @classmethod
    def of_affinities(cls, spread: Spread, has_loops: bool) -> "SpreadGraph":
        """Return W, of the stage at work."""
        source = AffinityRows.of(spread.work.task)
        degrees = spread.rows((spread.work.task.dimensions.n_points,), np.float64)
        run(spread.over(functools.partial(degrees_panel, source, degrees), panels(len(degrees))))
        return cls(spread, source, degrees, has_loops)

    @classmethod
    def of_level(cls, spread: Spread, stored: StoredCoarseGraphs, number: int) -> "SpreadGraph":
        """Return a coarse graph; the first is number 1."""
        name = f"{level_folder(number)}/{stored.DEGREES.name}"
        return cls(spread, LevelRows(stored, number), ArrayPanels(stored.group, name, spread.place.cache_bytes), True)

    @property
    def n_nodes(self) -> int:
        """The nodes of the graph."""
        return len(self.graph.degrees)

    def product(self, vectors: DistantRows) -> Tall:
        """Return S times vectors (n, m)."""
        out = self.workspace.large(vectors.shape, vectors.dtype)
        run(self.workspace.over(functools.partial(product_panel, self.graph, vectors, out), panels(len(out))))
        return out

    def smoothed(self, right: DistantRows, found: DistantRows) -> Tall:
        """Return a Jacobi step from `found` (n, m)."""
        out = self.workspace.large(right.shape, right.dtype)
        run(self.workspace.over(functools.partial(smoothed_panel, self.graph, right, found, out), panels(len(out))))
        return out
