"""Embeddings of all points and of new ones, clusters, and the coarse graphs that refinement starts from.

Rows of embeddings and clusters are in input order.
"""

from typing import ClassVar

import numpy as np

from scalemani.engine.reading import ArrayReader, Rows, StoredStage, Whole, WholeInFolders
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.spectral.coarsening import Level
from scalemani.store.invariants import Invariant
from scalemani.store.invariants.matrices import (
    bounds,
    columns_distinct,
    nearly_sums_of_rows,
    nearly_symmetric,
    within,
)
from scalemani.store.invariants.models import (
    CLUSTERS,
    DEGREES_ADD_UP,
    ITERATIONS_ASCEND,
    LAST_MOVEMENT,
    NEAREST_CENTER,
    NEXT_NODES,
    NODES,
    NOT_ONE_PLACE,
    NUMBER_OF_LEVELS,
    SHARES_OF_NULL,
)
from scalemani.store.invariants.orders import each_once_at_least
from scalemani.store.invariants.spectral import (
    BY_SIZE,
    D_ORTHONORMAL,
    DIFFUSED,
    INDEPENDENT_COLUMNS,
    ORTHONORMAL_ROWS,
    QUOTIENTS_OF_W,
    combined_of,
)
from scalemani.store.invariants.values import (
    A_SHARE,
    ASCENDING,
    DESCENDING,
    FINITE,
    NOT_NEGATIVE,
    POINTS,
    POSITIVE,
    between,
    in_count,
    one_of,
)
from scalemani.store.objects import damaged_object
from scalemani.store.schema import ArrayDescription

SNAPSHOTS = "snapshots-"  # what the names of their units begin with


BEYOND = 2.0  # neighbours' distances in a map: a point whose better place is farther away could as well lie there
CERTIFY_ALONE = "they certify, and nothing is made of them"


def embedding_rows(meaning: str, *invariants: Invariant) -> Rows:
    """Declare an embedding (N, d), which several stages store: finite numbers of which more may hold."""
    return Rows("point component", "float64", meaning, name="embedding").with_invariants(FINITE, *invariants)


def component_values(meaning: str, *invariants: Invariant, name: str = "eigenvalues") -> Whole:
    """Declare the eigenvalues (d,) of an embedding, or other numbers of its columns."""
    return Whole("component", "float64", meaning, name=name).with_invariants(*invariants)


class StoredEmbedding(StoredStage, stage="embedding"):
    """The spectral embedding."""

    embedding = embedding_rows(
        "eigenvectors of L v = lambda D v, rows in input order",
        D_ORTHONORMAL,
        QUOTIENTS_OF_W,
        combined_of("landmark_embedding", "vectors"),
    )
    eigenvalues = component_values(
        "the eigenvalue of each column, ascending, the trivial one left out; of a graph in pieces those of the largest",
        between(0, 2),
        ASCENDING,
    )
    reach = Rows(
        "point",
        "float64",
        "the distance of the last of as many nearest landmarks as one is joined to, itself among them; stored by "
        "solvers that embed a graph of the landmarks alone",
        "as given",
    ).with_invariants(NOT_NEGATIVE)
    pieces = Whole(
        "point",
        "int32",
        "the piece of the graph that each point is in, by size, rows in input order; stored where there are several",
        "piece",
    ).with_invariants(NOT_NEGATIVE, BY_SIZE)
    piece_eigenvalues = Whole(
        "piece component",
        "float64",
        "the eigenvalues of each piece, 1 where it has too few points for a column, which is 0; stored with `pieces`",
    ).with_invariants(between(0, 2))
    residuals = component_values(
        "|S u - theta u| of each column, by which its error is bounded; of a graph in pieces those of the largest, 0 "
        "where this has too few points for a column",
        NOT_NEGATIVE,
        name="residuals",
    )
    guard_values = Whole(
        "guard",
        "float64",
        "the Ritz values theta = 1 - lambda that follow, of the same piece: these with their residuals bound the gap",
    ).with_invariants(between(-1.001, 1.001), DESCENDING)
    guard_residuals = Whole("guard", "float64", "|S y - theta y| of the unit vectors y of these").with_invariants(
        NOT_NEGATIVE
    )
    guards = Rows(
        "point guard",
        "float32",
        "these unit vectors y, D^1/2 v of L v = lambda D v, rows in work order, zero in other pieces; stored by "
        "solvers that have them",
    ).with_invariants(FINITE, ORTHONORMAL_ROWS)
    PIECES_UNIT: ClassVar = "pieces"

    @property
    def in_pieces(self) -> bool:
        """Whether the graph fell into pieces, each embedded by itself."""
        return self.group.committed(self.PIECES_UNIT)


class StoredDiffusionCoordinates(StoredStage, stage="diffusion_coordinates"):
    """The coordinates of diffusion maps."""

    embedding = embedding_rows("the columns of `embedding`, each times |1 - eigenvalue|^time", DIFFUSED)


