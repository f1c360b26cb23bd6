"""What the needs of a stage depend on, and how large the graphs of a run become: the one place that says it of W.

N points of k neighbours have k N edges. W = (P + P^T) / 2 has k N nonzeros where every edge goes both ways, 2 k N
where none does, and two for each bridge between components. Until they are counted they are expected by the number of
features: the fewer these are, the more edges go both ways.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from scalemani.config.methods import ReductionExtension, extensions
from scalemani.config.params import Resolved
from scalemani.engine.memory_model import Memory, Terms, array, entries
from scalemani.engine.task import Dimensions
from scalemani.kernels.arrays.grouping import PART_ITEMS
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.rows.sketches import EXACT_IN_FLOAT32
from scalemani.kernels.spectral.coarsening import DENSE_NODES
from scalemani.store.schema import AS_DISTANCES, AS_LANDMARKS, ArrayDescription

# Of all edges, 1 - exp(-D / 10) go one way, up to a limit. Of points by Student's t with two degrees of freedom the
# share is 0.08, 0.23, 0.57, 0.71 for D = 1, 3, 10, 20; of digits 0.48 and of counts of words 0.71, whatever D. Points
# of many features without any structure have more: 0.89 for normal ones of 50.
ONE_WAY_FEATURES, MOST_ONE_WAY = 10, 0.9
# Until W is counted, coarse graphs are expected of points that have some structure, as nearly all have: of others they
# are several times as large, and what is projected of them follows W once that is known.
MOST_OF_STRUCTURED = 0.75
# Neighbourhoods that points have in common merge in the first coarse graphs: so much of W is left in all of them. What
# stays on every level is the square of the share of edges that go one way, which lead out of a neighbourhood.
MERGED_SHARE = 0.35
FIRST_NODES_PER_POINT = 0.5  # of the first coarse graph: aggregates have two to eight members
NODES_PER_NODE = 0.35  # of each following one
NODES_PER_POINT = 0.8  # of all coarse graphs
FOLLOWING_VECTORS = 4  # Ritz vectors beyond those kept whose residuals are found too: a gap may lie behind some of them
COPIES_OF_PART = 4  # of items that are grouped: labels, places, numbers, and what a file takes of these in order
# Landmarks that points of a landmark are near to, with all their neighbours: 24 on a surface of two dimensions.
LANDMARKS_MET_A_FEATURE, MOST_FEATURES_THAT_BOUND = 6, 20
# What a block of sparse rows takes of a disk beyond others: folders and descriptions of three arrays, and rounding.
SPARSE_BLOCK_BYTES = 32 * 2**10
DENSE_COPIES = 5  # of the coarsest matrix, with what LAPACK works in


class Reduction(Protocol):
    """A solver that computes Z without the stage `landmark_weights`."""

    def weight_entries(self, sizes: "Sizes", /) -> int:
        """Return the nonzeros of Z, at most."""
        ...


@dataclass(frozen=True)
class Sizes:
    """The shape of the points, the parameters, and what is known of later stages.

    These are the nonzeros of W once they were counted, nodes and nonzeros of each coarse graph once these are made,
    whether points weigh, how many were appended to a run, whether all rounds of the search for neighbours are stored,
    how many rows the input has where equal ones are one point, 0 where each is one, and the bytes of an encoded point.
    """

    dimensions: Dimensions
    params: Resolved
    counted_nonzeros: int | None = None
    weighted: bool = False
    n_appended: int = 0
    stores_rounds: bool = False
    n_input_rows: int = 0
    counted_graphs: tuple[tuple[int, int], ...] | None = None
    encoded_row_bytes: float | None = None

    @property
    def stored_row_bytes(self) -> float:
        """The bytes that a point takes of a disk: as the survey saw some encoded, else as in memory."""
        return self.dimensions.row_bytes if self.encoded_row_bytes is None else self.encoded_row_bytes

    @property
    def n_cells(self) -> int:
        """The cells of the partition."""
        return max(1, round(self.dimensions.n_points / self.params.partition.cell_points))

    @property
    def partition_sample(self) -> int:
        """The points that the partition is trained on: two a cell at least, or cells would be fewer, and larger."""
        return min(self.dimensions.n_points, max(self.params.partition.sample_points, 2 * self.n_cells))

    @property
    def n_edges(self) -> int:
        """The edges of the neighbour graph."""
        return self.dimensions.n_points * self.params.n_neighbors

    @property
    def n_affinities(self) -> int:
        """The edges of it that have an affinity."""
        return self.dimensions.n_points * self.params.affinity_neighbors

    @property
    def edge_columns(self) -> int:
        """The columns that a block of edges takes: all, and once more those with an affinity where these are fewer."""
        k, width = self.params.n_neighbors, self.params.affinity_neighbors
        return k if width == k else k + width

    @property
    def most_nonzeros(self) -> int:
        """What W cannot exceed for any points."""
        if self.params.affinities.precomputed:
            return self.nonzeros
        loops = self.dimensions.n_points if self.weighted else 0
        return 2 * self.n_affinities + 2 * (self.dimensions.n_points // (self.params.affinity_neighbors + 1)) + loops

    @property
    def one_way_share(self) -> float:
        """The share of edges that go one way."""
        if self.params.affinities.precomputed:
            return MOST_ONE_WAY
        if self.counted_nonzeros is not None:
            return max(0.0, self.counted_nonzeros / self.n_affinities - 1)
        if self.params.neighbors.of_pixels:
            return 0.0
        return min(MOST_ONE_WAY, float(-np.expm1(-self.dimensions.n_features / ONE_WAY_FEATURES)))

    @property
    def nonzeros(self) -> int:
        """The nonzeros of W, as counted or expected."""
        if self.params.affinities.precomputed and self.dimensions.nonzeros is not None:
            return self.dimensions.nonzeros
        if self.counted_nonzeros is not None and self.params.affinities.of_pixels:
            return self.counted_nonzeros  # which are no edges of lists
        return int((1 + self.one_way_share) * self.n_affinities)

    @property
    def block_nonzeros(self) -> int:
        """The nonzeros of a block of rows of W where they are spread evenly."""
        return -(-self.nonzeros * self.dimensions.block_rows // self.dimensions.n_points)

    @property
    def n_appended_nonzeros(self) -> int:
        """The nonzeros of the rows of W of appended points where they are spread evenly."""
        return -(-self.nonzeros * self.n_appended // self.dimensions.n_points)

    @property
    def coarse_nonzeros(self) -> int:
        """The nonzeros of all coarse graphs, as counted or expected."""
        if self.counted_graphs is not None:
            return sum(nonzeros for _, nonzeros in self.counted_graphs)
        nodes, unmerged = FIRST_NODES_PER_POINT * self.dimensions.n_points, 0.0
        while nodes > DENSE_NODES:
            unmerged += min(self.nonzeros, nodes**2)
            nodes *= NODES_PER_NODE
        known = self.counted_nonzeros is not None
        one_way = self.one_way_share if known else min(self.one_way_share, MOST_OF_STRUCTURED)
        return int(MERGED_SHARE * self.nonzeros + one_way**2 * (unmerged + nodes**2))

    @property
    def coarse_nodes(self) -> int:
        """The nodes of all coarse graphs."""
        if self.counted_graphs is not None:
            return sum(nodes for nodes, _ in self.counted_graphs)
        return int(NODES_PER_POINT * self.dimensions.n_points)

    @property
    def first_coarse_nodes(self) -> int:
        """The nodes of the first coarse graph, the largest."""
        if self.counted_graphs is not None:
            return self.counted_graphs[0][0]
        return int(FIRST_NODES_PER_POINT * self.dimensions.n_points)

    @property
    def weight_entries(self) -> int:
        """The nonzeros, at most, of Z where the solver computes it; else 0."""
        extension = extensions(ReductionExtension).get(self.params.embedding.solver)
        if extension is None:
            return 0
        reduction: Reduction = extension.load()
        return reduction.weight_entries(self)

    @property
    def landmarks_a_point(self) -> float:
        """The nonzeros of a row of Z."""
        if self.weight_entries:
            return min(self.params.n_landmarks, self.weight_entries / self.dimensions.n_points)
        return self.params.landmark_neighbors

    @property
    def reduced_entries(self) -> int:
        """The nonzeros of the lower triangle of Z' (D - W) Z, at most."""
        n_landmarks, width = self.params.n_landmarks, self.landmarks_a_point
        met = LANDMARKS_MET_A_FEATURE ** min(self.dimensions.n_features, MOST_FEATURES_THAT_BOUND)
        pairs = min(n_landmarks * min(n_landmarks, met), 2 * self.n_affinities * width**2)
        return int(pairs + n_landmarks) // 2

    @property
    def stores_sketches(self) -> bool:
        """Whether sketches are stored: they are made of dense points that take less, as bytes do, when looked up."""
        return self.dimensions.sparse or self.dimensions.row_bytes >= array("float32", self.sketch_width)

    @property
    def sketch_width(self) -> int:
        """The columns of a sketch."""
        return min(self.params.partition.sketch_dimensions, self.dimensions.n_features)


