"""Embeddings that are Z times coordinates of the landmarks, which new points share."""

from typing import ClassVar

from scalemani.records.embeddings import described_embedding
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription


def described_eigenvalues(stage: str, meaning: str) -> ArrayDescription:
    """Return the description of the eigenvalues (d,) of an embedding."""
    return ArrayDescription(stage, "eigenvalues", "whole", ("component",), "float64", "1", meaning)


class StoredLandmarkScores(StoredStage):
    """What all of them store: the embedding, its eigenvalues, and the coordinates of the landmarks."""

    EMBEDDING: ClassVar[ArrayDescription]
    EIGENVALUES: ClassVar[ArrayDescription]
    VECTORS: ClassVar[ArrayDescription]
    SOLVED: ClassVar = "solution"

    @property
    def embedding(self) -> ArrayReader:
        """The embedding (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The eigenvalue (d,) float64 of each component."""
        return self.reader(self.EIGENVALUES)

    @property
    def vectors(self) -> ArrayReader:
        """The coordinates (L, d) float64 of the landmarks."""
        return self.reader(self.VECTORS)


class StoredPrincipalComponents(StoredLandmarkScores):
    """Principal components of points that are combinations of landmarks."""

    STAGE: ClassVar = "principal_components"
    EMBEDDING: ClassVar = described_embedding(STAGE, "Z times `vectors`, rows in input order")
    EIGENVALUES: ClassVar = described_eigenvalues(STAGE, "the variance along each component, descending")
    VECTORS: ClassVar = ArrayDescription(
        STAGE, "vectors", "whole", ("landmark", "component"), "float64", "as given", "the scores of the landmarks"
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, VECTORS)


class StoredKernelComponents(StoredLandmarkScores):
    """Kernel principal components of points that are combinations of landmarks."""

    STAGE: ClassVar = "kernel_components"
    EMBEDDING: ClassVar = described_embedding(STAGE, "Z times `vectors`, rows in input order")
    EIGENVALUES: ClassVar = described_eigenvalues(STAGE, "the leading eigenvalues of the centred kernel, descending")
    VECTORS: ClassVar = ArrayDescription(
        STAGE, "vectors", "whole", ("landmark", "component"), "float64", "1", "the scores of the landmarks"
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, VECTORS)


class StoredLocalReconstruction(StoredLandmarkScores):
    """The locally linear embedding of points that are combinations of landmarks."""

    STAGE: ClassVar = "local_reconstruction"
    EMBEDDING: ClassVar = described_embedding(STAGE, "Z times `vectors`, rows in input order")
    EIGENVALUES: ClassVar = described_eigenvalues(
        STAGE, "the sum of the squares that neighbours leave of each coordinate, whose squares sum to one; ascending"
    )
    VECTORS: ClassVar = ArrayDescription(
        STAGE, "vectors", "whole", ("landmark", "component"), "float64", "1", "the coordinates of the landmarks"
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, VECTORS)


class StoredIsomap(StoredLandmarkScores):
    """Landmark Isomap: coordinates of landmarks by their distances along the graph, and of points by the landmarks."""

    STAGE: ClassVar = "isomap"
    EMBEDDING: ClassVar = described_embedding(
        STAGE, "points triangulated by their distances to the landmarks along the graph, rows in input order"
    )
    EIGENVALUES: ClassVar = described_eigenvalues(
        STAGE, "the leading eigenvalues of the centred squares of the landmarks' distances, halved, descending"
    )
    VECTORS: ClassVar = ArrayDescription(
        STAGE, "vectors", "whole", ("landmark", "component"), "float64", "as given", "the coordinates of the landmarks"
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES, VECTORS)


# Whose new points are their weights over the landmarks times `vectors`.
LANDMARK_SCORES = (StoredPrincipalComponents, StoredKernelComponents, StoredLocalReconstruction)
