"""Affinities of the edges of the neighbour graph, and its components."""

from typing import ClassVar

from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription


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
        "the affinity of each edge of `neighbors`; with entropic affinities, those of a point sum to one; of points "
        "with weights, that of one copy to one copy, and those to all copies sum to one",
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
    TWINS: ClassVar = ArrayDescription(
        STAGE,
        "twins",
        "rows",
        ("point",),
        "float64",
        "1",
        "the affinity of a copy of each point to each of its others; stored for points with weights",
    )
    ENTROPIC: ClassVar = (BETA, ITERATIONS, SATURATED, DUPLICATED, RESIDUALS)  # stored for entropic affinities alone
    ARRAYS: ClassVar = (VALUES, *ENTROPIC, TWINS, SIGMA)
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
    def twins(self) -> ArrayReader:
        """The affinity (N,) float64 of a copy of each point to each of its others, where points have weights."""
        return self.reader(self.TWINS)

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
    def labels(self) -> ArrayReader:
        """The component (N,) int32 of each work row."""
        return self.reader(self.LABELS)

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
