"""Points in input order, the cells they lie in, points in work order, sorted by cell, and what accompanies them.

Digests of tiles of rows show whether points are what the survey of a run saw.

Groups of sparse points hold CSR parts, a set for every block, and the number of features; `points` reads either kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.reading import ArrayReader, Rows, SketchesOfRows, SparseRowsReader, StoredStage, Whole
from scalemani.errors import DataError
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.neighbors.cells import CellRanges, cell_ranges_of_sorted
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.sketches import SketchBasis
from scalemani.store.groups import StageGroup
from scalemani.store.invariants import Invariant
from scalemani.store.invariants.matrices import bounds, columns_ascend
from scalemani.store.invariants.models import CELLS, NEAREST_CELL, POWER_OF_TWO, SKETCHES
from scalemani.store.invariants.orders import (
    IN_THEIR_CELLS,
    SAME_NONZEROS,
    SAME_POINTS,
    counts_of,
    each_once_at_least,
)
from scalemani.store.invariants.spectral import ORTHONORMAL_COLUMNS
from scalemani.store.invariants.values import (
    CLASSES,
    FINITE,
    PERMUTATION,
    POINTS,
    POSITIVE,
    TO_ALL_POINTS,
    between,
    in_count,
    number_in,
)
from scalemani.store.objects import digest
from scalemani.store.schema import AS_COLUMNS, AS_POINTS, ArrayDescription, DtypeRule

ANY_POINTS = "points are any numbers; their digest is the key"
FEATURES = "features"  # the name of the unit that sparse points have and dense ones have not


class SparseDescription(NamedTuple):
    """The arrays of sparse points: CSR parts of every block, and the number of features."""

    indptr: ArrayDescription
    indices: ArrayDescription
    values: ArrayDescription
    n_features: ArrayDescription

    def parts(self, rows: sp.csr_matrix) -> dict[ArrayDescription, np.ndarray]:
        """Return the rows of a block as they are stored."""
        return dict(zip(self[:3], stored_parts(rows), strict=True))

    def features(self, n_features: int) -> dict[ArrayDescription, np.ndarray]:
        """Return the number of features as it is stored, in the unit `FEATURES`."""
        return {self.n_features: np.array(n_features)}


def stored_parts(rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where rows (n, D) begin and end, the columns of their nonzeros, and these, in the dtypes of a store."""
    columns = np.uint16 if rows.shape[1] <= 2**16 else np.int32
    return rows.indptr.astype(np.int64), rows.indices.astype(columns), rows.data


def sparse_points(stage: str, folder: str, order: str) -> SparseDescription:
    """Return the description of sparse points in some order, the parts of each block in a folder."""

    def part(
        name: str, dim: str, dtype: str | DtypeRule, units: str, says: str, *invariants: Invariant
    ) -> ArrayDescription:
        meaning = f"of sparse points in {order}: {says}"
        return ArrayDescription(stage, name, "part", (dim,), dtype, units, meaning, (folder,), invariants)

    of_input = order == "input order"
    begins = "where each row of the block begins and ends among its nonzeros"
    columns = (in_count(number_in("the number of features", stage, "n_features")), columns_ascend("indptr"))

    return SparseDescription(
        part("indptr", "row_bound", "int64", "nonzero", begins, bounds("indices", "values")),
        part(
            "indices", "nonzero", AS_COLUMNS, "feature", "the column of each nonzero, ascending in each row", *columns
        ),
        replace(
            part("values", "nonzero", AS_POINTS, "as given", "the nonzeros, as the metric of the run maps them"),
            invariants=(FINITE,) if of_input else (SAME_NONZEROS,),
            no_invariant=ANY_POINTS if of_input else "",
        ),
        ArrayDescription(
            stage,
            "n_features",
            "whole",
            (),
            "int64",
            "1",
            "of sparse points: D; where it is missing they are dense",
            invariants=(between(1),),
        ),
    )


class StoredRows(StoredStage):
    """A group with a row a point, dense or sparse."""

    dense_points: ClassVar[Rows]
    SPARSE: ClassVar[SparseDescription]
    ROWS_STEP: ClassVar[str] = ""

    @property
    def points(self) -> ArrayReader | SparseRowsReader:
        """Points (N, D), read as NumPy arrays where they are dense and as SciPy's sparse rows where they are sparse."""
        if not self.group.committed(FEATURES):
            return self.dense_points
        n_features = self.reader(self.SPARSE.n_features).read_once()
        return SparseRowsReader(self.group, int(n_features), self.ROWS_STEP)


class StoredPoints(StoredRows, stage="points"):
    """Points as they came, in input order."""

    dense_points = Rows(
        "point feature",
        AS_POINTS,
        "points in input order, as the metric of the run maps them; neighbours and distances, or affinities as sparse "
        "rows, where these were given",
        "as given",
        name="points",
    ).of_any_numbers(ANY_POINTS)
    SPARSE: ClassVar = sparse_points("points", "block-N", "input order")


def points_in_order(inputs: Mapping[str, StageGroup]) -> StoredRows:
    """Return the points of a stage in the order that it works in: that of cells where its route has them."""
    if StoredWorkPoints.STAGE in inputs:
        return StoredWorkPoints(inputs[StoredWorkPoints.STAGE])
    return StoredPoints(inputs[StoredPoints.STAGE])


