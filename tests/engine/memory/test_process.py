"""One object holds what a process shares between tasks; what identifies a shared object cannot be confused."""

import ast
import functools
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import scalemani
from scalemani.config.params import Parameters
from scalemani.engine.context import StageTask
from scalemani.engine.memory.process import PROCESS, Key, ProcessMemory
from scalemani.engine.task import Dimensions
from scalemani.store.groups import StageGroup


class Large:
    """Something that tells whether it is still held."""


def squares(task, power=2):
    return [task.stage, power]


def cubes(task, power=2):
    return [task.stage, power, "another function"]


@pytest.fixture
def memory():
    return ProcessMemory()


@pytest.fixture
def task(tmp_path):
    yield task_of(tmp_path, "stages/some/key")
    PROCESS.free()


def task_of(root, path):
    return StageTask(
        "some",
        Dimensions(1024, 3, "float32", 1024),
        Parameters().resolved("knn-graph"),
        {},
        StageGroup(root, path, 1024),
        0,
    )


def test_a_task_shares_what_one_function_makes_and_never_what_another_does(task):
    first = task.once(squares)
    assert task.once(squares) is first
    assert task.once(cubes) == ["some", 2, "another function"]
    assert task.once(squares, 3) == ["some", 3]
    assert task.once(squares, 3) is not first


def test_tasks_of_other_stages_and_runs_share_nothing(task, tmp_path):
    others = [task_of(tmp_path, "stages/some/other"), task_of(tmp_path / "run", "stages/some/key")]
    assert all(other.once(squares) is not task.once(squares) for other in others)
    assert task_of(tmp_path, "stages/some/key").once(squares) is task.once(squares)


@pytest.mark.parametrize("function", [lambda task: 1, functools.partial(squares, power=5)])
def test_a_function_without_a_name_of_its_own_is_refused(task, function):
    with pytest.raises(TypeError, match="a function of a module"):
        task.once(function)


def test_a_nested_function_is_refused(task):
    def nested(task):
        return 1

    with pytest.raises(TypeError, match="a function of a module"):
        task.once(nested)


def test_tasks_that_ask_at_the_same_moment_make_it_once(memory):
    made, all_ask = [], threading.Barrier(4)

    def make():
        made.append(threading.get_ident())
        threading.Event().wait(0.05)
        return Large()

    def ask(_):
        all_ask.wait()
        return memory.once(Key.of(squares, ()), make)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(made) == 1
    assert all(one is found[0] for one in found)


def test_the_latest_version_is_made_once_and_takes_the_place_of_the_one_before(memory):
    held, made = weakref.WeakSet(), []

    def ask(version):
        def make():
            gc.collect()
            assert not held, "the version before was not dropped first"
            made.append(version)
            large = Large()
            held.add(large)
            return large

        return weakref.ref(memory.latest(Key.of(squares, (version,)), make))

    first = ask("a")
    assert ask("a")() is first()
    ask("b")
    ask("a")
    assert made == ["a", "b", "a"]


def test_nothing_is_left_when_a_stage_has_ended(memory):
    made = weakref.ref(memory.once(Key.of(squares, ()), Large))
    memory.free()
    gc.collect()
    assert made() is None


def test_a_worker_drops_everything_when_the_first_task_of_another_stage_starts(memory):
    memory.start_scope("one")
    made = weakref.ref(memory.once(Key.of(squares, ()), Large))
    memory.start_scope("one")
    gc.collect()
    assert made() is not None
    memory.start_scope("other")
    gc.collect()
    assert made() is None


def test_an_error_of_the_maker_is_raised_and_the_next_task_tries_again(memory):
    key = Key.of(squares, ())
    with pytest.raises(ZeroDivisionError):
        memory.once(key, lambda: 1 // 0)
    np.testing.assert_array_equal(memory.once(key, lambda: np.arange(3)), np.arange(3))


def test_no_module_rebinds_its_own_variables_or_has_ambient_ones():
    """But for the words of the Python call at work, which warnings anywhere below it take."""
    hidden = [
        f"{path}:{node.lineno}"
        for path in sorted(Path(scalemani.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Global)
        or (isinstance(node, ast.Name) and node.id == "ContextVar" and path.name != "errors.py")
    ]
    assert not hidden, "state of a process belongs into engine/memory/process.py"
