"""Points in input order, the cells they lie in, and points in work order: sorted by cell.

Groups of sparse points hold CSR parts, a set for every block, and the number of features; `points` reads either kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.neighbors.stretches import Stretches, stretches_of_sorted
from scalemani.kernels.rows.sketches import SketchBasis
from scalemani.memory.sparse_rows import SparseRowsReader
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.groups import StageGroup
from scalemani.store.schema import AS_COLUMNS, AS_POINTS, ArrayDescription, DtypeRule

FEATURES = "features"  # the name of the unit that sparse points have and dense ones have not


@dataclass(frozen=True)
class SparseDescription:
    """The arrays of sparse points: CSR parts of every block, and the number of features."""

    indptr: ArrayDescription
    indices: ArrayDescription
    values: ArrayDescription
    n_features: ArrayDescription

    @property
    def all(self) -> tuple[ArrayDescription, ...]:
        """The four arrays."""
        return self.indptr, self.indices, self.values, self.n_features

    def parts(self, rows: sp.csr_matrix) -> dict[ArrayDescription, np.ndarray]:
        """Return the rows of a block as they are stored."""
        return dict(zip((self.indptr, self.indices, self.values), stored_parts(rows), strict=True))

    def features(self, n_features: int) -> dict[ArrayDescription, np.ndarray]:
        """Return the number of features as it is stored, in the unit `FEATURES`."""
        return {self.n_features: np.array(n_features)}


def stored_parts(rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where rows (n, D) begin and end, the columns of their nonzeros, and these, in the dtypes of a store."""
    columns = np.uint16 if rows.shape[1] <= 2**16 else np.int32
    return rows.indptr.astype(np.int64), rows.indices.astype(columns), rows.data


def sparse_points(stage: str, folder: str, order: str) -> SparseDescription:
    """Return the description of sparse points in some order, the parts of each block in a folder."""

    def part(name: str, dim: str, dtype: str | DtypeRule, units: str, says: str) -> ArrayDescription:
        return ArrayDescription(
            stage, name, "part", (dim,), dtype, units, f"of sparse points in {order}: {says}", (folder,)
        )

    return SparseDescription(
        part(
            "indptr", "row_bound", "int64", "nonzero", "where each row of the block begins and ends among its nonzeros"
        ),
        part("indices", "nonzero", AS_COLUMNS, "feature", "the column of each nonzero, ascending in each row"),
        part("values", "nonzero", AS_POINTS, "as given", "the nonzeros, as the metric of the run maps them"),
        ArrayDescription(
            stage, "n_features", "whole", (), "int64", "1", "of sparse points: D; where it is missing they are dense"
        ),
    )


class StoredRows(StoredStage):
    """A group with a row a point, dense or sparse."""

    POINTS: ClassVar[ArrayDescription]
    SPARSE: ClassVar[SparseDescription]
    ROWS_STEP: ClassVar[str] = ""

    @property
    def points(self) -> ArrayReader | SparseRowsReader:
        """Points (N, D), read as NumPy arrays where they are dense and as SciPy's sparse rows where they are sparse."""
        if not self.group.committed(FEATURES):
            return self.reader(self.POINTS)
        n_features = int(self.reader(self.SPARSE.n_features).read_once())
        return SparseRowsReader(self.group, n_features, self.ROWS_STEP)


class StoredPoints(StoredRows):
    """Points as they came, in input order."""

    STAGE: ClassVar = "points"
    POINTS: ClassVar = ArrayDescription(
        STAGE,
        "points",
        "rows",
        ("point", "feature"),
        AS_POINTS,
        "as given",
        "points in input order, as the metric of the run maps them; neighbours and distances, or affinities as sparse "
        "rows, where these were given",
    )
    SPARSE: ClassVar = sparse_points(STAGE, "block-N", "input order")
    ARRAYS: ClassVar = (POINTS, *SPARSE.all)


def points_in_order(inputs: Mapping[str, StageGroup]) -> StoredRows:
    """Return the points of a stage in the order that it works in: that of cells where its route has them."""
    if StoredWorkPoints.STAGE in inputs:
        return StoredWorkPoints(inputs[StoredWorkPoints.STAGE])
    return StoredPoints(inputs[StoredPoints.STAGE])


