"""Embeddings that one process makes and holds in work order, written in input order."""

import functools

import numpy as np

from scalemani.chunked.landmark_weights import stored_landmark_weights
from scalemani.chunked.needs import GROWING, Held
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.reordering import reordered
from scalemani.kernels.arrays.workspace import Empty
from scalemani.records.embeddings import StoredLandmarkScores
from scalemani.records.points import StoredWorkPoints
from scalemani.store.schema import ArrayDescription


def embedding_held(sizes: Sizes) -> Held:
    """List the embedding of a stage that finds it in work order and writes it by `write_embedding`."""
    n_points, width = sizes.dimensions.n_points, sizes.params.n_components
    return Held(
        "embedding and rows, in work and in input order", GROWING, n_points, width + 1, copies=2, step="writing"
    )


def over_landmarks(task: StageTask, coordinates: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return Z times the coordinates (L, d) of the landmarks: (N, d) float64, in work order."""
    stored = stored_landmark_weights(task.inputs)
    vectors = empty((task.dimensions.n_points, coordinates.shape[1]), np.float64)
    for block in range(task.dimensions.n_blocks):
        weights = stored.read_matrix(block, len(coordinates))
        vectors[slice(*task.dimensions.rows(block))] = weights @ coordinates
    return vectors


def in_input_order(task: StageTask, positions: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return positions (N, d) of the order that a stage works in, in input order."""
    if StoredWorkPoints.STAGE not in task.inputs:
        return positions
    input_rows = StoredWorkPoints(task.inputs[StoredWorkPoints.STAGE]).input_rows.read(empty)
    return reordered(positions, input_rows, np.float64, empty)


def write_scores(stored: StoredLandmarkScores, eigenvalues: np.ndarray, vectors: np.ndarray) -> None:
    """Write the eigenvalues (d,) and the landmarks' coordinates (L, d) of an embedding, unless they are stored."""
    if not stored.group.committed(stored.SOLVED):
        arrays = {type(stored).eigenvalues: eigenvalues, type(stored).vectors: vectors}
        stored.group.write_whole(arrays, stored.SOLVED)


def write_over_landmarks(work: StageWork, stored: StoredLandmarkScores) -> None:
    """Write the embedding of all points, Z times the stored coordinates of the landmarks."""
    empty = work.workspace().empty
    write_embedding(work, type(stored).embedding, over_landmarks(work.task, stored.vectors.read(), empty), empty)


def write_embedding(
    work: StageWork, described: ArrayDescription, positions: np.ndarray, empty: Empty = np.empty
) -> None:
    """Write positions in input order, by blocks, from this process.

    Parameters
    ----------
    positions : (N, d) float64, in work order
    empty : makes the array (N, d) in input order: in memory, or in a mapped file
    """
    embedding = in_input_order(work.task, positions, empty)
    work.task.output.create(len(embedding), [described.sized(embedding.shape[1])])
    work.map_blocks_here(functools.partial(embedding_block, described, embedding))


def embedding_block(described: ArrayDescription, embedding: np.ndarray, task: StageTask, block: int) -> Arrays:
    """Return one block of the embedding.

    Parameters
    ----------
    embedding : (N, d) float64, in input order
    """
    return {described: embedding[slice(*task.dimensions.rows(block))]}
