"""Diffusion maps: each eigenvector times the power of its eigenvalue mu = 1 - lambda that the time asks for."""

from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_TASK, Held
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.spectral.diffusion import diffusion_scales
from scalemani.records.embeddings import StoredDiffusionCoordinates, StoredEmbedding

COPIES_OF_BLOCK = 3  # as read, scaled, and encoded


def memory(sizes: Sizes) -> list[Held]:
    """List a block of the embedding, before and after."""
    rows, width = sizes.dimensions.block_rows, sizes.params.n_components
    return [Held("rows of the embedding in a block", EACH_TASK, rows, width, "float64", COPIES_OF_BLOCK)]


def run(work: StageWork) -> dict[str, Any]:
    """Scale the blocks that are missing; say by what."""
    task = work.task
    task.output.create(task.dimensions.n_points, [StoredDiffusionCoordinates.embedding.sized(task.params.n_components)])
    work.map_blocks(scaled_block)
    return {"scales": factors(task).tolist()}


def factors(task: StageTask) -> np.ndarray:
    """Return the factor (d,) of each column."""
    eigenvalues = StoredEmbedding(task.inputs["embedding"]).eigenvalues.read_once()
    return diffusion_scales(eigenvalues, task.params.diffusion_coordinates.time)


def scaled_block(task: StageTask, block: int) -> Arrays:
    """Return the coordinates of one block."""
    rows = StoredEmbedding(task.inputs["embedding"]).embedding.read_block(block)
    return {StoredDiffusionCoordinates.embedding: rows * factors(task)}
