"""Graphs of tasks: what waits for what, sums as trees in the order of their parts, and what Dask makes of them."""

import functools
import operator
import threading
import weakref

import dask
import pytest
from dask.delayed import delayed
from hypothesis import given
from hypothesis import strategies as st

from scalemani.engine.graph import SPLIT_EVERY, Calls, TaskGraph, parts_held, suffixed, unit_name
from scalemani.engine.workers.executor import Executor

PLAIN = Calls(
    lambda function: lambda unit, *_: function(unit), lambda combine: lambda *parts: functools.reduce(combine, parts)
)


def listed(unit):
    return [unit]


def two_stages(count):
    """Blocks that are written, and a sum over parts each of which reads one."""
    graph = TaskGraph("affinities")
    blocks = graph.units(listed, range(count))
    parts = graph.units(listed, range(count), "part", lambda unit: [blocks[unit]])
    return graph, graph.tree(operator.add, parts)


@given(st.integers(1, 200))
def test_a_tree_combines_parts_in_their_order_and_few_at_a_time(count):
    graph = TaskGraph("stage")
    root = graph.tree(operator.add, graph.units(listed, range(count)))
    assert dask.get(graph.as_dask(PLAIN), root) == list(range(count))
    sums = [task for layer in graph.layers.values() if layer.combines for task in layer.tasks.values()]
    assert all(len(task.needs) <= SPLIT_EVERY for task in sums)
    assert sum(len(task.needs) for task in sums) == len(sums) + count - 1


def test_nothing_is_the_sum_of_no_parts():
    assert TaskGraph("stage").tree(operator.add, []) is None


def test_a_part_waits_for_the_block_that_it_reads_and_for_no_other():
    graph, root = two_stages(6)
    assert ("affinities", "4") in {before for before, after in graph.edges if after == ("affinities.part", "4")}
    assert len(graph.edges) == 6 + 6 + 2
    written = set()

    def write(unit):
        written.add(unit)

    def read(unit):
        assert unit in written
        return [unit]

    checked = TaskGraph("affinities")
    blocks = checked.units(write, range(50))
    root = checked.tree(operator.add, checked.units(read, range(50), "part", lambda unit: [blocks[unit]]))
    assert Executor(workers=3).compute(checked, [root]) == [list(range(50))]


def test_what_is_drawn_is_what_dask_is_given():
    graph, _ = two_stages(30)
    dependencies = graph.as_dask(PLAIN, "-0a1b2c3d").get_all_dependencies()
    edges = {(before, key) for key, needed in dependencies.items() for before in needed}
    assert edges == {tuple(suffixed(key, "-0a1b2c3d") for key in edge) for edge in graph.edges}


def test_units_in_turn_wait_for_the_one_before():
    order = []
    graph = TaskGraph("reading")
    Executor(workers=4).compute_here(graph, graph.units_in_turn(order.append, range(40)))
    assert order == list(range(40))


def test_without_a_task_those_that_wait_for_it_are_left_out_too():
    graph, root = two_stages(10)
    left = graph.without([("affinities", "3")])
    assert ("affinities.part", "3") not in left.unit_keys
    assert ("affinities.part", "4") in left.unit_keys
    assert root not in {key for layer in left.layers.values() for key in layer.tasks}
    assert {key for layer in left.layers.values() for key in layer.tasks} >= {
        key for edge in left.edges for key in edge
    }


def test_what_is_known_is_not_computed():
    graph, root = two_stages(5)
    found = dask.get(graph.as_dask(PLAIN, known={("affinities.part", "2"): ["known"]}), root)
    assert found == [0, 1, "known", 3, 4]


def test_lazy_values_of_dask_are_units():
    graph = TaskGraph("points")
    root = graph.tree(operator.add, graph.units(listed, [delayed(operator.mul)(number, 10) for number in range(6)]))
    assert dask.get(graph.as_dask(PLAIN), root) == [0, 10, 20, 30, 40, 50]


class Part:
    """A part of a sum that says when it is gone."""


@pytest.mark.parametrize("count", [1, 3, 16, 100, 512])
def test_few_parts_are_held_on_the_way_up_a_tree(count):
    held, most, lock = weakref.WeakSet(), 0, threading.Lock()

    def part(_):
        nonlocal most
        with lock:
            made = Part()
            held.add(made)
            most = max(most, len(held))
        return made

    graph = TaskGraph("stage")
    root = graph.tree(lambda one, other: part(None), graph.units(part, range(count)))
    Executor(workers=1).compute_here(graph, [root], at_once=1)
    assert most <= parts_held(count)


@pytest.mark.parametrize(("unit", "name"), [(3, "3"), ([3], "3"), (range(4, 7), "4 to 6")])
def test_units_have_the_names_of_their_blocks(unit, name):
    assert unit_name(unit) == name
    assert unit_name(unit, lambda block: (10 * block, 10 * block + 10)) == (
        f"{name} (rows {30 if name == '3' else 40} to {39 if name == '3' else 69} of its arrays)"
    )
