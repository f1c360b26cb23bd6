"""The neighbour graph in work order, round by round, and what users are given of it in input order."""

from typing import ClassVar

import numpy as np

from scalemani.records.reading import ArrayReader, StoredStage
from scalemani.store.schema import AS_DISTANCES, ArrayDescription

QUERIES, TRUTH = "queries", "truth"  # units: the points by which the recall is measured, and their true neighbours
ROUND_FOLDERS, RECALL_FOLDERS = ("round_N",), ("recall_N",)


def round_step(number: int) -> str:
    """Return the step of the stage `neighbors` that writes a round: the folder of its arrays."""
    return f"round_{number}"


def recall_unit(number: int) -> str:
    """Return the unit that says how good a round was, and its folder."""
    return f"recall_{number}"


class StoredNeighbors(StoredStage):
    """Rounds of the search, of which the last is the graph and may be the only one left. Rows are work rows."""

    STAGE: ClassVar = "neighbors"
    INDICES: ClassVar = ArrayDescription(
        STAGE,
        "indices",
        "rows",
        ("point", "neighbor"),
        "int32",
        "work row",
        "the neighbours of each work row, itself excluded",
        ROUND_FOLDERS,
    )
    DISTANCES: ClassVar = ArrayDescription(
        STAGE,
        "distances",
        "rows",
        ("point", "neighbor"),
        AS_DISTANCES,
        "metric",
        "distances of these neighbours in the metric of the points, ascending",
        ROUND_FOLDERS,
    )
    FRESH: ClassVar = ArrayDescription(
        STAGE,
        "fresh",
        "rows",
        ("point", "neighbor"),
        "uint8",
        "1",
        "1 where the neighbour was found in this round, else 0",
        ROUND_FOLDERS,
    )
    QUERY_ROWS: ClassVar = ArrayDescription(
        STAGE, "query_rows", "whole", ("query",), "int64", "work row", "the points by which the recall is measured"
    )
    QUERY_LIMITS: ClassVar = ArrayDescription(
        STAGE,
        "query_limits",
        "whole",
        ("query",),
        "float64",
        "as given",
        "the distance within which as many points as a list holds are known for each of these",
    )
    TRUE_DISTANCES: ClassVar = ArrayDescription(
        STAGE,
        "true_distances",
        "whole",
        ("query", "neighbor"),
        "float64",
        "as given",
        "the distances of their true neighbours, ascending",
    )
    N_PROBES: ClassVar = ArrayDescription(
        STAGE, "n_probes", "whole", (), "int64", "1", "the cells that a point visits in a first round over cells"
    )
    RECALL: ClassVar = ArrayDescription(
        STAGE,
        "recall",
        "whole",
        ("figure",),
        "float64",
        "1",
        "the share of true neighbours after a round, its standard error, and how many points it was measured on",
        RECALL_FOLDERS,
    )
    LAST_ROUND: ClassVar = ArrayDescription(
        STAGE,
        "last_round",
        "whole",
        (),
        "int64",
        "round",
        "the round whose arrays are the graph; where it is missing, the certificate `rounds` says it",
    )
    ARRAYS: ClassVar = (
        INDICES,
        DISTANCES,
        FRESH,
        RECALL,
        LAST_ROUND,
        QUERY_ROWS,
        QUERY_LIMITS,
        TRUE_DISTANCES,
        N_PROBES,
    )

    @property
    def final_step(self) -> str:
        """The step of the last round."""
        return round_step(self.read_count(self.LAST_ROUND, "rounds"))

    def indices(self, step: str) -> ArrayReader:
        """Neighbours (N, k) int32 after a round."""
        return self.reader(self.INDICES, step)

    def distances(self, step: str) -> ArrayReader:
        """Their distances (N, k)."""
        return self.reader(self.DISTANCES, step)

    def fresh(self, step: str) -> ArrayReader:
        """Where (N, k) uint8 a neighbour was found in the round itself."""
        return self.reader(self.FRESH, step)

    def read_graph_block(self, block: int, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, distances) of one block of work rows of the graph: (n, k) each, ascending distance.

        Of the `width` nearest neighbours; None: of all.
        """
        step = self.final_step
        indices, distances = (table(step).read_block(block)[:, :width] for table in (self.indices, self.distances))
        return np.ascontiguousarray(indices), np.ascontiguousarray(distances)

    def read_recall(self, number: int) -> np.ndarray:
        """Return the recall (3,) after a round: the share, its standard error, and points looked at."""
        return self.reader(self.RECALL, recall_unit(number)).read()

    @property
    def query_rows(self) -> ArrayReader:
        """The work rows (q,) int64 of the points by which the recall is measured."""
        return self.reader(self.QUERY_ROWS)

    @property
    def query_limits(self) -> ArrayReader:
        """The distance (q,) float64 within which their neighbours are."""
        return self.reader(self.QUERY_LIMITS)

    @property
    def true_distances(self) -> ArrayReader:
        """The distances (q, k) float64 of their true neighbours."""
        return self.reader(self.TRUE_DISTANCES)

    @property
    def n_probes(self) -> int:
        """The cells that a point visits in a first round over cells."""
        return int(self.reader(self.N_PROBES).read_once())


class StoredGraph(StoredStage):
    """The graph in input order."""

    STAGE: ClassVar = "graph"
    INDICES: ClassVar = ArrayDescription(
        STAGE,
        "indices",
        "rows",
        ("point", "neighbor"),
        "int64",
        "input row",
        "the neighbours of each point, itself excluded",
    )
    DISTANCES: ClassVar = ArrayDescription(
        STAGE,
        "distances",
        "rows",
        ("point", "neighbor"),
        AS_DISTANCES,
        "as given",
        "Euclidean distances of these neighbours, ascending",
    )
    ARRAYS: ClassVar = (INDICES, DISTANCES)

    @property
    def indices(self) -> ArrayReader:
        """Neighbours (N, k) int64 of each point."""
        return self.reader(self.INDICES)

    @property
    def distances(self) -> ArrayReader:
        """Their distances (N, k)."""
        return self.reader(self.DISTANCES)