class StoredPartition(StoredStage, stage="partition"):
    """The principal axes of the points, cells in their span, and the cell of each point."""

    mean = Whole("feature", "float64", "mean of a sample of the points", "as given").of_any_numbers(
        "a model of a sample; sketches are checked against it"
    )
    axes = Whole(
        "feature axis",
        "float32",
        "leading principal directions of that sample, orthonormal columns of descending variance",
    ).with_invariants(ORTHONORMAL_COLUMNS)
    scale = Whole(
        "",
        "float64",
        "unit of length of sketches, a power of two: a point's sketch is (point - mean) @ axes / scale",
        "as given",
    ).with_invariants(POSITIVE, POWER_OF_TWO)
    centroids = Whole("cell axis", "float32", "centres of the cells, as sketches", "scale").of_any_numbers(
        "a model of a sample; cells are checked against it"
    )
    cells = Rows("point", "int32", "the cell nearest to each point, in input order", "cell").with_invariants(
        in_count(CELLS), NEAREST_CELL
    )

    @property
    def basis(self) -> SketchBasis:
        """The axes of the sketches, shared in this process."""
        mean, axes, scale = (array.read_once() for array in (self.mean, self.axes, self.scale))
        return SketchBasis(mean, axes, float(scale))


class StoredWorkPoints(StoredRows, stage="work_points"):
    """Points and sketches in work order, and the way back to input order."""

    ROWS_STEP: ClassVar = "rows"
    input_rows = Whole("point", "int64", "the input row of each work row", "input row").with_invariants(
        PERMUTATION, IN_THEIR_CELLS
    )
    cell_offsets = Whole(
        "cell_bound",
        "int64",
        "the first work row of each cell, and behind the last one the number of points",
        "work row",
    ).with_invariants(TO_ALL_POINTS)
    stretch_offsets = Whole(
        "stretch_bound",
        "int64",
        "in the place of `cell_offsets` where appended points come behind the others, sorted by cell among themselves: "
        "the first row of each stretch of work rows of one cell, and behind the last one the number of points",
        "work row",
    ).with_invariants(TO_ALL_POINTS)
    stretch_cells = Whole("stretch", "int32", "the cell of each of these stretches", "cell").with_invariants(
        in_count(CELLS)
    )
    dense_points = Rows(
        "point feature", AS_POINTS, "the same points in work order", "as given", name="points"
    ).with_invariants(SAME_POINTS)
    SPARSE: ClassVar = sparse_points("work_points", "rows-block-N", "work order")
    sketch = Rows(
        "point axis",
        "float32",
        "their leading principal components, in units of `partition/scale`; made of `points` where these take less",
        "scale",
    ).with_invariants(SKETCHES)

    @property
    def sorted_by_cell(self) -> bool:
        """Whether all work rows are sorted by cell: no appended points have come behind the others."""
        return not self.group.holds(self.stretch_offsets.path)

    @property
    def cell_ranges(self) -> CellRanges:
        """The ranges of work rows of one cell: the cells, where all rows are sorted by these."""
        if self.sorted_by_cell:
            return cell_ranges_of_sorted(self.cell_offsets.read())
        return CellRanges(self.stretch_offsets.read(), self.stretch_cells.read())


Sketches = ArrayReader | SketchesOfRows


def sketches_of(stored: StoredWorkPoints, basis: SketchBasis) -> Sketches:
    """Return what reads the sketches (N, s) float32 of all points in work order, which makes those that are not stored.

    Parameters
    ----------
    basis : that of `partition`
    """
    if stored.group.holds(stored.sketch.path):
        return stored.sketch
    points = stored.dense_points
    return SketchesOfRows(points.read_rows, points.zarr().shape[0], basis, stored.group.block_rows)


class StoredWeights(StoredStage, stage="weights"):
    """How many equal points each point stands for, in work order; computed where points have weights."""

    weights = Rows("point", "float64", "the weight of each point, at least one").with_invariants(between(1))


def stored_weights(inputs: Mapping[str, StageGroup]) -> ArrayReader | None:
    """Return the weights (N,) float64 of the points in work order, from a stage's inputs; None where all are one."""
    return StoredWeights(inputs[StoredWeights.STAGE]).weights if StoredWeights.STAGE in inputs else None


class StoredDuplicates(StoredStage, stage="duplicates"):
    """Which of the distinct points each input row is; computed where equal rows are one, or rows with gaps left out."""

    points = Whole(
        "given_row",
        "int64",
        "the row in `points` of the point that each row given is; -1 where that has a gap, or is in a component that "
        "was left out",
        "input row",
    ).with_invariants(in_count(POINTS, least=-1), each_once_at_least(POINTS, -1))


class StoredClasses(StoredStage, stage="classes"):
    """The class of each point, by its place among the sorted labels, in work order."""

    codes = Rows(
        "point", "int32", "the class of each point, by the order of the labels, -1 of those without one", "class"
    ).with_invariants(in_count(CLASSES, least=-1))
    counts = Whole("class", "int64", "the number of points of each class").with_invariants(
        counts_of("codes", "classes")
    )


UNREAD = ""  # the digest of a tile that was surveyed for an earlier run, whose store shows any change


def tile_digests(rows: Points) -> list[str]:
    """Return the digest of every tile of rows, for any blocks they are read in."""
    if not sp.issparse(rows):
        rows = np.ascontiguousarray(rows)
        return [digest(rows[start : start + TILE_ROWS].data) for start in range(0, len(rows), TILE_ROWS)]
    tiles = (rows[start : start + TILE_ROWS] for start in range(0, rows.shape[0], TILE_ROWS))
    return [digest(b"".join(part.tobytes() for part in stored_parts(tile))) for tile in tiles]


def check_unchanged(rows: Points, start: int, digests: Sequence[str]) -> Points:
    """Return rows read a second time, if they are what the survey saw where it has read them."""
    tile = start // TILE_ROWS
    if digests[tile] == UNREAD:
        return rows
    read = tile_digests(rows)
    if read != list(digests[tile : tile + len(read)]):
        raise DataError(
            f"rows from {start} on changed while they were read: run again when nothing writes to the points"
        )
    return rows
