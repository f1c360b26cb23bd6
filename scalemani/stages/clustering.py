"""Clusters of the embedding: k-means with many restarts on the landmarks only, then once over all points from there.

Without points there are no landmarks: as many rows of the embedding, drawn at random, stand for them.
Rows of the embedding are taken at unit length, so that k-means compares directions. Source: [LLL] 4.7 and 4.7.1.

Of K well-separated clusters K - 1 eigenvectors, without the constant one, are nearly constant in each, and a gap of the
eigenvalues follows them: of three and more the K-th is left out where it lies above such a gap.
"""

import functools
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.kmeans import LloydPart, assign, kmeans, lloyd_part, moved_centers
from scalemani.stages.arrays.embeddings import StoredClustering, StoredEmbedding
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.shared.output import pieces_read
from scalemani.stages.shared.tiles import add_fold_of_tiles, added, parts_of_tiles

FILES_OF_PASS_BYTES = 3 * 4096  # centres, their description and their mark
TILES_TOGETHER = 64  # whose sums are added where they are computed; another number would change the last bits


def memory(sizes: Sizes) -> Memory:
    """Return what the landmarks take in k-means, and a block of the embedding."""
    params, rows, width = sizes.params, sizes.dimensions.block_rows, sizes.params.n_components
    landmarks = array("float64", min(params.n_landmarks, sizes.dimensions.n_points), width)
    anchors = 16 if params.landmarks.off_data else 0  # eight of each, as gathered and beside each other
    return Memory(
        process={
            # Gathered, at unit length, centred by k-means, and a column at work.
            "coordinates of the landmarks": (4 + anchors) * landmarks,
            "distances of the landmarks to the centres": landmarks / width * params.clustering.n_clusters,
            **pieces_read(sizes),
        },
        task={
            # As stored, its squares, at unit length, and a chunk on its way.
            "rows of the embedding in a block": 4 * array("float64", rows, width),
            "distances to the centres, a column that is summed, labels": array("float64", rows, 2.5),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the labels, and the centres of every pass."""
    stored, passes = StoredClustering, sizes.params.clustering.most_passes
    files = {"files of a pass": (passes + 1) * FILES_OF_PASS_BYTES}
    centers = written([stored.pass_centers], sizes, passes)
    return Disk({**written([stored.labels, stored.centers], sizes), **centers, **files})


def run(context: StageContext) -> dict[str, Any]:
    """Cluster the landmarks, then all points by blocks from the landmarks' centres until these stay where they are."""
    task, params, output = context.task, context.task.params.clustering, StoredClustering(context.task.output)
    cut = task.once(cut_of)
    if not task.output.committed(StoredClustering.CENTERS_UNIT):
        centers, passes, moved = run_kmeans(context, cut) if cut.by_kmeans else (np.zeros((1, 1)), 0, 0.0)
        task.output.write_whole(
            {
                StoredClustering.centers: centers,
                StoredClustering.passes: np.array(passes),
                StoredClustering.moved: np.array(moved),
            },
            StoredClustering.CENTERS_UNIT,
        )
    task.output.create(task.dimensions.n_points, [StoredClustering.labels.sized()])
    sizes = context.compute(labels_and_sizes)
    passes, moved = int(output.passes.read()), float(output.moved.read())
    if n_empty := int(np.count_nonzero(sizes == 0)):
        context.warn(
            f"{task.stage}: {n_empty} of {len(sizes)} clusters have no points: the embedding tells fewer apart; lower "
            "clustering.n_clusters"
        )
    certificates = {
        "columns": cut.width,
        "passes": passes,
        "settled": moved <= params.settled,
        "sizes": sizes.tolist(),
    }
    return {**certificates, **warn_of_pieces(context, cut)} if cut.n_pieces > 1 else certificates


def graphs(context: StageContext) -> Steps:
    """Yield a pass of k-means, of which there are as many as its centres move, and the labels."""
    if not context.task.output.committed(StoredClustering.CENTERS_UNIT):
        yield "centres of the landmarks"
        yield functools.partial(pass_over_points, 0)
        most = context.task.params.clustering.most_passes
        yield f"centres move: the pass is repeated until they stay, {most} times at most"
    yield labels_and_sizes


def labels_and_sizes(graph: StageGraph) -> Key | None:
    """Add the labels of all blocks, and the points of each cluster."""
    graph.map_blocks(labels_block)
    return graph.fold_blocks(sizes_in_block, operator.add)


class Cut(NamedTuple):
    """What of a graph in pieces k-means cuts: the largest piece, into as many clusters as the others leave.

    `pieces` (N,) are those of the points, by size, all one of a connected graph; `clusters` (P,) those of the pieces.
    K-means finds the first `n_clusters`, those of the only piece or of the largest, by `width` columns.
    """

    n_clusters: int
    width: int
    pieces: np.ndarray
    clusters: np.ndarray

    @property
    def n_pieces(self) -> int:
        """How many pieces the graph has."""
        return len(self.clusters)

    @property
    def by_kmeans(self) -> bool:
        """Whether there is something for k-means to find."""
        return self.n_clusters > 1 or self.n_pieces == 1


def cut_of(task: StageTask) -> Cut:
    """Return what k-means cuts: of as many pieces as clusters nothing.

    Of more pieces, each joins the group that has the fewest points so far, the largest first.
    """
    n_clusters, width = task.params.clustering.n_clusters, task.params.n_components
    stored = task.stored(StoredEmbedding)
    if not stored.in_pieces:
        one = np.zeros(1, np.int32)
        return Cut(
            n_clusters, columns_for(task, n_clusters, width), np.broadcast_to(one, task.dimensions.n_points), one
        )
    pieces = stored.pieces.read_once()
    sizes = np.bincount(pieces)
    left = n_clusters - len(sizes) + 1
    if left >= 1:
        others = np.append(0, np.arange(left, n_clusters)).astype(np.int32)
        return Cut(left, columns_for(task, left, min(width, left)), pieces, others)
    groups, points = np.empty(len(sizes), np.int32), np.zeros(n_clusters, np.int64)
    for piece, size in enumerate(sizes.tolist()):
        groups[piece] = np.argmin(points)
        points[groups[piece]] += size
    return Cut(1, 1, pieces, groups)


def columns_for(task: StageTask, n_clusters: int, width: int) -> int:
    """Return how many of `width` columns k-means takes: as requested, or all, of K for K clusters none beyond a gap."""
    params = task.params.clustering
    if params.n_columns is not None:
        return min(params.n_columns, width)
    values = task.stored(StoredEmbedding).eigenvalues.read_once()
    # Of two clusters one column would be left, and of its rows at unit length no more than a sign.
    beyond = width == n_clusters > 2 and values[width - 1] >= params.gap * max(values[width - 2], 0.0)
    return width - 1 if beyond else width


def warn_of_pieces(context: StageContext, cut: Cut) -> dict[str, Any]:
    """Say how pieces have become clusters where these are not as many, and return it as certificates."""
    n_clusters = context.task.params.clustering.n_clusters
    if cut.n_pieces != n_clusters:
        how = (
            f"each is a cluster, but the largest, which its eigenvectors cut into {cut.n_clusters}"
            if cut.n_pieces < n_clusters
            else "clusters are groups of pieces, of about equal sizes, which no affinity has joined"
        )
        context.warn(f"{context.task.stage}: the graph has {cut.n_pieces} pieces for {n_clusters} clusters: {how}")
    return {"pieces": cut.n_pieces, "clusters_of_largest_piece": cut.n_clusters}


def landmark_coordinates(task: StageTask, cut: Cut) -> np.ndarray:
    """Return the coordinates (L, d) of the landmarks; of rows of what is cut, drawn at random, where there are none."""
    embedding = task.stored(StoredEmbedding).embedding
    if cut.n_pieces == 1 and StoredLandmarks.STAGE in task.inputs:
        return task.stored(StoredLandmarks).coordinates_in(embedding)[:, : cut.width]
    rows = np.flatnonzero(cut.pieces == 0)
    chosen = sample_rows(task.params.seed, "clustering/rows", len(rows), task.params.n_landmarks)
    return embedding.gather(rows[chosen])[:, : cut.width]


def run_kmeans(context: StageContext, cut: Cut) -> tuple[np.ndarray, int, float]:
    """Return the centres (K, d) of k-means over all points, the passes it took, and the movement in the last one."""
    task, params, moved, passes = context.task, context.task.params.clustering, np.inf, 0
    chosen = unit_rows(landmark_coordinates(task, cut))
    centers = kmeans(chosen, cut.n_clusters, task.params.seed, params.n_restarts).centers
    while passes < params.most_passes and moved > params.settled:
        stored = StoredClustering.pass_centers.numbered(passes)
        task.output.write_whole({stored: centers}, stored.name)
        part = context.compute(functools.partial(pass_over_points, passes))
        following = moved_centers(centers, part)
        passes, moved, centers = passes + 1, float(np.abs(following - centers).max()), following
    return centers, passes, moved


def pass_over_points(number: int, graph: StageGraph) -> Key | None:
    """Add what all tiles add in a pass."""
    return add_fold_of_tiles(graph, functools.partial(tiles_part, number), added, TILES_TOGETHER)


def tiles_part(number: int, task: StageTask, tiles: range) -> LloydPart:
    """Return what consecutive tiles add in a pass: summed tile by tile, so that bits do not depend on blocks."""
    return functools.reduce(added, tile_parts(number, task, tiles))


def tile_parts(number: int, task: StageTask, tiles: range) -> Iterator[LloydPart]:
    """Yield what each tile adds; every block that holds some of them is read once."""
    centers, cut = StoredClustering(task.output).centers_before(number).read_once(), task.once(cut_of)
    for block, part in parts_of_tiles(task, tiles):
        rows, (start, _) = task.stored(StoredEmbedding).embedding.read_block(block), task.dimensions.rows(block)
        rows = unit_rows(rows[:, : cut.width])
        for tile in range(part.start, part.stop, TILE_ROWS):
            tile_rows = rows[tile : tile + TILE_ROWS]
            yield lloyd_part(tile_rows[cut.pieces[start + tile : start + tile + len(tile_rows)] == 0], centers)


def sizes_in_block(task: StageTask, block: int) -> np.ndarray:
    """Return how many rows of a block each cluster has, (K,) int64."""
    labels = StoredClustering(task.output).labels.read_block(block)
    return np.bincount(labels, minlength=task.params.clustering.n_clusters)


def labels_block(task: StageTask, block: int) -> Arrays:
    """Return the nearest centre of each row of a block that k-means cuts, and of others the cluster of their piece."""
    cut = task.once(cut_of)
    pieces = cut.pieces[slice(*task.dimensions.rows(block))]
    labels, chosen = cut.clusters[pieces], pieces == 0
    if cut.n_clusters > 1:
        rows = unit_rows(task.stored(StoredEmbedding).embedding.read_block(block)[chosen, : cut.width])
        labels[chosen] = assign(rows, StoredClustering(task.output).centers.read_once())[0]
    return {StoredClustering.labels: labels}


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows of unit length; a row of zeros stays."""
    rows, _ = at_unit_scale(rows)  # squares of lengths leave float64 before these do
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
