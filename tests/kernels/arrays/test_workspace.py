"""A workspace lends threads and room to a kernel; neither leaves a trace in a result."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.engine.memory.files import MappedArrays
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.spectral.coarsening import coarser
from scalemani.kernels.spectral.multilevel import DAMPING, Multilevel, Transfer
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    initial_state,
    n_columns,
    n_start_columns,
    refinement,
)

N_POINTS = 12_000


class Lender:
    """Gives out arrays full of NaN or of the least integers, and counts them."""

    def __init__(self):
        self.lent = 0

    def __call__(self, shape, dtype):
        self.lent += 1
        dtype = np.dtype(dtype)
        return np.full(shape, np.nan if dtype.kind == "f" else np.iinfo(dtype).min, dtype)


def eigenvectors(w, degrees, apply, trivial, workspace):
    fine, *coarse = coarser((w.indptr.astype(np.int64), w.indices, w.data), workspace)
    levels = Multilevel(coarse, workspace)
    transfer = Transfer(fine.labels, degrees, coarse[0].degrees, workspace)
    below = levels.eigenvectors(n_start_columns(2, N_POINTS))
    start = workspace.empty((N_POINTS, below.shape[1]), np.float32)
    transfer.prolong(below, start)
    smoothing = np.full(N_POINTS, DAMPING)

    def correct(residuals):
        return levels.correct_below(transfer, 0, smoothing, residuals)

    problem = RefinementProblem(apply, correct, trivial, workspace)
    *_, final = refinement(initial_state(start, problem, n_columns(2, N_POINTS)), problem, 2, 1e-4, 20)
    return [*(array for level in coarse for array in (*level.rows, level.degrees)), final.vectors, final.values]


@pytest.fixture(scope="module")
def graph(knn_affinities, graph_of):
    return graph_of(knn_affinities(N_POINTS, n_neighbors=10))


@pytest.fixture(scope="module")
def expected(graph):
    return eigenvectors(graph.w, graph.degrees, graph.apply, graph.trivial, IN_MEMORY)


def test_threads_and_lent_arrays_change_no_bit_of_what_spectral_kernels_return(graph, expected):
    lender = Lender()
    with ThreadPoolExecutor(2) as pool:
        found = eigenvectors(graph.w, graph.degrees, graph.apply, graph.trivial, Workspace(pool.map, lender))
    assert lender.lent > 20
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_mapped_files_change_no_bit_of_what_spectral_kernels_return(graph, expected, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        workspace = Workspace(pool.map, MappedArrays(tmp_path).empty)
        found = eigenvectors(graph.w, graph.degrees, graph.apply, graph.trivial, workspace)
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
    del found, workspace, array
    gc.collect()


def test_a_workspace_that_is_not_used_lends_nothing_to_another(graph):
    lender = Lender()
    Workspace(map, lender)
    list(coarser((graph.w.indptr.astype(np.int64), graph.w.indices, graph.w.data)))
    assert lender.lent == 0


def test_arrays_that_are_lent_hold_what_was_put_into_them():
    workspace, values = Workspace(empty=Lender()), np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(workspace.zeros((3, 2), np.int32), np.zeros((3, 2), np.int32))
    np.testing.assert_array_equal(workspace.as_large(values), values)
    assert workspace.as_large(values) is not values
    joined = workspace.concatenate([values[:2], values[2:]], np.float32)
    np.testing.assert_array_equal(joined, values.astype(np.float32))
    assert joined.dtype == np.float32


def test_values_stay_where_they_are_when_large_arrays_are_in_memory():
    values = np.arange(3.0)
    assert IN_MEMORY.as_large(values) is values
    copied = Workspace(empty=Lender()).as_large(values)
    assert not np.shares_memory(copied, values)
    np.testing.assert_array_equal(copied, values)
