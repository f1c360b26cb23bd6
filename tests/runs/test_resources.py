"""Budgets: what fits, and one refusal that says what would do."""

import re

import pytest

from scalemani.config.params import Parameters
from scalemani.engine.memory_model import Budget, Memory, process_bytes
from scalemani.engine.workers.executor import Executor
from scalemani.errors import MemoryBudgetError
from scalemani.io.sources import open_points
from scalemani.runs.plan import check_memory, fit
from scalemani.runs.walk import plan_run


def plan(points, folder, memory=None, values=None, **resources):
    params = Parameters().with_values(values or {})
    executor = Executor(memory=memory, **resources)
    found = plan_run(open_points(points), folder, "laplacian-eigenmaps", params, executor, 1024)
    found.check()
    return found


@pytest.mark.parametrize("resources", [{}, {"scheduler": "processes", "workers": 2}])
def test_the_budget_that_a_refusal_names_does_for_all_stages(roll, tmp_path, resources):
    with pytest.raises(MemoryBudgetError) as refused:
        plan(roll, tmp_path / "run", memory=200_000_000, **resources)
    message = str(refused.value)
    named, megabytes = re.search(r"stage (\w+) needs", message)[1], re.search(r"raise --memory to (\d+)MB", message)[1]
    found = plan(roll, tmp_path / "run", memory=int(megabytes) * 10**6, **resources)
    least = {stage.stage.name: fit(stage.held, [Budget(1, 1)], 1).memory.total() for stage in found.stages}
    assert least[named] == max(least.values())
    assert all(stage.fit.at_once for stage in found.stages)
    with pytest.raises(MemoryBudgetError, match=f"stage {named} needs"):
        plan(roll, tmp_path / "run", memory=int(megabytes) * 10**6 - 4 * 10**6, **resources)


def test_smaller_blocks_are_named_only_where_blocks_can_be_smaller():
    processes, memory = [Budget(2, 10**9)], Memory(task={"block": 10**9})
    for block_rows, named in ((1024, False), (2048, True)):
        with pytest.raises(MemoryBudgetError) as refused:
            check_memory({"points": fit(memory, processes, 4)}, processes, block_rows)
        assert ("--block-rows" in str(refused.value)) == named


def test_the_largest_need_is_named_of_several_and_the_others_are_counted():
    processes = [Budget(1, 10**9)]
    needs = {"one": 10**9, "two": 3 * 10**9, "three": 2 * 10**9, "four": 10**6}
    enough = process_bytes() // 10**6 + 3000
    fits = {name: fit(Memory({"model": n_bytes}), processes, 4) for name, n_bytes in needs.items()}
    with pytest.raises(MemoryBudgetError, match=rf"stage two needs .*2 other stages more than the budget.*{enough}MB"):
        check_memory(fits, processes, 1024)


def test_a_stage_that_is_complete_needs_no_memory(tmp_path, roll, scalemani):
    import numpy as np

    np.save(tmp_path / "roll.npy", roll)
    words = (tmp_path / "roll.npy", tmp_path / "run", "--block-rows", 1024, "--method", "knn-graph")
    assert scalemani("embed", *words)[0] == 0
    assert scalemani("plan", *words, "--memory", "100MB")[0] == 0
