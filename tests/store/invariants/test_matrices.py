"""Invariants of sparse matrices in parts by blocks of rows, against matrices that are damaged one way each."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from scalemani.store.invariants import Block, count_broken
from scalemani.store.invariants import matrices as of

ROWS = 4


def stored_parts(matrix):
    """Return the arrays of a symmetric matrix by path, and the run that stores them."""
    arrays = {}
    for start in range(0, matrix.shape[0], ROWS):
        part = sparse.csr_matrix(matrix[start : start + ROWS])
        folder = f"block-{start // ROWS:06d}"
        arrays[f"{folder}/indptr"], arrays[f"{folder}/indices"] = part.indptr, part.indices
        arrays[f"{folder}/values"], arrays[f"{folder}/degrees"] = part.data, np.asarray(part.sum(axis=1)).ravel()
    return arrays


def broken(arrays, name, invariant):
    """Return how often the parts of one name break an invariant."""
    run = SimpleNamespace(n_points=10, block_rows=ROWS, params={}, stored=lambda stage, path: arrays.get(path))
    blocks = [Block(run, "stage", path, 0, values) for path, values in arrays.items() if path.endswith(f"/{name}")]
    return count_broken((invariant,), blocks)[invariant.text]


CHECKS = {
    "values": of.symmetric("indptr", "indices"),
    "indices": of.columns_ascend("indptr"),
    "indptr": of.bounds("indices", "values"),
    "degrees": of.sums_of_rows("indptr", "values"),
}


@pytest.fixture
def arrays():
    """The parts of a matrix (10, 10) with a diagonal, in three blocks."""
    matrix = sparse.random(10, 10, 0.4, random_state=1, dtype=np.float64)
    return stored_parts(sparse.csr_matrix(matrix + matrix.T + sparse.eye_array(10)))


@pytest.mark.parametrize("name", CHECKS)
def test_a_whole_matrix_breaks_nothing(arrays, name):
    assert broken(arrays, name, CHECKS[name]) == 0


@pytest.mark.parametrize("block", range(3))
def test_each_part_that_is_damaged_is_noticed(arrays, block):
    folder = f"block-{block:06d}"
    rows = np.repeat(np.arange(len(arrays[f"{folder}/degrees"])), np.diff(arrays[f"{folder}/indptr"]))
    off_diagonal = np.flatnonzero(arrays[f"{folder}/indices"] != rows + ROWS * block)[0]
    arrays[f"{folder}/values"][off_diagonal] = np.nextafter(arrays[f"{folder}/values"][off_diagonal], 9)
    assert broken(arrays, "values", CHECKS["values"]) == 1
    arrays[f"{folder}/values"][off_diagonal] += 1e-6
    assert broken(arrays, "degrees", CHECKS["degrees"]) == 1
    arrays[f"{folder}/indices"][:2] = arrays[f"{folder}/indices"][1::-1]
    assert broken(arrays, "indices", CHECKS["indices"]) == 1
    arrays[f"{folder}/indptr"][-1] -= 1
    assert broken(arrays, "indptr", CHECKS["indptr"]) >= 1