class StoredClustering(StoredStage, stage="clustering"):
    """Clusters of the spectral embedding: k-means on its rows at unit length."""

    centers = Whole("cluster component", "float64", "the centres of the clusters").with_invariants(between(-1, 1))
    pass_centers = Whole(
        "cluster component", "float64", "the centres before pass N over all points, from 000 on", name="pass_N"
    ).with_invariants(between(-1, 1))
    passes = Whole("", "int64", "the number of these passes").with_invariants(NOT_NEGATIVE)
    moved = Whole("", "float64", "the largest movement of a centre's coordinate in the last one").with_invariants(
        NOT_NEGATIVE, LAST_MOVEMENT
    )
    labels = Rows("point", "int32", "the cluster of each point, rows in input order", "cluster").with_invariants(
        in_count(CLUSTERS), NEAREST_CENTER
    )
    CENTERS_UNIT: ClassVar = "centers"

    def centers_before(self, number: int) -> ArrayReader:
        """Return the centres (K, d) float64 before a pass over all points."""
        return self.reader(StoredClustering.pass_centers.numbered(number))


class StoredLayout(StoredStage, stage="layout"):
    """The nonlinear embedding, and how its descent went."""

    embedding = embedding_rows("positions at the end of the descent, rows in input order", NOT_ONE_PLACE)
    snapshots = WholeInFolders(
        "point component",
        "float64",
        "positions after N iterations, rows in input order; stored where layout.snapshots asks for them",
        folders=("snapshots/N",),
        name="embedding",
    ).with_invariants(FINITE, NOT_ONE_PLACE)
    curve = Whole(
        "evaluation quantity",
        "float64",
        "iteration, objective and norm of its gradient, where the objective was computed",
    ).with_invariants(ITERATIONS_ASCEND)

    forces = Rows(
        "point component",
        "float64",
        "the approximate repulsion at the end on one copy of each point, before factors that points share, rows in "
        "work order: gradients of the sums of the kernel; for objectives that divide by these, of their logarithms",
    ).of_any_numbers("what they should be is a sum over all points, which an audit computes of some")
    reference = Rows(
        "point component",
        "float64",
        "the map that points are pulled to, rows in work order: about its mean, at a root mean square of one, times "
        "weights, and zero at points without one; stored where layout.global_weight is above zero",
    ).of_any_numbers("its mean and size hold over all rows, and an audit computes the distance of the map from it")
    force_sums = Rows(
        "point",
        "float64",
        "the sum of the kernel that the forces on each point were divided by, rows in work order; stored where an "
        "objective divides by these",
    ).with_invariants(POSITIVE)
    force_rows = Whole(
        "sampled_force",
        "int64",
        "the work rows at which the errors of forces were measured; some may come several times",
        "point",
    ).with_invariants(in_count(POINTS))
    force_weights = Whole(
        "sampled_force", "float64", "what the error at each of these counts, one over N times the chance of a draw"
    ).with_invariants(POSITIVE)

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
        """The iterations after which positions were stored, ascending."""
        return sorted(int(unit.removeprefix(SNAPSHOTS)) for unit in self.group.units if unit.startswith(SNAPSHOTS))

    def snapshot(self, iteration: int) -> ArrayReader:
        """Return the positions (N, d) float64 after some iterations, rows in input order."""
        return self.snapshots(self.snapshot_folder(iteration))


class StoredDoubt(StoredStage, stage="doubt"):
    """Which points of a map to believe, rows in work order."""

    perturbation = Rows(
        "point",
        "float64",
        "how far the better of two places is from where a point lies, over the mean distance of its neighbours in the "
        "map; places are minima of its part of the objective, all others fixed, or of eigenvectors the farthest where "
        "their equation puts it, by all neighbours or all but one",
    ).with_invariants(NOT_NEGATIVE)
    places = Rows("point component", "float64", "that place").of_any_numbers("anywhere about the map")
    singularity = Rows(
        "point",
        "float64",
        "the least eigenvalue of the Hessian of its part of the objective where it lies, over the largest magnitude; "
        "of eigenvectors of 1 - eigenvalue",
    ).with_invariants(between(-1, 1))
    preservation = Rows(
        "point", "float64", "the share of its nearest points in the data that are as near in the map"
    ).with_invariants(A_SHARE)
    trusted = Rows(
        "point", "float64", "the share of its nearest points in the map that its list in `neighbors` has"
    ).with_invariants(A_SHARE)
    continued = Rows(
        "point", "float64", "the share of its nearest points in the data that as long a list in the map has"
    ).with_invariants(A_SHARE)
    agreement = Rows(
        "point",
        "float64",
        "the correlation of its distances in the map to the nearer half of a sample, in the order of the data, with "
        "the least ones; 0 without coordinates",
    ).with_invariants(between(-1, 1))
    p_values = Rows(
        "point", "float64", "the share of points of the null map whose agreement is as large; 1 without that map"
    ).with_invariants(between(0, 1, above=True), SHARES_OF_NULL)
    null = Whole("null_point", "float64", "the agreements of a map of points without structure").with_invariants(
        between(-1, 1), ASCENDING
    )
    spread = Whole(
        "point",
        "float64",
        "the root mean square distance of its places in maps of halves of the points from that in the map, over the "
        "root mean square distance of all from their mean; stored where doubt.halves maps such",
    ).with_invariants(NOT_NEGATIVE)
    stable = Whole(
        "point",
        "float64",
        "the mean share of its nearest points in a half that are as near in the map of that half; stored with `spread`",
    ).with_invariants(between(0, 1))
    NULL_UNIT: ClassVar = "null"
    HALVES_UNIT: ClassVar = "halves"