def written(described: Iterable[ArrayDescription], sizes: Sizes, copies: float = 1, **lengths: float) -> Terms:
    """Return what arrays take as a stage stores them, those of all blocks in sum, without those of a few bytes.

    Parameters
    ----------
    **lengths : by dimension, where a stage knows one that others do not, or another one.
    """
    known = {**lengths_of(sizes), **lengths}
    terms = {
        one.paths[0]: copies * array(dtype_of(one, sizes), *(known[dim] for dim in one.dims))
        for one in described
        if one.dims
    }
    return {name: n_bytes for name, n_bytes in terms.items() if n_bytes}


def lengths_of(sizes: Sizes) -> dict[str, float]:
    """Return the lengths of dimensions of stored arrays; 0 of those that take a few bytes."""
    dimensions, params = sizes.dimensions, sizes.params
    n_points, n_features, n_landmarks = dimensions.n_points, dimensions.n_features, params.n_landmarks
    few = (
        "stretch",
        "stretch_bound",
        "class",
        "bridge",
        "end",
        "figure",
        "extent",
        "side",
        "evaluation",
        "quantity",
        "guard",
        "source_block",
    )
    return {
        **dict.fromkeys(few, 0),
        **dict.fromkeys(("point", "point_bound", "row", "row_bound"), n_points),
        **dict.fromkeys(("node", "node_bound", "joined_node"), sizes.coarse_nodes),
        **dict.fromkeys(("feature", "other_feature"), n_features),
        **dict.fromkeys(("landmark", "source_landmark"), n_landmarks),
        "given_row": sizes.n_input_rows,
        "kept_point": n_points if params.components.disconnected == "largest" else 0,
        "axis": sizes.sketch_width,
        "cell": sizes.n_cells,
        "cell_bound": sizes.n_cells + 1,
        "neighbor": params.n_neighbors,
        "landmark_bound": n_landmarks + 1,
        "nearest_landmark": params.landmark_neighbors,
        "component": params.n_components,
        "ritz_vector": params.n_components + FOLLOWING_VECTORS,
        "direction": min(n_features, n_landmarks),
        "null_point": min(params.doubt.null_points, n_points),
        "cluster": params.clustering.n_clusters,
    }


