"""The neighbour graph in work order, round by round, and what users read of it in input order."""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from scalemani.engine.reading import Rows, RowsInFolders, StoredStage, Whole, WholeInFolders
from scalemani.store.invariants import Invariant
from scalemani.store.invariants.models import CELLS_AND_ONE, NOT_FARTHER, RECALL
from scalemani.store.invariants.orders import SAME_DISTANCES, SAME_NEIGHBORS
from scalemani.store.invariants.points import DISTANCES_OF_INDICES
from scalemani.store.invariants.values import (
    ASCENDING_IN_ROWS,
    DISTINCT_IN_ROWS,
    FINITE,
    NONE_BEHIND,
    NOT_NEGATIVE,
    NOT_THE_ROW_ITSELF,
    POINTS,
    STRICTLY_ASCENDING,
    between,
    distinct_in_rows,
    in_count,
    one_of,
)
from scalemani.store.schema import AS_DISTANCES, ArrayDescription, DtypeRule

QUERIES, TRUTH = "queries", "truth"  # units: the points by which the recall is measured, and their true neighbours
ROUND_FOLDERS, RECALL_FOLDERS = ("round_N",), ("recall_N",)
LEAVES_FOLDERS, JOINED_FOLDERS = ("leaves_N",), ("joined_N-block-N",)
STRIPES_FOLDERS = ("stripes_N-block-N", "crossed_N-block-N")


class JoinedDescription(NamedTuple):
    """The arrays of candidates that a group of leaves gives to some rows."""

    rows: ArrayDescription
    indices: ArrayDescription
    squares: ArrayDescription


def joined_candidates(stage: str) -> JoinedDescription:
    """Return the description of the candidates that groups of leaves give to their points."""

    def described(name: str, dim: str, dtype: str, units: str, says: str, *invariants: Invariant) -> ArrayDescription:
        return ArrayDescription(stage, f"joined_{name}", "part", (dim,), dtype, units, says, JOINED_FOLDERS, invariants)

    edge, rows = "joined_edge", "the points of some leaves of a round, ascending"
    near, squares = "of each, in turn, the nearest in these leaves; -1 for none", "half of their squared distances"
    return JoinedDescription(
        described("rows", "joined_point", "int32", "work row", rows, in_count(POINTS), STRICTLY_ASCENDING),
        described("indices", edge, "int32", "work row", near, in_count(POINTS, least=-1)),
        replace(
            described("squares", edge, "float32", "scale^2", f"{squares}, by products in float32", FINITE),
            no_invariant="rounding of products makes those of near points negative",
        ),
    )


class StripesDescription(NamedTuple):
    """The arrays of lists that stripes of points give to each other."""

    indices: ArrayDescription
    distances: ArrayDescription


def lists_of_stripes(stage: str) -> StripesDescription:
    """Return the description of the lists of a stripe in itself, or of two stripes in each other."""

    def described(name: str, dtype: str | DtypeRule, units: str, says: str, *invariants: Invariant) -> ArrayDescription:
        dims, folders = ("stripe_edge",), STRIPES_FOLDERS
        return ArrayDescription(stage, f"stripe_{name}", "part", dims, dtype, units, says, folders, invariants)

    near = "of each point of a stripe in turn, the nearest in this stripe, or of two stripes those in the other"
    return StripesDescription(
        described("indices", "int32", "work row", f"{near}; -1 for none", in_count(POINTS, least=-1)),
        described("distances", AS_DISTANCES, "as given", "their distances; 0 for none", NOT_NEGATIVE),
    )


def round_step(number: int) -> str:
    """Return the step of the stage `neighbors` that writes a round: the folder of its arrays."""
    return f"round_{number}"


def leaves_step(number: int) -> str:
    """Return the step that finds the leaves of points in a round over leaves: the folder of these."""
    return f"leaves_{number}"


def joined_step(number: int) -> str:
    """Return the step that searches these leaves, whose groups are its parts."""
    return f"joined_{number}"


def stripes_step(number: int) -> str:
    """Return the step that searches stripes of points, each in itself."""
    return f"stripes_{number}"


def crossed_step(number: int) -> str:
    """Return the step that searches pairs of stripes in each other."""
    return f"crossed_{number}"


def recall_unit(number: int) -> str:
    """Return the unit that says how good a round was, and its folder."""
    return f"recall_{number}"


