"""W, the symmetric affinities: stored by blocks of rows, or made of the pixels of an image as its rows are read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.affinities.window import window_affinities
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.records.points import StoredWorkPoints
from scalemani.records.reading import StoredStage
from scalemani.store.groups import StageGroup
from scalemani.store.schema import ArrayDescription

BLOCK_FOLDERS = ("block-N",)


class StoredSymmetricAffinities(StoredStage):
    """W in work order: each block of rows is one sparse matrix in CSR form."""

    STAGE: ClassVar = "symmetric_affinities"
    INDPTR: ClassVar = ArrayDescription(
        STAGE,
        "indptr",
        "part",
        ("row_bound",),
        "int64",
        "nonzero",
        "where each row of the block begins and ends among its nonzeros",
        BLOCK_FOLDERS,
    )
    INDICES: ClassVar = ArrayDescription(
        STAGE,
        "indices",
        "part",
        ("nonzero",),
        "int32",
        "work row",
        "the column of each nonzero, ascending in a row",
        BLOCK_FOLDERS,
    )
    VALUES: ClassVar = ArrayDescription(
        STAGE,
        "values",
        "part",
        ("nonzero",),
        "float32",
        "1",
        "the nonzeros of (P + P^T) / 2; of points with weights, their sums over the copies at both ends; lower between "
        "classes where the target weight is above zero; those of a W that was given in the place of points",
        BLOCK_FOLDERS,
    )
    DEGREES: ClassVar = ArrayDescription(
        STAGE, "degrees", "part", ("row",), "float64", "1", "the sum of each row of the block", BLOCK_FOLDERS
    )
    IMAGE: ClassVar = ArrayDescription(
        STAGE, "image", "whole", ("extent",), "int64", "1", "frames, rows and columns; stored where W is that of pixels"
    )
    REACH: ClassVar = ArrayDescription(
        STAGE, "reach", "whole", ("side",), "int64", "pixel, frame", "how far the window of a pixel goes; with `image`"
    )
    SIGMA: ClassVar = ArrayDescription(
        STAGE, "sigma", "whole", (), "float64", "as given", "the sigma of these affinities; with `image`"
    )
    ARRAYS: ClassVar[tuple[ArrayDescription, ...]] = (INDPTR, INDICES, VALUES, DEGREES, IMAGE, REACH, SIGMA)
    WINDOW_UNIT: ClassVar = "window"

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        return (
            self.read_part(self.INDPTR, block),
            self.read_part(self.INDICES, block),
            self.read_part(self.VALUES, block),
        )

    def read_row_bounds(self, block: int) -> np.ndarray:
        """Return where each row of a block begins and ends: (n + 1,) int64."""
        return self.read_part(self.INDPTR, block)

    def read_block_degrees(self, block: int) -> np.ndarray:
        """Return the degrees (n,) float64 of one block's rows."""
        return self.read_part(self.DEGREES, block)

    def read_matrix(self, block: int, n_points: int) -> sp.csr_matrix:
        """Return one block's rows of W (n, N) as a sparse matrix."""
        indptr, indices, values = self.read_rows(block)
        return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_points))

    def reached(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return work rows, ascending, that hold all columns (m,) of nonzeros, and the place of each among them."""
        rows, places = np.unique(columns, return_inverse=True)
        return rows, places

    def read_degrees(self, n_points: int, empty: Empty = np.empty) -> np.ndarray:
        """Return the degrees (N,) float64 of W in an array made by `empty`."""
        degrees, first, block = empty((n_points,), np.float64), 0, 0
        while first < n_points:
            part = self.read_block_degrees(block)
            degrees[first : first + len(part)] = part
            first, block = first + len(part), block + 1
        return degrees

    def read_all_rows(self, n_blocks: int, over: Callable[..., Iterable[Any]] = map) -> AffinityRows:
        """Return all of W in memory, 8 bytes a nonzero; `over` runs blocks side by side."""
        counts = [np.diff(bounds) for bounds in over(self.read_row_bounds, range(n_blocks))]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts), dtype=np.int64)])
        ends = np.cumsum([part.sum() for part in counts])
        indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)

        def fill(block: int) -> None:
            _, block_indices, block_values = self.read_rows(block)
            own = slice(ends[block] - len(block_indices), ends[block])
            indices[own], values[own] = block_indices, block_values

        run(over(fill, range(n_blocks)))
        return AffinityRows(indptr, indices, values)


class StoredNormalizedAffinities(StoredSymmetricAffinities):
    """W normalised by density, q^-alpha W q^-alpha, in the form of `symmetric_affinities`."""

    STAGE: ClassVar = "normalized_affinities"
    INDPTR: ClassVar = replace(StoredSymmetricAffinities.INDPTR, stage=STAGE)
    INDICES: ClassVar = replace(StoredSymmetricAffinities.INDICES, stage=STAGE)
    VALUES: ClassVar = replace(
        StoredSymmetricAffinities.VALUES, stage=STAGE, meaning="the nonzeros of W, each over (q_n q_m)^alpha"
    )
    DEGREES: ClassVar = replace(StoredSymmetricAffinities.DEGREES, stage=STAGE)
    ARRAYS: ClassVar = (INDPTR, INDICES, VALUES, DEGREES)


@dataclass(frozen=True)
class WindowAffinities(StoredSymmetricAffinities):
    """Gaussian affinities of pixels: their degrees are stored, their rows are made anew each time they are read."""

    pixels: StoredWorkPoints

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        start = block * self.group.block_rows
        return self.rows_of(start, start + len(self.read_row_bounds(block)) - 1)

    def reached(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return work rows, ascending, that hold all columns: those between, which windows leave few of."""
        first = columns.min()
        return np.arange(first, columns.max() + 1), columns - first

    def rows_of(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of rows [start, stop) of W."""
        frames, rows, columns = self.reader(self.IMAGE).read_once().tolist()
        side, deep = self.reader(self.REACH).read_once().tolist()
        sigma = float(self.reader(self.SIGMA).read_once())
        points = self.pixels.reader(self.pixels.POINTS).read_once()
        return window_affinities(points, (frames, rows, columns), (side, deep), sigma, (start, stop))


def affinity_graph(inputs: Mapping[str, StageGroup]) -> StoredSymmetricAffinities:
    """Return the W that a stage works on, from its inputs: normalised by density where the method has that stage."""
    if StoredNormalizedAffinities.STAGE in inputs:
        return StoredNormalizedAffinities(inputs[StoredNormalizedAffinities.STAGE])
    group = inputs[StoredSymmetricAffinities.STAGE]
    if group.committed(StoredSymmetricAffinities.WINDOW_UNIT):
        return WindowAffinities(group, StoredWorkPoints(inputs[StoredWorkPoints.STAGE]))
    return StoredSymmetricAffinities(group)
