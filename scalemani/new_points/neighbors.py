"""The nearest training points of new points, by the cells in which the run's points are stored."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.cell_scan import search_enough_cells
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors, refine_neighbors
from scalemani.kernels.rows.renumbering import compact_rows
from scalemani.kernels.rows.sketches import SketchBasis, sketch_points
from scalemani.params.tuned import NeighborsTuning
from scalemani.records.points import StoredPartition, StoredWorkPoints
from scalemani.records.reading import ArrayReader
from scalemani.runs.opened import Run

CANDIDATES_PER_NEIGHBOR = 2.0
CACHE_BYTES = 2**28  # of decoded blocks of training points
ROWS_OF_TRUTH = 8192  # training points that are in memory at once while the recall is measured
IN_SIGHT = 1e16  # times the spread of the points: from farther off, all of them are at the same distance in float64


class TrainingRows(Protocol):
    """The training points in work order."""

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return points (n, D) at ascending work rows (n,)."""


@dataclass(frozen=True)
class StoredRows:
    """Training points that stay in their store."""

    points: ArrayReader
    cache_bytes: int

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return points (n, D) at ascending work rows (n,)."""
        return self.points.gather(rows, self.cache_bytes)


@dataclass(frozen=True)
class HeldRows:
    """Training points in memory, (N, D) in work order."""

    points: np.ndarray

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return points (n, D) at ascending work rows (n,)."""
        return self.points[rows]


@dataclass(frozen=True)
class NeighborIndex:
    """What finding neighbours takes: sketches (N, s) of the training points by cell, and the points themselves."""

    basis: SketchBasis
    centroids: np.ndarray
    cell_offsets: np.ndarray
    sketches: np.ndarray
    rows: TrainingRows
    dtype: np.dtype
    tuning: NeighborsTuning

    def neighbors(self, points: np.ndarray, n_neighbors: int) -> Neighbors:
        """Return the nearest training points, as work rows, of points (n, D): ascending distances, ties by row."""
        dtype = np.result_type(points.dtype, self.dtype)
        points = np.ascontiguousarray(self._within_sight(points), dtype)
        if len(self.sketches) <= self.tuning.exact_below:
            return self._exact(points, n_neighbors)
        own = sketch_points(points, self.basis)
        probes = nearest_cells(own, self.centroids, self.tuning.many_probes)
        wanted = round(CANDIDATES_PER_NEIGHBOR * n_neighbors)
        behind = len(self.sketches)
        candidates = search_enough_cells(self.sketches, self.cell_offsets, self.centroids, probes, behind, wanted, own)
        labels, places = compact_rows(candidates)
        rows = self.rows.gather(labels).astype(dtype, copy=False)
        none = no_neighbors(len(points), n_neighbors)
        return refine_neighbors(points, rows, labels.astype(np.int32), places, none)[0]

    def recall(self, points: np.ndarray, n_neighbors: int) -> float:
        """Return the share of the true neighbours of points (n, D) that `neighbors` finds, by exact search."""
        points = np.ascontiguousarray(self._within_sight(points), np.result_type(points.dtype, self.dtype))
        found = self.neighbors(points, n_neighbors)
        queries = SketchedRows(points, sketch_points(points, self.basis), self.basis.scale)
        none, limits = np.full(len(points), -1), found.distances[:, -1].astype(np.float64)
        true = no_neighbors(len(points), n_neighbors)
        for rows in slices(len(self.sketches), ROWS_OF_TRUTH):
            held = self.rows.gather(np.arange(rows.start, rows.stop)).astype(points.dtype, copy=False)
            block = SketchedRows(held, self.sketches[rows], self.basis.scale)
            true = exact_neighbors(queries, none, block, rows.start, true, limits)
        return float(np.mean(found.distances <= true.distances[:, -1:]))

    def _within_sight(self, points: np.ndarray) -> np.ndarray:
        """Return points with no coordinate so far away that sketches overflow; distances say nothing out there."""
        farthest = IN_SIGHT * self.basis.scale
        if points.dtype.kind != "f" or max(points.max(), -points.min()) < farthest:
            return points
        return np.clip(points, self.basis.mean - farthest, self.basis.mean + farthest).astype(points.dtype, copy=False)

    def _exact(self, points: np.ndarray, n_neighbors: int) -> Neighbors:
        scale = self.basis.scale
        queries = SketchedRows(points, sketch_points(points, self.basis), scale)
        every = self.rows.gather(np.arange(len(self.sketches))).astype(points.dtype, copy=False)
        held = SketchedRows(every, self.sketches, scale)
        none, unlimited = no_neighbors(len(points), n_neighbors), np.full(len(points), np.inf)
        return exact_neighbors(queries, np.full(len(points), -1), held, 0, none, unlimited)


def neighbor_index(run: Run, in_memory: bool, cache_bytes: int = CACHE_BYTES) -> NeighborIndex:
    """Return the index of a finished run's points, which are read into memory or stay in the store."""
    partition, stored = StoredPartition(run.group("partition")), StoredWorkPoints(run.group("work_points"))
    rows = HeldRows(stored.points.read()) if in_memory else StoredRows(stored.points, cache_bytes)
    return NeighborIndex(
        partition.basis,
        partition.centroids.read(),
        stored.cell_offsets.read(),
        stored.sketch.read(),
        rows,
        np.dtype(run.dimensions.dtype),
        run.params.neighbors,
    )
