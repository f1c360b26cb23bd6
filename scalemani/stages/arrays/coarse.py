"""Coarse graphs of W, level by level, and eigenvectors of the first of them."""

from typing import ClassVar

import numpy as np

from scalemani.engine.reading import StoredStage, Whole, WholeInFolders
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.spectral.coarsening import Level
from scalemani.store.objects import damaged_object
from scalemani.store.schema import ArrayDescription

LEVEL_FOLDERS = ("level_N",)


def level_folder(number: int) -> str:
    """Return the folder of the arrays of a coarse graph; the first is number 1."""
    return f"level_{number}"


class StoredCoarseGraphs(StoredStage, stage="coarse_graphs"):
    """The hierarchy of coarse graphs: aggregates of points, aggregates of these, and so on."""

    labels = Whole("point", "int32", "the node of the first coarse graph of each work row", "node")
    indptr = WholeInFolders(
        "node_bound",
        "int64",
        "where each row of the level's graph begins and ends among its nonzeros",
        "nonzero",
        folders=LEVEL_FOLDERS,
    )
    indices = WholeInFolders("nonzero", "int32", "the column of each nonzero", "node", folders=LEVEL_FOLDERS)
    values = WholeInFolders(
        "nonzero", "float32", "sums of the affinities between the members of two nodes", folders=LEVEL_FOLDERS
    )
    degrees = WholeInFolders("node", "float64", "the sum of each row", folders=LEVEL_FOLDERS)
    node_labels = WholeInFolders(
        "joined_node",
        "int32",
        "the node of the next level of each node; empty on the last level",
        "node",
        folders=LEVEL_FOLDERS,
        name="labels",
    )
    levels = Whole("", "int64", "the number of levels; where it is missing, the certificate `levels` says it", "level")
    MADE_OF: ClassVar = "made_of"  # a certificate: how many points there were when graphs were made that were kept
    NODES: ClassVar = "nodes"  # certificates: of each graph, the finest first
    NONZEROS: ClassVar = "nonzeros"

    @classmethod
    def level_arrays(cls, level: Level) -> dict[ArrayDescription, np.ndarray]:
        """Return a coarse graph as it is stored."""
        described = (cls.indptr, cls.indices, cls.values, cls.degrees, cls.node_labels)
        return dict(zip(described, (*level.rows, level.degrees, level.labels), strict=True))

    def points_when_made(self, n_points: int) -> int:
        """Return how many of the `n_points` there were when the graphs were made; the others have joined them."""
        kept = self.MADE_OF in self.group.record["certificates"]
        return self.group.certificate(self.MADE_OF, int) if kept else n_points

    @property
    def graph_sizes(self) -> tuple[tuple[int, int], ...] | None:
        """The nodes and nonzeros of each graph, the finest first; None of a run that an older version wrote.

        Raises CorruptChunkError where the record does not say them as it should.
        """
        if self.NONZEROS not in self.group.record["certificates"]:
            return None
        nodes, nonzeros = (self.group.certificate(name, list) for name in (self.NODES, self.NONZEROS))
        if (
            not nodes
            or len(nodes) != len(nonzeros)
            or not all(type(one) is int and one > 0 for one in nodes + nonzeros)
        ):
            where = f"{self.group.objects.root}/complete.json"
            raise damaged_object(where, f"coarse graphs have {nodes!r} nodes and {nonzeros!r} nonzeros")
        return tuple(zip(nodes, nonzeros, strict=True))

    def read_degrees(self) -> np.ndarray:
        """Return the degrees (n,) float64 of the first coarse graph."""
        return self.degrees(level_folder(1)).read()

    def read_levels(self, empty: Empty = np.empty, first: int = 1) -> list[Level]:
        """Return the coarse graphs from the `first` on, the finest first, in arrays made by `empty`."""
        levels = []
        for number in range(first, self.read_count(self.levels, "levels") + 1):
            arrays = (self.indptr, self.indices, self.values, self.degrees, self.node_labels)
            indptr, indices, values, degrees, labels = (one(level_folder(number)).read(empty) for one in arrays)
            levels.append(Level((indptr, indices, values), degrees, labels))
        return levels


class StoredCoarseEmbedding(StoredStage, stage="coarse_embedding"):
    """Eigenvectors of the first coarse graph."""

    vectors = Whole(
        "node start_vector",
        "float32",
        "leading eigenvectors of the first coarse graph, more than the embedding has components",
    )