def dtype_of(described: ArrayDescription, sizes: Sizes) -> DTypeLike:
    """Return the dtype that an array has in a run."""
    if isinstance(described.dtype, str):
        return described.dtype
    if described.dtype is AS_LANDMARKS and sizes.params.landmarks.off_data:
        return "float64"
    return sizes.dimensions.distance_dtype if described.dtype is AS_DISTANCES else sizes.dimensions.dtype


def points_written(name: str, sizes: Sizes) -> Terms:
    """Return what storing the rows of all points takes."""
    dimensions = sizes.dimensions
    rows = {name: dimensions.n_points * sizes.stored_row_bytes}
    return {**rows, "folders of sparse blocks": dimensions.n_blocks * SPARSE_BLOCK_BYTES} if dimensions.sparse else rows


def pixels(sizes: Sizes) -> Terms:
    """Return what rows of W are made of as they are read, where it is not stored: the pixels of an image."""
    if not sizes.params.neighbors.of_pixels or sizes.params.affinities.of_pixels:
        return {}
    return {"pixels that W is made of": sizes.dimensions.n_points * sizes.dimensions.row_bytes}


def sketched_tile(sizes: Sizes) -> Terms:
    """Return what sketching takes: a tile of centred points, in float64 too unless points are small integers.

    Sparse points are sketched as they are.
    """
    if sizes.dimensions.sparse:
        return {}
    exact, n_values = np.dtype(sizes.dimensions.dtype) in EXACT_IN_FLOAT32, TILE_ROWS * sizes.dimensions.n_features
    return {"a tile of points, centred": array("float32", n_values) + (not exact) * array("float64", n_values)}


def grouping(n_items: int, items: str) -> Memory:
    """Return what `group_large` takes: the order of the items, and the labels of some of them."""
    some = {"some of them while they are sorted": COPIES_OF_PART * array("int64", min(n_items, PART_ITEMS))}
    return Memory(some, points={items: array("int64", n_items)})


def coarse_graphs(sizes: Sizes) -> Memory:
    """Return what the coarse graphs take in memory, with the eigenvectors of the coarsest."""
    nodes = sizes.coarse_nodes
    return Memory(
        process={"coarsest graph, dense": DENSE_COPIES * array("float64", DENSE_NODES, DENSE_NODES)},
        points={
            "coarse graphs": entries(sizes.coarse_nonzeros, "float32"),
            "degrees, scales, row pointers, aggregates and members of their nodes": array("float64", nodes, 5),
        },
    )
