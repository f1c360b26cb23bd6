"""Points in input order, the cells they lie in, and points in work order: sorted by cell."""

from collections.abc import Mapping
from typing import ClassVar

from scalemani.kernels.rows.sketches import SketchBasis
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.groups import StageGroup
from scalemani.store.schema import AS_POINTS, ArrayDescription


class StoredPoints(StoredStage):
    """Points as they came."""

    STAGE: ClassVar = "points"
    POINTS: ClassVar = ArrayDescription(
        STAGE,
        "points",
        "rows",
        ("point", "feature"),
        AS_POINTS,
        "as given",
        "points in input order, as the metric of the run maps them; neighbours and distances where these were given",
    )
    ARRAYS: ClassVar = (POINTS,)

    @property
    def points(self) -> ArrayReader:
        """Points (N, D) in input order."""
        return self.reader(self.POINTS)


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


class StoredWorkPoints(StoredStage):
    """Points and sketches in work order, and the way back to input order."""

    STAGE: ClassVar = "work_points"
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
    ARRAYS: ClassVar = (INPUT_ROWS, CELL_OFFSETS, POINTS, SKETCH)

    @property
    def input_rows(self) -> ArrayReader:
        """The input row (N,) int64 of each work row."""
        return self.reader(self.INPUT_ROWS)

    @property
    def cell_offsets(self) -> ArrayReader:
        """The first work row of each cell, then N: (C + 1,) int64."""
        return self.reader(self.CELL_OFFSETS)

    @property
    def points(self) -> ArrayReader:
        """Points (N, D) in work order."""
        return self.reader(self.POINTS)

    @property
    def sketch(self) -> ArrayReader:
        """Sketches (N, s) float32 in work order."""
        return self.reader(self.SKETCH)


class StoredWeights(StoredStage):
    """How many equal points each point stands for, in work order; computed where points have weights."""

    STAGE: ClassVar = "weights"
    WEIGHTS: ClassVar = ArrayDescription(
        STAGE, "weights", "rows", ("point",), "float64", "1", "the weight of each point, at least one"
    )
    ARRAYS: ClassVar = (WEIGHTS,)

    @property
    def weights(self) -> ArrayReader:
        """The weight (N,) float64 of each point, in work order."""
        return self.reader(self.WEIGHTS)


def stored_weights(inputs: Mapping[str, StageGroup]) -> ArrayReader | None:
    """Return the weights (N,) float64 of the points in work order, from a stage's inputs; None where all are one."""
    return StoredWeights(inputs[StoredWeights.STAGE]).weights if StoredWeights.STAGE in inputs else None
