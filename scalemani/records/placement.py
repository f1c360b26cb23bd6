"""New points on their way into a file: blocks of their coordinates and of what is known of them, until all are done."""

from typing import ClassVar

from scalemani.records.embeddings import described_embedding
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription


def described_quality(name: str, dtype: str, units: str, meaning: str) -> ArrayDescription:
    """Return the description of what is known of each new point: (n,)."""
    return ArrayDescription("placement", name, "rows", ("point",), dtype, units, meaning)


class StoredPlacement(StoredStage):
    """New points placed in the embedding of a run: no stage of the run, and gone once the result is written."""

    STAGE: ClassVar = "placement"
    COORDINATES: ClassVar = described_embedding(STAGE, "coordinates of the new points")
    FAR: ClassVar = described_quality("far", "uint8", "1", "1 where a point lies beyond the reach of the run, else 0")
    NEAREST: ClassVar = described_quality(
        "nearest", "float64", "as given", "the distance of the nearest landmark or training point, at most 1e300"
    )
    ERRORS: ClassVar = described_quality(
        "errors", "float64", "1", "reconstruction error, relative to the distance of the nearest landmark"
    )
    DESCENDED: ClassVar = described_quality("descended", "uint8", "1", "0 where it equals a training point, else 1")
    ARRIVED: ClassVar = described_quality("arrived", "uint8", "1", "1 where the descent of a point came to its end")
    FALLS: ClassVar = described_quality("falls", "float64", "1", "by how much the objective of a point fell")
    BY_LANDMARKS: ClassVar = (COORDINATES, FAR, NEAREST, ERRORS)
    BY_AFFINITIES: ClassVar = (COORDINATES, FAR, NEAREST)
    BY_AXES: ClassVar = (COORDINATES, FAR)
    BY_DESCENT: ClassVar = (COORDINATES, FAR, NEAREST, DESCENDED, ARRIVED, FALLS)
    ARRAYS: ClassVar = (COORDINATES, NEAREST, ERRORS, DESCENDED, ARRIVED, FALLS, FAR)

    @property
    def coordinates(self) -> ArrayReader:
        """Coordinates (n, d) float64 of the new points."""
        return self.reader(self.COORDINATES)
