"""What a stage maps and folds over: every missing block once, nothing twice, sums in order on any threads."""

import operator
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext, StageGraph, StageTask, all_blocks
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ShortfallWarning
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.groups import StageGroup

BLOCK_ROWS, N_POINTS = 1024, 4500


def work_in(folder, progress=None, workers=3):
    group = StageGroup(folder, "stages/points/key", BLOCK_ROWS)
    task = StageTask(
        "points", Dimensions(N_POINTS, 2, "float32", BLOCK_ROWS), Parameters().resolved("knn-graph"), {}, group, 2**20
    )
    executor = Executor(workers=workers) if progress is None else Executor(workers=workers, progress=progress)
    return StageContext(task, executor, at_once=workers)


def rows_of(task, block):
    return {
        StoredPoints.dense_points: np.column_stack([np.arange(*task.dimensions.rows(block))] * 2).astype(np.float32)
    }


def create(work):
    work.task.output.create(N_POINTS, [StoredPoints.dense_points.sized(2, dtype="float32")])


@pytest.mark.parametrize(("n_points", "block_rows"), [(1, 1024), (1024, 1024), (1025, 1024), (4500, 2048)])
def test_blocks_cover_every_row_once(n_points, block_rows):
    dimensions = Dimensions(n_points, 3, "uint8", block_rows)
    rows = [row for block in range(dimensions.n_blocks) for row in range(*dimensions.rows(block))]
    assert rows == list(range(n_points))
    assert dimensions.row_bytes == 3


@pytest.mark.parametrize("here", [False, True])
def test_only_blocks_that_are_missing_are_computed(tmp_path, here):
    work, computed, lock = work_in(tmp_path), [], threading.Lock()
    create(work)
    for block in (1, 3):
        work.task.output.write_block(block, rows_of(work.task, block))

    def counted(task, block):
        with lock:
            computed.append(block)
        return rows_of(task, block)

    mapped = work.map_blocks_here if here else work.map_blocks
    mapped(counted)
    mapped(counted)
    assert sorted(computed) == [0, 2, 4]
    stored = StoredPoints(work.task.output).points.read()
    np.testing.assert_array_equal(stored[:, 0], np.arange(N_POINTS))


@pytest.mark.parametrize("here", [False, True])
def test_no_more_blocks_are_at_work_than_the_budget_allows(tmp_path, here):
    work, at_work, most, lock = replace(work_in(tmp_path, workers=3), at_once=1), 0, 0, threading.Lock()
    create(work)

    def counted(task, block):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.02)
        with lock:
            at_work -= 1
        return rows_of(task, block)

    (work.map_blocks_here if here else work.map_blocks)(counted)
    assert most == 1


def test_a_run_of_blocks_skips_those_that_are_there(tmp_path):
    work, asked = work_in(tmp_path, workers=1), []
    create(work)
    work.task.output.write_block(2, rows_of(work.task, 2))

    def computed(task, blocks):
        asked.append(list(blocks))
        return ((block, rows_of(task, block)) for block in blocks)

    work.compute(lambda graph: graph.map_block_ranges(computed, 3))
    assert sorted(asked) == [[0, 1], [3, 4]]  # in any order
    np.testing.assert_array_equal(StoredPoints(work.task.output).points.read()[:, 1], np.arange(N_POINTS))


@pytest.mark.parametrize("workers", [1, 4])
def test_folds_combine_in_the_order_of_the_blocks(tmp_path, workers):
    work = work_in(tmp_path, workers=workers)
    found = work.fold_blocks(lambda task, block: [task.dimensions.rows(block)], lambda one, other: one + other)
    assert found == [work.task.dimensions.rows(block) for block in range(5)]


MADE = []


def remember(task, argument):
    MADE.append(argument)
    return argument


def test_what_is_made_once_is_shared_by_its_arguments_and_what_is_latest_replaces(tmp_path):
    task = work_in(tmp_path).task
    MADE.clear()
    try:
        assert [task.once(remember, argument) for argument in (1, 1, 2, 1)] == [1, 1, 2, 1]
        assert MADE == [1, 2]
        assert [task.latest(remember, argument) for argument in (3, 3, 4, 3)] == [3, 3, 4, 3]
        assert MADE == [1, 2, 3, 4, 3]
    finally:
        PROCESS.free()


def test_warnings_reach_whoever_listens_and_stay_with_the_work(tmp_path, listening):
    work = work_in(tmp_path, progress=listening)
    work.warn("too few", ShortfallWarning)
    assert listening.warned == ["too few"]
    assert work.warnings == [("ShortfallWarning", "too few")]


def test_sums_read_the_blocks_that_are_written_in_the_same_graph(tmp_path):
    work = work_in(tmp_path)
    create(work)
    work.task.output.write_block(1, rows_of(work.task, 1))

    def first_and_last(task, block):
        rows = StoredPoints(task.output).points.read_block(block)[:, 0]
        return [(float(rows[0]), float(rows[-1]))]

    graph = StageGraph(work)
    graph.map_blocks(rows_of)
    found = graph.compute(graph.fold_blocks(first_and_last, operator.add))
    assert found == [(1024.0 * block, min(1024 * block + 1023.0, N_POINTS - 1)) for block in range(5)]


def test_blocks_that_read_all_of_a_layer_wait_for_all_of_it(tmp_path):
    work, done = work_in(tmp_path), set()
    create(work)

    def first(task, block):
        time.sleep(0.01)
        done.add(block)
        return rows_of(task, block)

    def second(task, part):
        assert done == set(range(5))
        return {}

    graph = StageGraph(work)
    graph.map_blocks(first)
    graph.map_blocks(second, "sums", 3, all_blocks)
    graph.compute()
    assert {f"sums-block-{part:06d}" for part in range(3)} <= set(work.task.output.units)
