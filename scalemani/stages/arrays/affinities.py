"""Affinities of the edges of the neighbour graph, its components, and W: stored, or made of the pixels of an image."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from scalemani.config.methods import PixelAffinitiesExtension, PixelsExtension, extensions
from scalemani.config.params import Resolved
from scalemani.engine.context import StageContext
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Memory
from scalemani.engine.reading import Parts, Rows, RowsInFolders, StoredStage, Whole, WholeInFolders
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.symmetric import (
    DirectedEdges,
    both_ways,
    incoming_edges,
    join_edges,
    row_sums,
    symmetric_rows,
    without_zeros,
)
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.groups import StageGroup, block_unit
from scalemani.store.invariants.edges import (
    ADD_UP_TO_AFFINITIES,
    FALLING_IN_ROWS,
    FOLLOW_DISTANCES,
    JOIN_ALL,
    JOIN_COMPONENTS,
    LARGEST_COMPONENT,
    LENGTHS_OF_BRIDGES,
    MARKS_DUPLICATES,
    ONE_ALONG_EDGES,
    RESIDUALS_OF_VALUES,
    SEND_EDGES,
    SOLVED,
    SUM_TO_ONE_OVER_COPIES,
    holds_edges,
)
from scalemani.store.invariants.matrices import bounds, columns_ascend, sums_of_rows, symmetric
from scalemani.store.invariants.models import ALL_PIXELS
from scalemani.store.invariants.orders import numbered_by_first
from scalemani.store.invariants.values import (
    A_SHARE,
    NOT_NEGATIVE,
    POINTS,
    POSITIVE,
    STRICTLY_ASCENDING,
    in_count,
    one_of,
)
from scalemani.store.schema import ArrayDescription

CACHE_BYTES = 2**28  # of edges of blocks, where no stage has planned for more
EDGE = np.dtype([("targets", np.int32), ("sources", np.int32), ("values", np.float32)])


class StoredAffinities(StoredStage, stage="affinities"):
    """The affinity of every edge of the graph, in work order, and how it was computed."""

    values = Rows(
        "point neighbor",
        "float32",
        "the affinity of each edge of `neighbors`; with entropic affinities, those of a point sum to one; of points "
        "with weights, that of one copy to one copy, and those to all copies sum to one",
    ).with_invariants(A_SHARE, FALLING_IN_ROWS, SUM_TO_ONE_OVER_COPIES, FOLLOW_DISTANCES)
    beta = Rows("point", "float64", "1 / (2 sigma^2), sigma the point's bandwidth", "1 / as given^2").with_invariants(
        NOT_NEGATIVE
    )
    iterations = Rows("point", "int32", "steps of the root finder").with_invariants(NOT_NEGATIVE)
    saturated = Rows("point", "uint8", "1 where ties put the perplexity out of reach, else 0").with_invariants(
        one_of(0, 1)
    )
    duplicated = Rows("point", "uint8", "1 where the nearest neighbour is at distance 0, else 0").with_invariants(
        one_of(0, 1), MARKS_DUPLICATES
    )
    residuals = Rows("point", "float64", "entropy of the affinities less log(perplexity)", "nat").with_invariants(
        RESIDUALS_OF_VALUES, SOLVED
    )
    twins = Rows(
        "point", "float64", "the affinity of a copy of each point to each of its others; stored for points with weights"
    ).with_invariants(A_SHARE)
    sigma = Whole(
        "", "float64", "the sigma of Gaussian affinities; stored where it is chosen from the points", "as given"
    ).with_invariants(POSITIVE)
    SIGMA_UNIT: ClassVar = "sigma"


# Steps of the stage `components`, and the folders of what they write.
ROOTS_STEP, PIECES_STEP = "roots", "pieces"


class StoredComponents(StoredStage, stage="components"):
    """The connected components of the graph, the bridges that join them, or the rows of the one that is embedded."""

    labels = Rows(
        "point", "int32", "the component of each work row, numbered by their first rows", "component"
    ).with_invariants(numbered_by_first(), ONE_ALONG_EDGES)
    bridge_rows = Whole("bridge end", "int64", "the two ends of each bridge", "work row").with_invariants(
        in_count(POINTS), JOIN_COMPONENTS, JOIN_ALL
    )
    bridge_distances = Whole(
        "bridge", "float64", "the length of each bridge in sketches, or in a metric that compares rows", "as given"
    ).with_invariants(NOT_NEGATIVE, LENGTHS_OF_BRIDGES)
    bridge_weights = Whole("bridge", "float64", "the affinity of each bridge").with_invariants(NOT_NEGATIVE)
    kept_rows = Whole(
        "kept_point",
        "int64",
        "the rows of the largest component, ascending; stored where that alone is embedded",
        "input row",
    ).with_invariants(STRICTLY_ASCENDING, LARGEST_COMPONENT)
    degree_roots = RowsInFolders(
        "point",
        "float64",
        "the square root of the degree of each work row in P + P^T; removed when the stage ends",
        folders=(ROOTS_STEP,),
    ).with_invariants(NOT_NEGATIVE)
    pieces = RowsInFolders(
        "point",
        "int32",
        "the piece of each work row: what edges inside a range of blocks join, numbered in the range by first rows; "
        "removed when the stage ends",
        "piece of the range",
        folders=(PIECES_STEP,),
    ).with_invariants(in_count(POINTS))
    piece_labels = WholeInFolders(
        "range_piece",
        "int32",
        "the component of the pieces of all ranges in turn; removed when the stage ends",
        "component",
        folders=(PIECES_STEP,),
    ).with_invariants(numbered_by_first())
    LARGEST_UNIT: ClassVar = "kept_rows"
    LABELS_UNIT: ClassVar = f"{PIECES_STEP}-labels"

    @property
    def keeps_largest(self) -> bool:
        """Whether the largest component alone is embedded, and points are left out."""
        return self.group.committed(self.LARGEST_UNIT)


class StoredAffinityMatrix(StoredStage):
    """W by blocks of rows in work order, each a sparse matrix in CSR form."""

    indptr = Parts(
        "row_bound", "int64", "where each row of the block begins and ends among its nonzeros", "nonzero"
    ).with_invariants(bounds("indices", "values"))
    indices = Parts("nonzero", "int32", "the column of each nonzero, ascending in a row", "work row").with_invariants(
        in_count(POINTS), columns_ascend("indptr")
    )
    values = Parts(
        "nonzero",
        "float32",
        "the nonzeros of (P + P^T) / 2; of points with weights, their sums over the copies at both ends; lower between "
        "classes where the target weight is above zero; those of a W that was given in the place of points",
    ).with_invariants(POSITIVE, symmetric("indptr", "indices"), holds_edges("indices", "indptr"))
    degrees = Parts("row", "float64", "the sum of each row of the block").with_invariants(
        POSITIVE, sums_of_rows("indptr", "values"), ADD_UP_TO_AFFINITIES
    )

    @classmethod
    def parts(cls, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> dict[ArrayDescription, np.ndarray]:
        """Return the rows of a block in CSR form as they are stored, without zeros, with their degrees."""
        indptr, indices, values = without_zeros(indptr, indices, values)
        return {cls.indptr: indptr, cls.indices: indices, cls.values: values, cls.degrees: row_sums(values, indptr)}

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        return self.indptr(block), self.indices(block), self.values(block)

    def read_matrix(self, block: int, n_points: int) -> sp.csr_matrix:
        """Return one block's rows of W (n, N) as a sparse matrix."""
        indptr, indices, values = self.read_rows(block)
        return sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_points))

    def read_at(
        self, rows: np.ndarray, dimensions: Dimensions, over: Callable[..., Iterable[Any]] = map
    ) -> sp.csr_matrix:
        """Return rows (m, N) of W at ascending work rows (m,): blocks that hold none of them are not read."""

        def of_block(block: int) -> sp.csr_matrix:
            start, stop = dimensions.rows(block)
            first, last = np.searchsorted(rows, (start, stop))
            return self.read_matrix(block, dimensions.n_points)[rows[first:last] - start]

        return sp.vstack(list(over(of_block, np.unique(rows // dimensions.block_rows).tolist())), format="csr")

    def reached(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return work rows, ascending, that hold all columns (m,) of nonzeros, and the place of each among them."""
        rows, places = np.unique(columns, return_inverse=True)
        return rows, places

    def on_reached(self, rows_of_w: sp.csr_matrix) -> tuple[np.ndarray, sp.csr_matrix]:
        """Return the work rows (m,) that rows of W (n, N) reach, and these rows with a column for each: (n, m)."""
        reached, places = self.reached(rows_of_w.indices)
        shape = (rows_of_w.shape[0], len(reached))
        return reached, sp.csr_matrix((rows_of_w.data, places, rows_of_w.indptr), shape=shape)

    def read_degrees(self, n_points: int, empty: Empty = np.empty) -> np.ndarray:
        """Return the degrees (N,) float64 of W in an array made by `empty`."""
        degrees, first, block = empty((n_points,), np.float64), 0, 0
        while first < n_points:
            part = self.degrees(block)
            degrees[first : first + len(part)] = part
            first, block = first + len(part), block + 1
        return degrees

    def read_all_rows(self, n_blocks: int, over: Callable[..., Iterable[Any]] = map) -> AffinityRows:
        """Return all of W in memory, 8 bytes a nonzero; `over` runs blocks side by side."""
        counts = [np.diff(bounds) for bounds in over(self.indptr, range(n_blocks))]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts), dtype=np.int64)])
        ends = np.cumsum([part.sum() for part in counts])
        indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)

        def fill(block: int) -> None:
            _, block_indices, block_values = self.read_rows(block)
            inside = slice(ends[block] - len(block_indices), ends[block])
            indices[inside], values[inside] = block_indices, block_values

        run(over(fill, range(n_blocks)))
        return AffinityRows(indptr, indices, values)


class StoredSymmetricAffinities(StoredAffinityMatrix, stage="symmetric_affinities"):
    """W in work order: each block of rows is one sparse matrix in CSR form, stored or made when it is read."""

    image = Whole("extent", "int64", "frames, rows and columns; stored where W is that of pixels").with_invariants(
        ALL_PIXELS
    )
    reach = Whole("side", "int64", "how far the window of a pixel goes; with `image`", "pixel, frame").with_invariants(
        NOT_NEGATIVE
    )
    sigma = Whole("", "float64", "the sigma of these affinities; with `image`", "as given").with_invariants(POSITIVE)
    sources = Parts(
        "source_block",
        "int32",
        "the blocks whose edges end in this one, ascending; stored in place of `indices` and `values`, which are made "
        "of `neighbors`, `affinities` and bridges, summed in float64 and rounded to float32, without zeros",
        "block",
    ).with_invariants(STRICTLY_ASCENDING, SEND_EDGES)

    @classmethod
    def degrees_alone(
        cls, rows: Mapping[ArrayDescription, np.ndarray], sources: np.ndarray
    ) -> dict[ArrayDescription, np.ndarray]:
        """Return what is stored of a block whose rows are made when they are read, of edges of blocks (m,)."""
        return {**{one: rows[one] for one in (cls.indptr, cls.degrees)}, cls.sources: sources.astype(np.int32)}


@dataclass(frozen=True)
class MadeAffinities(StoredSymmetricAffinities):
    """W whose degrees are stored, and whose rows are made of the affinities of edges each time they are read.

    `cache_bytes` of edges of blocks, by the block that they end in, stay for the next rows: near blocks share most.
    """

    neighbors: StoredNeighbors
    affinities: StoredAffinities
    components: StoredComponents
    cache_bytes: int

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        sources = sorted({block, *self.sources(block).tolist()})
        incoming = join_edges([self.edges_between(source, block) for source in sources])
        bridges = both_ways(self.components.bridge_rows.read_once(), self.components.bridge_weights.read_once())
        start = block * self.group.block_rows
        return without_zeros(*symmetric_rows(*self.edges_of(block), start, incoming, bridges))

    def edges_of(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours (n, k) of a block that have affinities, and these."""
        values, lists = self.affinities.values.read_block(block), self.neighbors.indices(self.neighbors.final_step)
        return np.ascontiguousarray(lists.read_block(block)[:, : values.shape[1]]), values

    def edges_between(self, source: int, block: int) -> DirectedEdges:
        """Return the edges of a block of rows that end in another."""
        edges = PROCESS.blocks.read(self.group, "edges", source, self.cache_bytes, self.edges_by_block)
        rows = self.group.block_rows
        some = edges[slice(*np.searchsorted(edges["targets"], (block * rows, (block + 1) * rows)))]
        return DirectedEdges(some["targets"], some["sources"], some["values"])

    def edges_by_block(self, source: int) -> np.ndarray:
        """Return the edges (E,) of a block of rows, in the order of the blocks that they end in."""
        (indices, values), rows = self.edges_of(source), self.group.block_rows
        blocks = np.unique(indices // rows).tolist()
        joined = join_edges(incoming_edges(indices, values, source * rows, rows, blocks))
        edges = np.empty(len(joined.targets), EDGE)
        for name, column in joined._asdict().items():
            edges[name] = column
        return edges


class StoredNormalizedAffinities(StoredAffinityMatrix, stage="normalized_affinities"):
    """W normalised by density, q^-alpha W q^-alpha, in the form of `symmetric_affinities`."""

    values = Parts("nonzero", "float32", "the nonzeros of W, each over (q_n q_m)^alpha").with_invariants(
        POSITIVE, symmetric("indptr", "indices")
    )
    degrees = Parts("row", "float64", "the sum of each row of the block").with_invariants(
        POSITIVE, sums_of_rows("indptr", "values")
    )


class PixelAffinities(Protocol):
    """A kind of affinities between pixels, which writes W."""

    def stored_nonzeros(self, sizes: Sizes, /) -> int:
        """Return the nonzeros of W that are stored, at most."""
        ...

    def memory(self, sizes: Sizes, /) -> Memory:
        """Return what writing W takes."""
        ...

    def write(self, context: StageContext, /) -> dict[str, Any]:
        """Write W, or what its rows are made of; return certificates."""
        ...


class ComputedAffinities(PixelAffinities, Protocol):
    """Affinities between neighbours of pixels, whose rows of W are computed when they are read.

    A group that has a unit of the name of these neighbours has what rows are made of.
    """

    def stored_rows(self, group: StageGroup, pixels: StoredWorkPoints, /) -> StoredSymmetricAffinities:
        """Return the reader of W."""
        ...


def pixel_affinities(params: Resolved) -> PixelAffinities:
    """Return the affinities of a kind between pixels, or those that their neighbours have."""
    of_kind = extensions(PixelAffinitiesExtension).get(params.affinities.kind)
    affinities: PixelAffinities = (of_kind or extensions(PixelsExtension)[params.neighbors.method]).load()
    return affinities


def affinity_graph(inputs: Mapping[str, StageGroup], cache_bytes: int = CACHE_BYTES) -> StoredAffinityMatrix:
    """Return the W that a stage works on, from its inputs: normalised by density where the method has that stage.

    Where its rows are made of affinities, `cache_bytes` of what they are made of stay for the next.
    """
    if StoredNormalizedAffinities.STAGE in inputs:
        return StoredNormalizedAffinities(inputs[StoredNormalizedAffinities.STAGE])
    group = inputs[StoredSymmetricAffinities.STAGE]
    for unit, extension in extensions(PixelsExtension).items():
        if group.committed(unit):
            computed: ComputedAffinities = extension.load()
            return computed.stored_rows(group, StoredWorkPoints(inputs[StoredWorkPoints.STAGE]))
    if not group.holds(f"{block_unit(0)}/{StoredSymmetricAffinities.sources.name}"):
        return StoredSymmetricAffinities(group)
    return MadeAffinities(
        group,
        StoredNeighbors(inputs[StoredNeighbors.STAGE]),
        StoredAffinities(inputs[StoredAffinities.STAGE]),
        StoredComponents(inputs[StoredComponents.STAGE]),
        cache_bytes,
    )
