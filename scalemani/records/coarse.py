"""Coarse graphs of W, level by level, and eigenvectors of the first of them."""

from typing import ClassVar

import numpy as np

from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.spectral.coarsening import Level
from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.objects import damaged_object
from scalemani.store.schema import ArrayDescription

LEVEL_FOLDERS = ("level_N",)


def level_folder(number: int) -> str:
    """Return the folder of the arrays of a coarse graph; the first is number 1."""
    return f"level_{number}"


class StoredCoarseGraphs(StoredStage):
    """The hierarchy of coarse graphs: aggregates of points, aggregates of these, and so on."""

    STAGE: ClassVar = "coarse_graphs"
    LABELS: ClassVar = ArrayDescription(
        STAGE, "labels", "whole", ("point",), "int32", "node", "the node of the first coarse graph of each work row"
    )
    INDPTR: ClassVar = ArrayDescription(
        STAGE,
        "indptr",
        "whole",
        ("node_bound",),
        "int64",
        "nonzero",
        "where each row of the level's graph begins and ends among its nonzeros",
        LEVEL_FOLDERS,
    )
    INDICES: ClassVar = ArrayDescription(
        STAGE, "indices", "whole", ("nonzero",), "int32", "node", "the column of each nonzero", LEVEL_FOLDERS
    )
    VALUES: ClassVar = ArrayDescription(
        STAGE,
        "values",
        "whole",
        ("nonzero",),
        "float32",
        "1",
        "sums of the affinities between the members of two nodes",
        LEVEL_FOLDERS,
    )
    DEGREES: ClassVar = ArrayDescription(
        STAGE, "degrees", "whole", ("node",), "float64", "1", "the sum of each row", LEVEL_FOLDERS
    )
    NODE_LABELS: ClassVar = ArrayDescription(
        STAGE,
        "labels",
        "whole",
        ("joined_node",),
        "int32",
        "node",
        "the node of the next level of each node; empty on the last level",
        LEVEL_FOLDERS,
    )
    LEVELS: ClassVar = ArrayDescription(
        STAGE,
        "levels",
        "whole",
        (),
        "int64",
        "level",
        "the number of levels; where it is missing, the certificate `levels` says it",
    )
    MADE_OF: ClassVar = "made_of"  # a certificate: how many points there were when graphs were made that were kept
    NODES: ClassVar = "nodes"  # certificates: of each graph, the finest first
    NONZEROS: ClassVar = "nonzeros"
    LEVEL_ARRAYS: ClassVar = (INDPTR, INDICES, VALUES, DEGREES, NODE_LABELS)
    ARRAYS: ClassVar = (LABELS, *LEVEL_ARRAYS, LEVELS)

    @classmethod
    def level_arrays(cls, level: Level) -> dict[ArrayDescription, np.ndarray]:
        """Return a coarse graph as it is stored."""
        return dict(zip(cls.LEVEL_ARRAYS, (*level.rows, level.degrees, level.labels), strict=True))

    @property
    def labels(self) -> ArrayReader:
        """The node (N,) int32 of the first coarse graph of each work row."""
        return self.reader(self.LABELS)

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
        return self.reader(self.DEGREES, level_folder(1)).read()

    def read_levels(self, empty: Empty = np.empty, first: int = 1) -> list[Level]:
        """Return the coarse graphs from the `first` on, the finest first, in arrays made by `empty`."""
        levels = []
        for number in range(first, self.read_count(self.LEVELS, "levels") + 1):
            readers = (self.reader(described, level_folder(number)) for described in self.LEVEL_ARRAYS)
            indptr, indices, values, degrees, labels = (reader.read(empty) for reader in readers)
            levels.append(Level((indptr, indices, values), degrees, labels))
        return levels


class StoredCoarseEmbedding(StoredStage):
    """Eigenvectors of the first coarse graph."""

    STAGE: ClassVar = "coarse_embedding"
    VECTORS: ClassVar = ArrayDescription(
        STAGE,
        "vectors",
        "whole",
        ("node", "start_vector"),
        "float32",
        "1",
        "leading eigenvectors of the first coarse graph, more than the embedding has components",
    )
    ARRAYS: ClassVar = (VECTORS,)

    @property
    def vectors(self) -> ArrayReader:
        """Eigenvectors (n, m) float32 of the first coarse graph."""
        return self.reader(self.VECTORS)
