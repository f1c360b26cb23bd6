"""Affinities of the edges of the neighbour graph, its components, and W: the symmetric affinities."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription

BLOCK_FOLDERS = ("block-N",)


class StoredAffinities(StoredStage):
    """The affinity of every edge of the graph, in work order, and how it was found."""

    STAGE: ClassVar = "affinities"
    VALUES: ClassVar = ArrayDescription(
        STAGE,
        "values",
        "rows",
        ("point", "neighbor"),
        "float32",
        "1",
        "the affinity of each edge of `neighbors`; with entropic affinities, those of a point sum to one",
    )
    BETA: ClassVar = ArrayDescription(
        STAGE, "beta", "rows", ("point",), "float64", "1 / as given^2", "1 / (2 sigma^2), sigma the point's bandwidth"
    )
    ITERATIONS: ClassVar = ArrayDescription(
        STAGE, "iterations", "rows", ("point",), "int32", "1", "steps of the root finder"
    )
    SATURATED: ClassVar = ArrayDescription(
        STAGE, "saturated", "rows", ("point",), "uint8", "1", "1 where ties put the perplexity out of reach, else 0"
    )
    DUPLICATED: ClassVar = ArrayDescription(
        STAGE, "duplicated", "rows", ("point",), "uint8", "1", "1 where the nearest neighbour is at distance 0, else 0"
    )
    RESIDUALS: ClassVar = ArrayDescription(
        STAGE, "residuals", "rows", ("point",), "float64", "nat", "entropy of the affinities less log(perplexity)"
    )
    SIGMA: ClassVar = ArrayDescription(
        STAGE,
        "sigma",
        "whole",
        (),
        "float64",
        "as given",
        "the sigma of Gaussian affinities; stored where it is chosen from the points",
    )
    ENTROPIC: ClassVar = (BETA, ITERATIONS, SATURATED, DUPLICATED, RESIDUALS)  # stored for entropic affinities alone
    ARRAYS: ClassVar = (VALUES, *ENTROPIC, SIGMA)
    SIGMA_UNIT: ClassVar = "sigma"

    @property
    def values(self) -> ArrayReader:
        """The affinity (N, k) float32 of each edge."""
        return self.reader(self.VALUES)

    @property
    def iterations(self) -> ArrayReader:
        """Steps (N,) int32 of the root finder."""
        return self.reader(self.ITERATIONS)

    @property
    def saturated(self) -> ArrayReader:
        """Where (N,) uint8 the perplexity is out of reach."""
        return self.reader(self.SATURATED)

    @property
    def duplicated(self) -> ArrayReader:
        """Where (N,) uint8 a neighbour is at distance zero."""
        return self.reader(self.DUPLICATED)

    @property
    def residuals(self) -> ArrayReader:
        """Entropy less log perplexity (N,) float64, in nats."""
        return self.reader(self.RESIDUALS)

    @property
    def sigma(self) -> ArrayReader:
        """The sigma () float64 of Gaussian affinities, where it is chosen from the points."""
        return self.reader(self.SIGMA)


class StoredComponents(StoredStage):
    """The connected components of the graph, the bridges that join them, or the rows of the one that is kept."""

    STAGE: ClassVar = "components"
    LABELS: ClassVar = ArrayDescription(
        STAGE,
        "labels",
        "whole",
        ("point",),
        "int32",
        "component",
        "the component of each work row, numbered by their first rows",
    )
    BRIDGE_ROWS: ClassVar = ArrayDescription(
        STAGE, "bridge_rows", "whole", ("bridge", "end"), "int64", "work row", "the two ends of each bridge"
    )
    BRIDGE_DISTANCES: ClassVar = ArrayDescription(
        STAGE, "bridge_distances", "whole", ("bridge",), "float64", "as given", "the length of each bridge in sketches"
    )
    BRIDGE_WEIGHTS: ClassVar = ArrayDescription(
        STAGE, "bridge_weights", "whole", ("bridge",), "float64", "1", "the affinity of each bridge"
    )
    KEPT_ROWS: ClassVar = ArrayDescription(
        STAGE,
        "kept_rows",
        "whole",
        ("kept_point",),
        "int64",
        "input row",
        "the rows of the largest component, ascending; stored where that alone is embedded",
    )
    ARRAYS: ClassVar = (LABELS, BRIDGE_ROWS, BRIDGE_DISTANCES, BRIDGE_WEIGHTS, KEPT_ROWS)
    KEPT_UNIT: ClassVar = "kept_rows"

    @property
    def bridge_rows(self) -> ArrayReader:
        """The ends (B, 2) int64 of each bridge."""
        return self.reader(self.BRIDGE_ROWS)

    @property
    def bridge_weights(self) -> ArrayReader:
        """The affinity (B,) float64 of each bridge."""
        return self.reader(self.BRIDGE_WEIGHTS)

    @property
    def keeps_largest(self) -> bool:
        """Whether the largest component alone is embedded, and points are left out."""
        return self.group.committed(self.KEPT_UNIT)

    @property
    def kept_rows(self) -> ArrayReader:
        """The input rows (M,) int64 of the largest component, ascending; see `keeps_largest`."""
        return self.reader(self.KEPT_ROWS)


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
        STAGE, "values", "part", ("nonzero",), "float32", "1", "the nonzeros of (P + P^T) / 2", BLOCK_FOLDERS
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

    def read_degrees(self, n_points: int, empty: Empty = np.empty) -> np.ndarray:
        """Return the degrees (N,) float64 of W in an array made by `empty`."""
        degrees, first, block = empty((n_points,), np.float64), 0, 0
        while first < n_points:
            part = self.read_block_degrees(block)
            degrees[first : first + len(part)] = part
            first, block = first + len(part), block + 1
        return degrees

    def read_all_rows(self, n_blocks: int) -> AffinityRows:
        """Return all of W in memory: 8 bytes a nonzero."""
        counts = np.concatenate([np.diff(self.read_row_bounds(block)) for block in range(n_blocks)])
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
        first = 0
        for block in range(n_blocks):
            _, block_indices, block_values = self.read_rows(block)
            indices[first : first + len(block_indices)] = block_indices
            values[first : first + len(block_values)] = block_values
            first += len(block_indices)
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
