"""Arrays in mapped files: they hold what was written, and their space is given back."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext
from scalemani.engine.memory import files
from scalemani.engine.memory.files import MappedArrays
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Budget, Memory, process_bytes
from scalemani.engine.task import Dimensions, StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.errors import MemoryBudgetError, StoreError
from scalemani.io.sources import open_points
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.runs.plan import check_memory, fit
from scalemani.runs.survey import BLOCKS_IN_MEMORY, default_block_rows
from scalemani.runs.walk import INPUTS, run
from scalemani.stages.table import STAGES
from scalemani.store.groups import StageGroup
from tests.engine.memory.descriptors import open_files_in


def test_they_hold_what_was_written(tmp_path):
    empty, rng = MappedArrays(tmp_path).empty, np.random.default_rng(0)
    written = [rng.random((rows, 7)) for rows in (3, 5_000, 30_000, 400_000)]
    held = [empty(values.shape, values.dtype) for values in written]
    assert all(not array.any() for array in held)
    for array, values in zip(held, written, strict=True):
        array[...] = values
    for array, values in zip(held, written, strict=True):
        np.testing.assert_array_equal(array, values)
    assert list(tmp_path.iterdir()) == []


def test_their_space_is_given_back(tmp_path):
    empty = MappedArrays(tmp_path).empty
    arrays = [empty((200_000,), np.float64) for _ in range(50)]
    assert 0 < len(open_files_in(tmp_path)) < 10
    del empty, arrays
    gc.collect()
    assert open_files_in(tmp_path) == []


def test_a_folder_that_is_not_there_is_told_of(tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        MappedArrays(tmp_path / "no").empty((10**6,), np.float64)


@pytest.mark.parametrize("residual", [1e-3, 1e-6])
def test_stages_on_mapped_arrays_store_what_they_do_in_memory(roll, tmp_path, spy, residual):
    values = {
        "neighbors": {"n_neighbors": 12, "method": "partition"},
        "affinities": {"perplexity": 4},
        "landmarks": {"n_landmarks": 200},
        "partition": {"cell_points": 200, "sample_points": 2000},
        "embedding": {"residual": residual, "solver": "lll+refine"},
    }
    params, executor = Parameters().with_values(values), Executor()
    points = np.concatenate([roll, roll[:, ::-1] + 50])  # of which a column is no small array
    ended = run(open_points(points), tmp_path / "held", "laplacian-eigenmaps", params, executor, 1024)
    mapped = spy(files, "mapped_file")
    inputs = {stage.name: {name: ended.group(name) for name in stage.inputs} for stage in ended.route}
    for stage in ("neighbors", "reduced", "coarse_graphs", "coarse_embedding", "embedding"):
        output = StageGroup(tmp_path / "mapped", f"stages/{stage}/key", 1024)
        output.objects.set_json(INPUTS, {})  # as a run does first: its folder is there then
        task = StageTask(stage, ended.dimensions, ended.params, inputs[stage], output, 0, in_memory=False)
        with executor.started():
            STAGES[stage].run(StageContext(task, executor, 2))
        PROCESS.free()
        output.mark_complete({})
        assert output.content_digest == ended.group(stage).content_digest, stage
    assert mapped


def test_what_grows_is_mapped_where_the_budget_has_no_room_and_the_total_stays_within_it():
    memory = Memory({"model": 10**7}, {"block": 10**8}, {"rows": 2 * 10**9}, {"blocks": 10**12})
    dimensions = Dimensions(10**6, 100, "uint8", 1024)
    totals = []
    for budget in (1_000_000_000, 2_500_000_000, 4_000_000_000):
        chosen = fit(memory, [Budget(2, budget)], dimensions.n_blocks)
        assert chosen.in_memory == (budget == 4_000_000_000)
        totals.append(chosen.memory.total(chosen.at_once))
        assert budget - 10**8 < totals[-1] <= budget
    short = [Budget(2, process_bytes() + 10**7 + 10**8 - 1)]
    with pytest.raises(MemoryBudgetError, match="with one task at a time"):
        check_memory({"neighbors": fit(memory, short, dimensions.n_blocks)}, short, dimensions.block_rows)


@given(st.integers(1, 10**7), st.integers(1, 4096), st.integers(4 * 10**8, 10**10))
def test_blocks_fit_the_memory_and_are_whole_tiles(n_points, row_bytes, memory):
    rows = default_block_rows(n_points, row_bytes, memory)
    assert rows % TILE_ROWS == 0
    assert rows <= default_block_rows(n_points, row_bytes)
    assert rows == TILE_ROWS or rows * row_bytes <= memory // BLOCKS_IN_MEMORY
