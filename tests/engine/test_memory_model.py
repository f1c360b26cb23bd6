"""What stages take, and how it adds up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.engine.memory_model import Budget, Disk, Memory, array, entries

TERMS = st.dictionaries(st.sampled_from(("rows", "columns", "values")), st.integers(0, 1000), max_size=3)
STEP = st.builds(Memory, process=TERMS, task=TERMS, points=TERMS, cache=TERMS)
STEPS = st.dictionaries(st.sampled_from(("one", "other", "third")), STEP, max_size=3)
MEMORY = st.builds(Memory, process=TERMS, task=TERMS, points=TERMS, cache=TERMS, steps=STEPS)


def in_step(memory, step, n_tasks):
    """Return the bytes of a step, those of all steps among them."""
    held = [memory] if step is None else [memory, memory.steps[step]]
    return sum(sum(one.process.values()) + sum(one.points.values()) + n_tasks * sum(one.task.values()) for one in held)


@given(st.sampled_from(("uint8", "float32", "float64")), st.lists(st.integers(0, 9), max_size=3))
def test_an_array_takes_the_bytes_that_numpy_gives_it(dtype, shape):
    assert array(dtype, *shape) == np.empty(shape, dtype).nbytes


def test_entries_take_a_value_and_a_column_each():
    assert entries(10) == 10 * (8 + 4)
    assert entries(10, "float32") == 10 * (4 + 4)


@given(MEMORY, st.integers(1, 64))
def test_the_largest_step_counts_for_any_number_of_tasks(memory, n_tasks):
    totals = [in_step(memory, step, n_tasks) for step in memory.steps or (None,)]
    assert memory.total(n_tasks) == max(totals)


@given(MEMORY, MEMORY, st.integers(1, 64))
def test_what_is_added_is_held_in_each_step_and_terms_of_a_name_in_sum(one, other, n_tasks):
    total = one + other
    for step in {**one.steps, **other.steps} or (None,):
        held = (memory if step in memory.steps else Memory(*memory._terms) for memory in (one, other))
        said = sum(in_step(memory, step if step in memory.steps else None, n_tasks) for memory in held)
        assert in_step(total, step, n_tasks) == said


@given(MEMORY, st.integers(0, 2000), st.integers(1, 8))
def test_a_cache_takes_what_a_step_has_for_it_and_no_more_than_its_limit(memory, limit, n_tasks):
    assert memory.with_cache(0).total(n_tasks) == memory.total(n_tasks)
    wanted = {name: sum(step.cache.values()) for name, step in memory.by_step.items()}
    assert memory.cached == max(wanted.values())
    totals = [memory.by_step[name].total(n_tasks) + min(limit, most) for name, most in wanted.items()]
    assert memory.with_cache(limit).total(n_tasks) == max(totals)


@given(MEMORY)
def test_in_files_no_array_with_a_row_a_point_is_in_memory(memory):
    in_files = [sum(step.process.values()) + sum(step.task.values()) for step in memory.by_step.values()]
    assert memory.with_cache(0, in_memory=False).total() == max(in_files)


@given(MEMORY, st.integers(1, 8), st.integers(1, 9000))
def test_as_many_tasks_fit_as_the_budget_holds(memory, threads, limit):
    at_once = Budget(threads, limit).fit(memory)
    assert at_once == max((n for n in range(1, threads + 1) if memory.total(n) <= limit), default=0)
    assert Budget(threads, None).fit(memory) == threads


def test_every_term_is_listed_with_how_often_it_is_held():
    held = Memory({"labels": 10}, {"a block": 20}, steps={"sums": Memory(points={"sums of points": 30})})
    assert list(held.listed()) == [
        ("labels", 10, "a process"),
        ("a block", 20, "a task"),
        ("sums of points", 30, "a process, or in a file, step: sums"),
    ]
    written = Disk({"labels": 10}, {"checkpoints": 20}, {"points": 30})
    assert [when for _, _, when in written.listed()][:2] == ["stored", "until the stage ends"]
    assert written.total == 30