class StoredReduction(StoredStage):
    """An embedding of all points by the solution of a small eigenproblem, for which a method has a stage."""

    embedding: ClassVar[Rows]
    eigenvalues: ClassVar[Whole]
    SOLVED: ClassVar = "solution"


def combined_rows(columns: Invariant) -> Rows:
    """Declare an embedding that is Z times `vectors`, with what holds of its columns."""
    return embedding_rows("Z times `vectors`, rows in input order", combined_of("", "vectors"), columns)


class StoredLandmarkCoordinates(StoredReduction):
    """An embedding that is Z times the coordinates of the landmarks, as that of new points is."""

    vectors: ClassVar[Whole]


class StoredPlacement(StoredStage, stage="placement"):
    """New points placed in the embedding of a run: no stage of the run, and gone once the result is written."""

    coordinates = embedding_rows("coordinates of the new points")
    isolation = Rows(
        "point",
        "float64",
        "the distance of the fifth nearest landmark or training point over the median spacing of five, at most 1e300",
    ).with_invariants(between(0, 1e300))
    errors = Rows(
        "point", "float64", "reconstruction error, relative to the distance of the nearest landmark"
    ).with_invariants(NOT_NEGATIVE)
    descended = Rows("point", "uint8", "0 where it equals a training point, else 1").with_invariants(one_of(0, 1))
    arrived = Rows("point", "uint8", "1 where the descent of a point came to its end").with_invariants(one_of(0, 1))
    falls = Rows("point", "float64", "by how much the objective of a point fell").of_any_numbers(
        "gone with the call that wrote them"
    )
    nowhere = Rows("point", "uint8", "1 where a point has no coordinates").with_invariants(one_of(0, 1))


LEVEL_FOLDERS = ("level_N",)


def level_folder(number: int) -> str:
    """Return the folder of the arrays of a coarse graph; the first is number 1."""
    return f"level_{number}"


class StoredCoarseGraphs(StoredStage, stage="coarse_graphs"):
    """The hierarchy of coarse graphs: aggregates of points, aggregates of these, and so on."""

    labels = Whole("point", "int32", "the node of the first coarse graph of each work row", "node").with_invariants(
        in_count(NODES), each_once_at_least(NODES), DEGREES_ADD_UP
    )
    indptr = WholeInFolders(
        "node_bound",
        "int64",
        "where each row of the level's graph begins and ends among its nonzeros",
        "nonzero",
        folders=LEVEL_FOLDERS,
    ).with_invariants(bounds("indices", "values"))
    indices = WholeInFolders(
        "nonzero", "int32", "the column of each nonzero", "node", folders=LEVEL_FOLDERS
    ).with_invariants(NOT_NEGATIVE, within("degrees"), columns_distinct("indptr"))
    values = WholeInFolders(
        "nonzero", "float32", "sums of the affinities between the members of two nodes", folders=LEVEL_FOLDERS
    ).with_invariants(POSITIVE, nearly_symmetric("indptr", "indices"))
    degrees = WholeInFolders("node", "float64", "the sum of each row", folders=LEVEL_FOLDERS).with_invariants(
        POSITIVE, nearly_sums_of_rows("indptr", "values")
    )
    node_labels = WholeInFolders(
        "joined_node",
        "int32",
        "the node of the next level of each node; empty on the last level",
        "node",
        folders=LEVEL_FOLDERS,
        name="labels",
    ).with_invariants(NEXT_NODES)
    levels = Whole(
        "", "int64", "the number of levels; where it is missing, the certificate `levels` says it", "level"
    ).with_invariants(NUMBER_OF_LEVELS)
    MADE_OF: ClassVar = "made_of"  # a certificate: how many points there were when graphs were made that were reused
    NODES: ClassVar = "nodes"  # certificates: of each graph, the finest first
    NONZEROS: ClassVar = "nonzeros"

    @classmethod
    def level_arrays(cls, level: Level) -> dict[ArrayDescription, np.ndarray]:
        """Return a coarse graph as it is stored."""
        described = (cls.indptr, cls.indices, cls.values, cls.degrees, cls.node_labels)
        return dict(zip(described, (*level.rows, level.degrees, level.labels), strict=True))

    def points_when_made(self, n_points: int) -> int:
        """Return how many of the `n_points` there were when the graphs were made; the others have joined them."""
        reused = self.MADE_OF in self.group.record["certificates"]
        return self.group.certificate(self.MADE_OF, int) if reused else n_points

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

    def read_levels(self, empty: Empty = np.empty) -> list[Level]:
        """Return the coarse graphs, the finest first, in arrays made by `empty`."""
        levels = []
        for number in range(1, self.read_count(self.levels, "levels") + 1):
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
    ).with_invariants(FINITE, INDEPENDENT_COLUMNS)
