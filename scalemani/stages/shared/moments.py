"""Sums over all points and their rows of Z, in one pass: Z^T Y, Z^T Z, and sums of the points of each class."""

import operator
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.kernels.spectral.linear import add_moments
from scalemani.kernels.spectral.reduced import diagonal_product, symmetric_part
from scalemani.stages.arrays.landmarks import StoredLandmarks, StoredLandmarkWeights, sparse_weights
from scalemani.stages.arrays.points import StoredClasses, points_in_order
from scalemani.stages.shared.tiles import added, fold_tiles, parts_of_tiles, sums_held

TILES_TOGETHER = 64  # whose sums are added where they are computed; another number would change the last bits
PARTS_AT_ONCE = 3  # of a task: its sum, the one that is added, and one on its way
COPIES_OF_BLOCK = 3  # as read, decoded, and a tile in float64


class Moments(NamedTuple):
    """Sums over points Y with rows of Z, about some centre c.

    moments : (L, D), Z^T (Y - c)
    weights : (L,), Z^T 1
    gram : (L, L), Z^T Z
    sums : (C, D), of Y - c over each class; one class where there are no labels
    counts : (C,), points of each class
    squares : sum of |y - c|^2
    """

    moments: np.ndarray
    weights: np.ndarray
    gram: sp.csr_matrix
    sums: np.ndarray
    counts: np.ndarray
    squares: float

    @property
    def shift(self) -> np.ndarray:
        """The mean of the points (D,), less the centre."""
        return self.sums.sum(axis=0) / self.counts.sum()

    def centered(self) -> np.ndarray:
        """Return G = Z^T (Y - mean): (L, D)."""
        return self.moments - np.outer(self.weights, self.shift)

    @property
    def total_scatter(self) -> float:
        """The sum of the squared distances of the points from their mean."""
        return max(0.0, self.squares - float(self.counts.sum() * (self.shift @ self.shift)))


def moments_memory(sizes: Sizes, n_classes: int = 1) -> Memory:
    """Return what the sums take: Z' Y, Z' Z of runs of tiles, and the rows they are of."""
    dimensions, features, width = sizes.dimensions, sizes.dimensions.n_features, sizes.params.landmark_neighbors
    summed = array("float64", sizes.params.n_landmarks + n_classes, features) + entries(gram_entries(sizes))
    return Memory(
        process={"Z' Y and Z' Z on the way up the tree": sums_held(dimensions.n_points, TILES_TOGETHER) * summed},
        task={
            "Z' Y and Z' Z of a run of tiles": PARTS_AT_ONCE * summed,
            "points of a block": 2 * dimensions.block_rows * dimensions.row_bytes,
            "a tile of points, centred": COPIES_OF_BLOCK * array("float64", TILE_ROWS, features),
            "rows of Z in a block": COPIES_OF_BLOCK * array("float64", dimensions.block_rows, 2 * width),
        },
    )


def gram_memory(sizes: Sizes) -> Memory:
    """Return what the sum of Z^T Z takes: that of a run of tiles, and rows of Z in it."""
    rows = array("float64", TILES_TOGETHER * TILE_ROWS, 2 * sizes.params.landmark_neighbors)
    summed = PARTS_AT_ONCE * entries(gram_entries(sizes))
    held = sums_held(sizes.dimensions.n_points, TILES_TOGETHER) * entries(gram_entries(sizes))
    return Memory({"Z' Z on the way up the tree": held}, {"Z' Z of a run of tiles": summed + COPIES_OF_BLOCK * rows})


def gram_entries(sizes: Sizes) -> int:
    """Return the nonzeros of Z^T Z of a run of tiles, at most."""
    width = sizes.params.landmark_neighbors
    return min(sizes.params.n_landmarks**2, TILES_TOGETHER * TILE_ROWS * width**2)


def summed_gram(context: StageContext) -> sp.csr_matrix:
    """Return Z^T Z (L, L), symmetric bit for bit."""
    return symmetric_part(fold_tiles(context, gram_of_tiles, operator.add, TILES_TOGETHER, "gram"))


def gram_of_tiles(task: StageTask, tiles: range) -> sp.csr_matrix:
    """Return what consecutive tiles of rows of Z add to Z^T Z."""
    weights, n_landmarks = task.stored(StoredLandmarkWeights), task.params.n_landmarks
    parts = [weights.read_matrix(block, n_landmarks)[part] for block, part in parts_of_tiles(task, tiles)]
    rows = sp.vstack(parts, format="csr")
    return diagonal_product(rows, np.ones(rows.shape[0]))


def center_of(task: StageTask) -> np.ndarray:
    """Return the mean (D,) float64 of the landmarks: near enough to the points' for sums to keep their digits."""
    return task.stored(StoredLandmarks).points.read_once().mean(axis=0, dtype=np.float64)


def summed_moments(context: StageContext) -> Moments:
    """Return the sums over all points."""
    return fold_tiles(context, moments_of_tiles, added, TILES_TOGETHER, "moments")


def moments_of_tiles(task: StageTask, tiles: range) -> Moments:
    """Return what consecutive tiles add: row by row, so that bits do not depend on blocks."""
    n_landmarks, n_features = task.params.n_landmarks, task.dimensions.n_features
    center, weights = task.once(center_of), task.stored(StoredLandmarkWeights)
    moments, used, squares = np.zeros((n_landmarks, n_features)), np.zeros(n_landmarks), 0.0
    classes = task.stored(StoredClasses) if StoredClasses.STAGE in task.inputs else None
    n_classes, rows_of_z = 1 if classes is None else len(classes.counts.read_once()), []
    sums, counts = np.zeros((n_classes, n_features)), np.zeros(n_classes, np.int64)
    for tile, block, part in tiles_of(task, tiles):
        indices, values = weights.indices.read_block(block)[part], weights.values.read_block(block)[part]
        add_moments(tile, center, indices, values, moments, used)
        centred = tile - center
        squares += float(np.einsum("ij,ij->", centred, centred))
        codes = np.zeros(len(tile), np.int32) if classes is None else classes.codes.read_block(block)[part]
        counts += np.bincount(codes, minlength=n_classes)
        sums += sp.csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))), (n_classes, len(codes))) @ centred
        rows_of_z.append(sparse_weights(indices, values, n_landmarks))
    stacked = sp.vstack(rows_of_z, format="csr")
    gram = symmetric_part(diagonal_product(stacked, np.ones(stacked.shape[0])))
    return Moments(moments, used, gram, sums, counts, squares)


def tiles_of(task: StageTask, tiles: range) -> Iterator[tuple[np.ndarray, int, slice]]:
    """Yield consecutive tiles of the points, and their place: a block and rows in it."""
    points = points_in_order(task.inputs).points
    for block, part_of_block in parts_of_tiles(task, tiles):
        rows = points.read_block(block)
        for tile in range(part_of_block.start, part_of_block.stop, TILE_ROWS):
            part = slice(tile, min(tile + TILE_ROWS, rows.shape[0]))
            yield dense_rows(rows[part]), block, part
