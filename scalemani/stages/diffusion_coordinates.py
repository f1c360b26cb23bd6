"""Diffusion maps: each eigenvector times the power of its eigenvalue mu = 1 - lambda that the time asks for.

Diffusion maps from eigenvectors of L v = lambda D v.

Source: Coifman and Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 2006, section 2.3.
"""

from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.stages.arrays.embeddings import StoredDiffusionCoordinates, StoredEmbedding
from scalemani.stages.shared.output import create_embedding, pieces_read


def diffusion_scales(eigenvalues: np.ndarray, time: float) -> np.ndarray:
    """Return |mu|^time (d,) of each column, mu = 1 - lambda; exactly one for time 0.

    The sign of mu^time would only turn a column whose sign is arbitrary, and is none where `time` is no integer.
    """
    return np.abs(1.0 - eigenvalues) ** time


def memory(sizes: Sizes) -> Memory:
    """Return what a block of the embedding takes: as read, scaled, and encoded."""
    block = array("float64", sizes.dimensions.block_rows, sizes.params.n_components)
    return Memory(pieces_read(sizes), {"rows of the embedding in a block": 3 * block})


def run(context: StageContext) -> dict[str, Any]:
    """Scale the blocks that are missing; say by what."""
    task = context.task
    create_embedding(task, StoredDiffusionCoordinates.embedding)
    context.compute(scaled)
    return {"scales": factors(task).tolist()}


def graphs(context: StageContext) -> Steps:
    """Yield the scaled blocks."""
    yield scaled


def scaled(graph: StageGraph) -> None:
    """Add the coordinates of all blocks."""
    graph.map_blocks(scaled_block)


def factors(task: StageTask) -> np.ndarray:
    """Return the factor (d,) of each column."""
    eigenvalues = task.stored(StoredEmbedding).eigenvalues.read_once()
    return diffusion_scales(eigenvalues, task.params.diffusion_coordinates.time)


def scaled_block(task: StageTask, block: int) -> Arrays:
    """Return the coordinates of one block."""
    stored = task.stored(StoredEmbedding)
    scales = factors(task)
    if stored.in_pieces:
        pieces = stored.pieces.read_once()[slice(*task.dimensions.rows(block))]
        of_pieces = diffusion_scales(stored.piece_eigenvalues.read_once(), task.params.diffusion_coordinates.time)
        scales = of_pieces[pieces]
    return {StoredDiffusionCoordinates.embedding: stored.embedding.read_block(block) * scales}
