"""What users ask for: embeddings and clusters, in input order."""

from typing import ClassVar

from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import ArrayDescription

SNAPSHOTS = "snapshots-"  # what the names of their units begin with


def described_embedding(stage: str, meaning: str) -> ArrayDescription:
    """Return the description of an embedding (N, d), which several stages store."""
    return ArrayDescription(stage, "embedding", "rows", ("point", "component"), "float64", "1", meaning)


class StoredEmbedding(StoredStage):
    """The spectral embedding."""

    STAGE: ClassVar = "embedding"
    EMBEDDING: ClassVar = described_embedding(STAGE, "eigenvectors of L v = lambda D v, rows in input order")
    EIGENVALUES: ClassVar = ArrayDescription(
        STAGE,
        "eigenvalues",
        "whole",
        ("component",),
        "float64",
        "1",
        "the eigenvalue of each column, ascending, the trivial one left out",
    )
    ARRAYS: ClassVar = (EMBEDDING, EIGENVALUES)

    @property
    def embedding(self) -> ArrayReader:
        """The embedding (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)

    @property
    def eigenvalues(self) -> ArrayReader:
        """The eigenvalue (d,) float64 of each column."""
        return self.reader(self.EIGENVALUES)


class StoredDiffusionCoordinates(StoredStage):
    """The coordinates of diffusion maps."""

    STAGE: ClassVar = "diffusion_coordinates"
    EMBEDDING: ClassVar = described_embedding(STAGE, "the columns of `embedding`, each times |1 - eigenvalue|^time")
    ARRAYS: ClassVar = (EMBEDDING,)

    @property
    def embedding(self) -> ArrayReader:
        """The coordinates (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)


class StoredClustering(StoredStage):
    """Clusters of the spectral embedding: k-means on its rows at unit length."""

    STAGE: ClassVar = "clustering"
    CENTERS: ClassVar = ArrayDescription(
        STAGE, "centers", "whole", ("cluster", "component"), "float64", "1", "the centres of the clusters"
    )
    PASS_CENTERS: ClassVar = ArrayDescription(
        STAGE,
        "pass_N",
        "whole",
        ("cluster", "component"),
        "float64",
        "1",
        "the centres before pass N over all points, from 000 on",
    )
    PASSES: ClassVar = ArrayDescription(STAGE, "passes", "whole", (), "int64", "1", "the number of these passes")
    MOVED: ClassVar = ArrayDescription(
        STAGE, "moved", "whole", (), "float64", "1", "the largest movement of a centre's coordinate in the last one"
    )
    LABELS: ClassVar = ArrayDescription(
        STAGE, "labels", "rows", ("point",), "int32", "cluster", "the cluster of each point, rows in input order"
    )
    ARRAYS: ClassVar = (CENTERS, PASS_CENTERS, PASSES, MOVED, LABELS)
    CENTERS_UNIT: ClassVar = "centers"

    @property
    def centers(self) -> ArrayReader:
        """The centres (K, d) float64 of the clusters."""
        return self.reader(self.CENTERS)

    def centers_before(self, number: int) -> ArrayReader:
        """Return the centres (K, d) float64 before a pass over all points."""
        return self.reader(self.PASS_CENTERS.numbered(number))

    @property
    def passes(self) -> ArrayReader:
        """The number of passes () int64 over all points."""
        return self.reader(self.PASSES)

    @property
    def moved(self) -> ArrayReader:
        """How far () float64 the centres moved in the last pass."""
        return self.reader(self.MOVED)

    @property
    def labels(self) -> ArrayReader:
        """The cluster (N,) int32 of each point."""
        return self.reader(self.LABELS)


class StoredLayout(StoredStage):
    """The nonlinear embedding, and how its descent went."""

    STAGE: ClassVar = "layout"
    EMBEDDING: ClassVar = described_embedding(STAGE, "positions at the end of the descent, rows in input order")
    SNAPSHOT: ClassVar = ArrayDescription(
        STAGE,
        "embedding",
        "whole",
        ("point", "component"),
        "float64",
        "1",
        "positions after N iterations, rows in input order; stored where layout.snapshots asks for them",
        ("snapshots/N",),
    )
    CURVE: ClassVar = ArrayDescription(
        STAGE,
        "curve",
        "whole",
        ("evaluation", "quantity"),
        "float64",
        "1",
        "iteration, objective and norm of its gradient, where the objective was computed",
    )
    ARRAYS: ClassVar = (EMBEDDING, SNAPSHOT, CURVE)

    @staticmethod
    def snapshot_folder(iteration: int) -> str:
        """Return the folder of the snapshot after some iterations."""
        return f"snapshots/{iteration:06d}"

    @staticmethod
    def snapshot_unit(iteration: int) -> str:
        """Return the unit of the snapshot after some iterations."""
        return f"{SNAPSHOTS}{iteration:06d}"

    @property
    def embedding(self) -> ArrayReader:
        """The embedding (N, d) float64, rows in input order."""
        return self.reader(self.EMBEDDING)

    @property
    def snapshot_iterations(self) -> list[int]:
        """The iterations after which positions were kept, ascending."""
        return sorted(int(unit.removeprefix(SNAPSHOTS)) for unit in self.group.units if unit.startswith(SNAPSHOTS))

    def snapshot(self, iteration: int) -> ArrayReader:
        """Return the positions (N, d) float64 after some iterations, rows in input order."""
        return self.reader(self.SNAPSHOT, self.snapshot_folder(iteration))

    @property
    def curve(self) -> ArrayReader:
        """Iterations, objectives and gradient norms (n, 3) float64."""
        return self.reader(self.CURVE)
