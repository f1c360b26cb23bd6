"""Embeddings of all points and of new ones, and clusters: rows in the order that was given."""

from typing import ClassVar

from scalemani.engine.reading import ArrayReader, Rows, StoredStage, Whole, WholeInFolders

SNAPSHOTS = "snapshots-"  # what the names of their units begin with


def embedding_rows(meaning: str) -> Rows:
    """Declare an embedding (N, d), which several stages store."""
    return Rows("point component", "float64", meaning, name="embedding")


def component_values(meaning: str) -> Whole:
    """Declare the eigenvalues (d,) of an embedding."""
    return Whole("component", "float64", meaning, name="eigenvalues")


class StoredEmbedding(StoredStage, stage="embedding"):
    """The spectral embedding."""

    embedding = embedding_rows("eigenvectors of L v = lambda D v, rows in input order")
    eigenvalues = component_values("the eigenvalue of each column, ascending, the trivial one left out")


class StoredDiffusionCoordinates(StoredStage, stage="diffusion_coordinates"):
    """The coordinates of diffusion maps."""

    embedding = embedding_rows("the columns of `embedding`, each times |1 - eigenvalue|^time")


class StoredClustering(StoredStage, stage="clustering"):
    """Clusters of the spectral embedding: k-means on its rows at unit length."""

    centers = Whole("cluster component", "float64", "the centres of the clusters")
    pass_centers = Whole(
        "cluster component", "float64", "the centres before pass N over all points, from 000 on", name="pass_N"
    )
    passes = Whole("", "int64", "the number of these passes")
    moved = Whole("", "float64", "the largest movement of a centre's coordinate in the last one")
    labels = Rows("point", "int32", "the cluster of each point, rows in input order", "cluster")
    CENTERS_UNIT: ClassVar = "centers"

    def centers_before(self, number: int) -> ArrayReader:
        """Return the centres (K, d) float64 before a pass over all points."""
        return self.reader(StoredClustering.pass_centers.numbered(number))


class StoredLayout(StoredStage, stage="layout"):
    """The nonlinear embedding, and how its descent went."""

    embedding = embedding_rows("positions at the end of the descent, rows in input order")
    snapshots = WholeInFolders(
        "point component",
        "float64",
        "positions after N iterations, rows in input order; stored where layout.snapshots asks for them",
        folders=("snapshots/N",),
        name="embedding",
    )
    curve = Whole(
        "evaluation quantity",
        "float64",
        "iteration, objective and norm of its gradient, where the objective was computed",
    )

    @staticmethod
    def snapshot_folder(iteration: int) -> str:
        """Return the folder of the snapshot after some iterations."""
        return f"snapshots/{iteration:06d}"

    @staticmethod
    def snapshot_unit(iteration: int) -> str:
        """Return the unit of the snapshot after some iterations."""
        return f"{SNAPSHOTS}{iteration:06d}"

    @property
    def snapshot_iterations(self) -> list[int]:
        """The iterations after which positions were kept, ascending."""
        return sorted(int(unit.removeprefix(SNAPSHOTS)) for unit in self.group.units if unit.startswith(SNAPSHOTS))

    def snapshot(self, iteration: int) -> ArrayReader:
        """Return the positions (N, d) float64 after some iterations, rows in input order."""
        return self.snapshots(self.snapshot_folder(iteration))


class StoredReduction(StoredStage):
    """An embedding of all points by the solution of a small eigenproblem, which a method has a stage of its own for."""

    embedding: ClassVar[Rows]
    eigenvalues: ClassVar[Whole]
    SOLVED: ClassVar = "solution"


class StoredLandmarkScores(StoredReduction):
    """An embedding that is Z times the coordinates of the landmarks, as that of new points is."""

    embedding = embedding_rows("Z times `vectors`, rows in input order")
    vectors: ClassVar[Whole]


class StoredPlacement(StoredStage, stage="placement"):
    """New points placed in the embedding of a run: no stage of the run, and gone once the result is written."""

    coordinates = embedding_rows("coordinates of the new points")
    nearest = Rows(
        "point", "float64", "the distance of the nearest landmark or training point, at most 1e300", "as given"
    )
    errors = Rows("point", "float64", "reconstruction error, relative to the distance of the nearest landmark")
    descended = Rows("point", "uint8", "0 where it equals a training point, else 1")
    arrived = Rows("point", "uint8", "1 where the descent of a point came to its end")
    falls = Rows("point", "float64", "by how much the objective of a point fell")
    far = Rows("point", "uint8", "1 where a point lies beyond the reach of the run, else 0")
