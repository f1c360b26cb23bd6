"""Which rows that were given are one point."""

from typing import ClassVar

from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription


class StoredDuplicates(StoredStage):
    """Which of the distinct points each row that was given is; computed where equal rows are one point."""

    STAGE: ClassVar = "duplicates"
    POINTS: ClassVar = ArrayDescription(
        STAGE,
        "points",
        "whole",
        ("given_row",),
        "int64",
        "input row",
        "the row in `points` of the point that each row given is; -1 where that is in a component that was left out",
    )
    ARRAYS: ClassVar = (POINTS,)

    @property
    def points(self) -> ArrayReader:
        """The row (n,) int64 in input order of the point that each row given is, -1 for one that was left out."""
        return self.reader(self.POINTS)
