"""The embedding of a graph in pieces: each by its eigenvectors, one after the other, in memory or mapped files."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes, grouping
from scalemani.kernels.arrays.grouping import group_large, inverse_order, separate_items
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.components import Components, components, join_rows
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.spectral.accuracy import UNKNOWN, Following, count_near_zero
from scalemani.kernels.spectral.coarsening import DENSE_NODES, row_slice
from scalemani.kernels.spectral.pieces import PieceMap, PieceTarget, numbered_by_size, piece_map
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.shared.output import in_input_order

REPORTED_SIZES = 10


def memory_of_pieces(sizes: Sizes) -> Memory:
    """Return what finding pieces takes, and W by pieces with the coarse graphs of the largest while they are made."""
    if not sizes.params.may_fall_apart:
        return Memory()
    n_points, dense = sizes.dimensions.n_points, min(sizes.dimensions.n_points, DENSE_NODES)
    by_piece = 0 if sizes.params.embedding.by_passes else entries(sizes.nonzeros, "float32")
    of_pieces = Memory(
        {"a small piece, dense, and what LAPACK works in": 5 * array("float64", dense, dense)},
        points={"rows summed by node, by panel and together; coarse graphs": 3 * entries(sizes.nonzeros)},
    )
    return Memory(
        points={
            "labels of the pieces, numbers by size, parents": 3 * array("int32", n_points),
            "W by pieces, places in it, and bounds of its rows": array("int64", n_points, 2) + by_piece,
            "vectors of a piece and products": 3 * array("float64", n_points, sizes.params.n_components),
        },
        steps={"pieces": grouping(n_points, "points by piece") + of_pieces},
    )


def pieces_of(context: StageContext, degrees: np.ndarray) -> Components | None:
    """Return the pieces of W by its degrees (N,), in work order and numbered by size; None where it is connected."""
    task, workspace = context.task, context.workspace
    stored, dimensions = affinity_graph(task.inputs, task.cache_bytes), task.dimensions
    parents, roots = separate_items(dimensions.n_points, workspace.empty), workspace.as_large(np.sqrt(degrees))
    for block in range(dimensions.n_blocks):
        join_rows(parents, stored.read_rows(block), dimensions.rows(block)[0], roots)
    pieces = components(parents, workspace.empty)
    return numbered_by_size(pieces) if len(pieces.sizes) > 1 else None


def rows_by_piece(context: StageContext, pieces: Components, order: np.ndarray) -> Rows:
    """Return W with rows by piece, in `order` (N,), columns counted from the first row of their piece.

    Edges between pieces, which rounding alone would count, are left out.
    """
    places, firsts = inverse_order(order), np.cumsum(pieces.sizes) - pieces.sizes
    counts = np.zeros(len(order), np.int64)
    for rows, lengths, _, _ in edges_inside(context, pieces.labels):
        counts[places[rows]] = lengths
    workspace = context.workspace
    bounds = workspace.as_large(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))
    columns, weights = workspace.empty((bounds[-1],), np.int32), workspace.empty((bounds[-1],), np.float32)
    for rows, lengths, ends, values in edges_inside(context, pieces.labels):
        begins = bounds[places[rows]] - (np.cumsum(lengths) - lengths)
        targets = np.repeat(begins, lengths) + np.arange(len(ends))
        columns[targets] = places[ends] - firsts[pieces.labels[ends]]
        weights[targets] = values
    return bounds, columns, weights


def edges_inside(
    context: StageContext, labels: np.ndarray
) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the rows of each block of W, how many edges each has inside its piece, and these: ends and values."""
    task = context.task
    stored, dimensions = affinity_graph(task.inputs, task.cache_bytes), task.dimensions
    for block in range(dimensions.n_blocks):
        rows = slice(*dimensions.rows(block))
        indptr, ends, values = stored.read_rows(block)
        inside = labels[ends] == np.repeat(labels[rows], np.diff(indptr))
        counted = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
        yield rows, np.diff(counted[indptr]), ends[inside], values[inside]


def embed_pieces(
    context: StageContext, pieces: Components, target: PieceTarget
) -> tuple[np.ndarray, PieceMap, dict[str, Any]]:
    """Return the vectors (N, d) in work order, the map of the largest piece, and certificates; store the pieces.

    Columns that a small piece has no eigenvector for are zero, and their eigenvalues 1.
    """
    n_pieces, width, workspace = len(pieces.sizes), target.n_components, context.workspace
    order, bounds = group_large(pieces.labels.__getitem__, len(pieces.labels), n_pieces, workspace.empty)
    rows = rows_by_piece(context, pieces, order)
    vectors = workspace.zeros((len(pieces.labels), width), np.float64)
    values, maps = np.ones((n_pieces, width)), []
    context.executor.progress.start(context.task.stage, n_pieces, "piece")
    for piece in range(n_pieces):
        first, stop = bounds[piece], bounds[piece + 1]
        solved = piece_map(row_slice(rows, first, stop), target, workspace)
        count = len(solved.eigenvalues)
        vectors[order[first:stop], :count], values[piece, :count] = solved.vectors, solved.eigenvalues
        guards = placed_guards(solved.following, order[first:stop], len(vectors), workspace) if piece == 0 else UNKNOWN
        maps.append(solved._replace(vectors=solved.vectors if piece == 0 else solved.vectors[:0], following=guards))
        context.executor.progress.advance()
    by_input = in_input_order(context.task, pieces.labels[:, np.newaxis]).astype(np.int32)[:, 0]
    stored: Arrays = {StoredEmbedding.pieces: by_input, StoredEmbedding.piece_eigenvalues: values}
    context.task.output.write_whole(stored, StoredEmbedding.PIECES_UNIT)
    warn_of_pieces(context, pieces.sizes)
    certificates = {
        "residual": max(float(solved.residuals.max(initial=0.0)) for solved in maps),
        "near_zero_eigenvalues": sum(count_near_zero(solved.eigenvalues) for solved in maps),
        "pieces": n_pieces,
        "largest_pieces": pieces.sizes[:REPORTED_SIZES].tolist(),
        "small_piece_points": int(pieces.sizes[pieces.sizes <= width].sum()),
    }
    return vectors, maps[0], certificates


def placed_guards(following: Following, rows: np.ndarray, n_points: int, workspace: Workspace) -> Following:
    """Return what follows in the largest piece, whose points have these rows (n,): vectors are zero in all others."""
    if following.vectors is None:
        return following
    placed = workspace.zeros((n_points, following.vectors.shape[1]), np.float32)
    placed[rows] = following.vectors
    return following._replace(vectors=placed)


def warn_of_pieces(context: StageContext, sizes: np.ndarray) -> None:
    """Say into how many pieces the graph falls, by their sizes (P,), and what that means for the result."""
    params = context.task.params
    means = (
        "the descent starts from all of them side by side, by size"
        if params.layout.objective is not None
        else "coordinates compare points of one piece, and not of several"
    )
    remedy = "give more neighbours a point" if params.precomputed_input else "raise neighbors.n_neighbors"
    context.warn(
        f"{context.task.stage}: the graph has {len(sizes)} pieces that no edge joins (largest: "
        f"{sizes[:REPORTED_SIZES].tolist()}); each is embedded from its eigenvectors: {means}; {remedy} where that "
        "should be one graph"
    )
