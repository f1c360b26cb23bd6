"""Classes of the points, and the discriminants of these."""

from typing import ClassVar

from scalemani.records.embeddings import described_embedding
from scalemani.records.landmark_scores import described_eigenvalues
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription


class StoredClasses(StoredStage):
    """The class of each point, by its place among the sorted labels, in work order."""

    STAGE: ClassVar = "classes"
    CODES: ClassVar = ArrayDescription(
        STAGE,
        "codes",
        "rows",
        ("point",),
        "int32",
        "class",
        "the class of each point, by the order of the labels, -1 of those without one",
    )
    COUNTS: ClassVar = ArrayDescription(
        STAGE, "counts", "whole", ("class",), "int64", "1", "the number of points of each class"
    )
    ARRAYS: ClassVar = (CODES, COUNTS)

    @property
    def codes(self) -> ArrayReader:
        """The class (N,) int32 of each point, in work order."""
        return self.reader(self.CODES)

    @property
    def counts(self) -> ArrayReader:
        """The points (C,) int64 of each class."""
        return self.reader(self.COUNTS)


class StoredKernelDiscriminants(StoredStage):
    """Kernel discriminants of classes, in the span of the kernel's columns that landmarks combine."""

    STAGE: ClassVar = "kernel_discriminants"
    EMBEDDING: ClassVar = described_embedding(STAGE, "[K Z, K 1] times `directions` less `mean`, rows in input order")
    EIGENVALUES: ClassVar = described_eigenvalues(
        STAGE, "the share of the regularised scatter of each component that lies between classes, descending"
    )
    DIRECTIONS: ClassVar = ArrayDescription(
        STAGE, "directions", "whole", ("landmark_bound", "component"), "float64", "1", "what rows of [K Z, K 1] take"
    )
    MEAN: ClassVar = ArrayDescription(
        STAGE, "mean", "whole", ("component",), "float64", "1", "the mean of the coordinates before it is taken off"
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, DIRECTIONS, MEAN)
    SOLVED: ClassVar = "solution"

    @property
    def embedding(self) -> ArrayReader:
        """The coordinates (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The share (d,) float64 of each component's scatter between classes."""
        return self.reader(self.EIGENVALUES)

    @property
    def directions(self) -> ArrayReader:
        """What rows of [K Z, K 1] are multiplied by: (L + 1, d) float64."""
        return self.reader(self.DIRECTIONS)

    @property
    def mean(self) -> ArrayReader:
        """The mean (d,) float64 that is taken off."""
        return self.reader(self.MEAN)


class StoredDiscriminants(StoredStage):
    """Linear discriminants of classes, in the span of the landmarks' moments."""

    STAGE: ClassVar = "discriminants"
    EMBEDDING: ClassVar = described_embedding(STAGE, "(points - mean) @ axes, rows in input order")
    EIGENVALUES: ClassVar = described_eigenvalues(
        STAGE, "the share of the scatter of each component that lies between classes, descending"
    )
    MEAN: ClassVar = ArrayDescription(STAGE, "mean", "whole", ("feature",), "float64", "as given", "the points' mean")
    AXES: ClassVar = ArrayDescription(
        STAGE, "axes", "whole", ("feature", "component"), "float64", "1 / as given", "the directions"
    )
    SPAN: ClassVar = ArrayDescription(
        STAGE,
        "span",
        "whole",
        ("feature", "direction"),
        "float64",
        "1",
        "orthonormal axes of what directions are found in",
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, MEAN, AXES, SPAN)
    SOLVED: ClassVar = "solution"

    @property
    def embedding(self) -> ArrayReader:
        """The coordinates (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The share (d,) float64 of each component's scatter between classes."""
        return self.reader(self.EIGENVALUES)

    @property
    def mean(self) -> ArrayReader:
        """The mean (D,) float64 of the points."""
        return self.reader(self.MEAN)

    @property
    def span(self) -> ArrayReader:
        """Orthonormal axes (D, r) float64 of what directions are found in."""
        return self.reader(self.SPAN)

    @property
    def axes(self) -> ArrayReader:
        """The directions (D, d) float64."""
        return self.reader(self.AXES)