class StoredGivenLists(StoredStage, stage="given_lists"):
    """Neighbour lists of another library that accompany the points; stored where they were passed."""

    indices = Rows(
        "point neighbor", "int32", "the neighbours of each point as given, -1 behind them for none", "work row"
    ).with_invariants(in_count(POINTS, least=-1), distinct_in_rows(-1), NONE_BEHIND, NOT_THE_ROW_ITSELF)


class StoredNeighbors(StoredStage, stage="neighbors"):
    """Rounds of the search, of which the last is the graph and may be the only one left. Rows are work rows."""

    indices = RowsInFolders(
        "point neighbor", "int32", "the neighbours of each work row, itself excluded", "work row", folders=ROUND_FOLDERS
    ).with_invariants(in_count(POINTS), DISTINCT_IN_ROWS, NOT_THE_ROW_ITSELF)
    distances = RowsInFolders(
        "point neighbor",
        AS_DISTANCES,
        "Euclidean distances of these neighbours as the metric maps points, ascending; of jaccard the roots of its "
        "own, of a metric that compares rows its distances",
        "as given",
        folders=ROUND_FOLDERS,
    ).with_invariants(NOT_NEGATIVE, ASCENDING_IN_ROWS, DISTANCES_OF_INDICES)
    fresh = RowsInFolders(
        "point neighbor", "uint8", "1 where the neighbour was found in this round, else 0", folders=ROUND_FOLDERS
    ).with_invariants(one_of(0, 1))
    leaves = RowsInFolders(
        "point leaf",
        "int32",
        "the leaders nearest to each point, in whose leaves it is searched; removed after the round",
        "leader",
        folders=LEAVES_FOLDERS,
    ).with_invariants(NOT_NEGATIVE, DISTINCT_IN_ROWS)
    JOINED: ClassVar = joined_candidates("neighbors")
    STRIPES: ClassVar = lists_of_stripes("neighbors")
    recall = WholeInFolders(
        "figure",
        "float64",
        "the share of true neighbours after a round, its standard error, and how many points it was measured on",
        folders=RECALL_FOLDERS,
    ).with_invariants(RECALL)
    last_round = Whole(
        "",
        "int64",
        "the round whose arrays are the graph; where it is missing, the certificate `rounds` says it",
        "round",
    ).with_invariants(NOT_NEGATIVE)
    query_rows = Whole("query", "int64", "the points by which the recall is measured", "work row").with_invariants(
        in_count(POINTS), STRICTLY_ASCENDING
    )
    query_limits = Whole(
        "query",
        "float64",
        "the distance within which as many points as a list holds are known for each of these",
        "as given",
    ).with_invariants(NOT_NEGATIVE)
    true_distances = Whole(
        "query neighbor", "float64", "the distances of their true neighbours, ascending", "as given"
    ).with_invariants(NOT_NEGATIVE, ASCENDING_IN_ROWS, NOT_FARTHER)
    n_probes = Whole("", "int64", "the cells that a point visits in a first round over cells").with_invariants(
        between(1), in_count(CELLS_AND_ONE)
    )

    @property
    def final_step(self) -> str:
        """The step of the last round."""
        return round_step(self.read_count(self.last_round, "rounds"))

    def read_graph_block(self, block: int, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, distances) of one block of work rows of the graph: (n, k) each, ascending distance.

        Of the `width` nearest neighbours; None: of all.
        """
        step = self.final_step
        indices, distances = (table(step).read_block(block)[:, :width] for table in (self.indices, self.distances))
        return np.ascontiguousarray(indices), np.ascontiguousarray(distances)

    def read_recall(self, number: int) -> np.ndarray:
        """Return the recall (3,) after a round: the share, its standard error, and points looked at."""
        return self.recall(recall_unit(number)).read()


class StoredGraph(StoredStage, stage="graph"):
    """The graph in input order."""

    indices = Rows(
        "point neighbor", "int64", "the neighbours of each point, itself excluded", "input row"
    ).with_invariants(in_count(POINTS), DISTINCT_IN_ROWS, NOT_THE_ROW_ITSELF, SAME_NEIGHBORS)
    distances = Rows(
        "point neighbor", AS_DISTANCES, "distances of these neighbours in the metric of the points, ascending", "metric"
    ).with_invariants(NOT_NEGATIVE, ASCENDING_IN_ROWS, SAME_DISTANCES)