class StoredPartition(StoredStage):
    """The principal axes of the points, cells in their span, and the cell of each point."""

    STAGE: ClassVar = "partition"
    MEAN: ClassVar = ArrayDescription(
        STAGE, "mean", "whole", ("feature",), "float64", "as given", "mean of a sample of the points"
    )
    AXES: ClassVar = ArrayDescription(
        STAGE,
        "axes",
        "whole",
        ("feature", "axis"),
        "float32",
        "1",
        "leading principal directions of that sample, orthonormal columns of descending variance",
    )
    SCALE: ClassVar = ArrayDescription(
        STAGE,
        "scale",
        "whole",
        (),
        "float64",
        "as given",
        "unit of length of sketches, a power of two: a point's sketch is (point - mean) @ axes / scale",
    )
    CENTROIDS: ClassVar = ArrayDescription(
        STAGE, "centroids", "whole", ("cell", "axis"), "float32", "scale", "centres of the cells, as sketches"
    )
    CELLS: ClassVar = ArrayDescription(
        STAGE, "cells", "rows", ("point",), "int32", "cell", "the cell nearest to each point, in input order"
    )
    ARRAYS: ClassVar = (MEAN, AXES, SCALE, CENTROIDS, CELLS)

    @property
    def basis(self) -> SketchBasis:
        """The axes of the sketches, kept in this process."""
        mean, axes, scale = (self.reader(described).read_once() for described in (self.MEAN, self.AXES, self.SCALE))
        return SketchBasis(mean, axes, float(scale))

    @property
    def centroids(self) -> ArrayReader:
        """Centres (C, s) float32 of the cells."""
        return self.reader(self.CENTROIDS)

    @property
    def cells(self) -> ArrayReader:
        """The cell (N,) int32 of each point, in input order."""
        return self.reader(self.CELLS)


class StoredWorkPoints(StoredRows):
    """Points and sketches in work order, and the way back to input order."""

    STAGE: ClassVar = "work_points"
    ROWS_STEP: ClassVar = "rows"
    INPUT_ROWS: ClassVar = ArrayDescription(
        STAGE, "input_rows", "whole", ("point",), "int64", "input row", "the input row of each work row"
    )
    CELL_OFFSETS: ClassVar = ArrayDescription(
        STAGE,
        "cell_offsets",
        "whole",
        ("cell_bound",),
        "int64",
        "work row",
        "the first work row of each cell, and behind the last one the number of points",
    )
    STRETCH_OFFSETS: ClassVar = ArrayDescription(
        STAGE,
        "stretch_offsets",
        "whole",
        ("stretch_bound",),
        "int64",
        "work row",
        "in the place of `cell_offsets` where appended points come behind the others, sorted by cell among themselves: "
        "the first row of each stretch of work rows of one cell, and behind the last one the number of points",
    )
    STRETCH_CELLS: ClassVar = ArrayDescription(
        STAGE, "stretch_cells", "whole", ("stretch",), "int32", "cell", "the cell of each of these stretches"
    )
    POINTS: ClassVar = ArrayDescription(
        STAGE, "points", "rows", ("point", "feature"), AS_POINTS, "as given", "the same points in work order"
    )
    SKETCH: ClassVar = ArrayDescription(
        STAGE,
        "sketch",
        "rows",
        ("point", "axis"),
        "float32",
        "scale",
        "their leading principal components, in units of `partition/scale`",
    )
    SPARSE: ClassVar = sparse_points(STAGE, "rows-block-N", "work order")
    ARRAYS: ClassVar = (INPUT_ROWS, CELL_OFFSETS, STRETCH_OFFSETS, STRETCH_CELLS, POINTS, *SPARSE.all, SKETCH)

    @property
    def input_rows(self) -> ArrayReader:
        """The input row (N,) int64 of each work row."""
        return self.reader(self.INPUT_ROWS)

    @property
    def sorted_by_cell(self) -> bool:
        """Whether all work rows are sorted by cell: no appended points have come behind the others."""
        return not self.group.holds(self.STRETCH_OFFSETS.name)

    @property
    def stretches(self) -> Stretches:
        """The stretches of work rows of one cell: the cells, where all rows are sorted by these."""
        if self.sorted_by_cell:
            return stretches_of_sorted(self.reader(self.CELL_OFFSETS).read())
        return Stretches(self.reader(self.STRETCH_OFFSETS).read(), self.reader(self.STRETCH_CELLS).read())

    @property
    def sketch(self) -> ArrayReader:
        """Sketches (N, s) float32 in work order."""
        return self.reader(self.SKETCH)
