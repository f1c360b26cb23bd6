"""Embeddings that one process holds in work order, written in input order."""

import functools

import numpy as np

from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.workspace import Empty
from scalemani.memory.kept import read_large
from scalemani.store.schema import RowArray


def in_input_order(task: StageTask, positions: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return positions (N, d) of work order in input order."""
    ordered = empty(positions.shape, np.float64)
    input_rows = read_large(task.inputs["work_points"], "input_rows", empty)
    for panel in panels(len(ordered)):
        ordered[input_rows[panel]] = positions[panel]
    return ordered


def write_embedding(work: StageWork, positions: np.ndarray, empty: Empty = np.empty) -> None:
    """Write positions (N, d) of work order as the array `embedding`, by blocks, from this process."""
    embedding = in_input_order(work.task, positions, empty)
    columns = RowArray("embedding", "float64", (embedding.shape[1],), ("point", "component"), "rows in input order")
    work.task.output.create(len(embedding), [columns])
    work.map_blocks_here(functools.partial(embedding_block, embedding))


def embedding_block(embedding: np.ndarray, task: StageTask, block: int) -> Arrays:
    """Return one block of the embedding."""
    return {"embedding": embedding[slice(*task.dimensions.rows(block))]}
