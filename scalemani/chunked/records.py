"""The graph and the sparse matrices made of it, as they are stored: the one place that knows their arrays."""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.rows.sketches import SketchBasis
from scalemani.kernels.spectral.coarsening import Level
from scalemani.memory.kept import read_large, resident
from scalemani.store.groups import StageGroup


def sketch_basis(partition: StageGroup) -> SketchBasis:
    """Return the axes of the sketches."""
    return SketchBasis(resident(partition, "mean"), resident(partition, "axes"), float(resident(partition, "scale")))


def round_step(round_number: int) -> str:
    """Return the name of a round's arrays."""
    return f"round_{round_number}"


def final_step(neighbors: StageGroup) -> str:
    """Return the name of the arrays that hold the finished graph."""
    return round_step(neighbors.certificate("rounds", int))


def graph_block(neighbors: StageGroup, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, distances) of one block of work rows of the finished graph: (n, k) each, ascending distance."""
    step = final_step(neighbors)
    return neighbors.read_block(f"{step}/indices", block), neighbors.read_block(f"{step}/distances", block)


def symmetric_block(group: StageGroup, block: int, n_points: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return one block's rows of W (n, N) as a sparse matrix and their degrees (n,)."""
    indptr, indices, values = symmetric_rows_of(group, block)
    rows = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_points))
    return rows, group.read_part("degrees", block)


def symmetric_rows_of(group: StageGroup, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr, indices, values) of one block's rows of W."""
    return (
        group.read_part("indptr", block),
        group.read_part("indices", block),
        group.read_part("values", block),
    )


def degrees_of(group: StageGroup, n_points: int, empty: Empty = np.empty) -> np.ndarray:
    """Return the degrees (N,) of W in an array made by `empty`."""
    degrees, place, block = empty((n_points,), np.float64), 0, 0
    while place < n_points:
        part = group.read_part("degrees", block)
        degrees[place : place + len(part)] = part
        place, block = place + len(part), block + 1
    return degrees


def affinity_rows(group: StageGroup, n_blocks: int) -> AffinityRows:
    """Return all of W in memory: 8 bytes a nonzero."""
    counts = np.concatenate([np.diff(group.read_part("indptr", block)) for block in range(n_blocks)])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
    place = 0
    for block in range(n_blocks):
        _, block_indices, block_values = symmetric_rows_of(group, block)
        indices[place : place + len(block_indices)] = block_indices
        values[place : place + len(block_values)] = block_values
        place += len(block_indices)
    return AffinityRows(indptr, indices, values)


def weights_block(group: StageGroup, block: int, n_landmarks: int) -> sp.csr_matrix:
    """Return one block's rows of Z (n, L)."""
    return weights_rows(group.read_block("indices", block), group.read_block("values", block), n_landmarks)


def weights_rows(indices: np.ndarray, values: np.ndarray, n_landmarks: int) -> sp.csr_matrix:
    """Return rows of Z in CSR form on the arrays given: (n, L) from (n, K_Z) each."""
    indptr = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    return sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(len(indices), n_landmarks), copy=False)


def matrix_arrays(name: str, matrix: sp.csr_matrix) -> dict[str, np.ndarray]:
    """Return the arrays in which a sparse matrix is stored."""
    return {f"{name}_indptr": matrix.indptr, f"{name}_indices": matrix.indices, f"{name}_values": matrix.data}


def read_matrix(group: StageGroup, name: str, size: int, block: int | None = None, step: str = "") -> sp.csr_matrix:
    """Return a stored sparse matrix (size, size), a block's or the group's."""
    parts = [f"{name}_{part}" for part in ("values", "indices", "indptr")]
    arrays = [group.read(part) if block is None else group.read_part(part, block, step) for part in parts]
    return sp.csr_matrix(tuple(arrays), shape=(size, size))


def level_folder(number: int) -> str:
    """Return the folder of the arrays of a coarse graph; the first is number 1."""
    return f"level_{number}/"


def level_arrays(level: Level) -> dict[str, np.ndarray]:
    """Return the arrays in which a coarse graph is stored."""
    indptr, indices, values = level.rows
    return {"indptr": indptr, "indices": indices, "values": values, "degrees": level.degrees, "labels": level.labels}


def coarse_levels(group: StageGroup, empty: Empty = np.empty) -> list[Level]:
    """Return the coarse graphs, the finest first, in arrays made by `empty`."""
    levels = []
    for number in range(1, group.certificate("levels", int) + 1):
        names = ("indptr", "indices", "values", "degrees", "labels")
        indptr, indices, values, degrees, labels = (
            read_large(group, f"{level_folder(number)}{name}", empty) for name in names
        )
        levels.append(Level((indptr, indices, values), degrees, labels))
    return levels
