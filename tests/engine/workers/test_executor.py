"""What a user may ask of the executor, in words that the command line and the estimators share."""

import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest

import scalemani as sm
from scalemani.engine.memory_model import Budget
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor, bytes_of
from scalemani.errors import ConfigError, ScalemaniError

SECONDS = 240  # on a machine that does much else


@pytest.mark.parametrize(
    ("size", "expected"),
    [("4GB", 4 * 10**9), ("1.5 MiB", 3 * 2**19), ("4000000000", 4 * 10**9), (4096, 4096), ("2e3kB", 2 * 10**6)],
)
def test_sizes_are_bytes(size, expected):
    assert bytes_of(size) == expected


def test_a_small_number_without_a_unit_is_asked_for_its_unit():
    with pytest.raises(ConfigError, match="memory 4 is 4 bytes: give a unit, such as 4GB"):
        bytes_of("4")


@pytest.mark.parametrize("size", ["1e400GB", "4 GX", "nan", "", "inf GB", "GB", b"4GB", True, 4.5, [4], object()])
def test_what_is_no_size_is_refused_in_one_way(size):
    with pytest.raises(ConfigError, match="memory takes a size such as 4GB"):
        bytes_of(size)


@pytest.mark.parametrize("memory", ["1e400GB", "4 GX", "-4GB", 0, True])
@pytest.mark.parametrize("estimator", [sm.TSNE, sm.LaplacianEigenmaps])
def test_the_command_line_and_estimators_refuse_the_same_sizes(estimator, memory, scalemani, tmp_path):
    np.save(tmp_path / "points.npy", np.zeros((20, 2)))
    with pytest.raises(ConfigError, match="memory") as refused:
        estimator(memory=memory).fit(np.random.default_rng(0).normal(size=(20, 2)))
    if not isinstance(memory, bool):  # the command line has text only
        status, _, errors = scalemani("plan", tmp_path / "points.npy", tmp_path / "run", f"--memory={memory}")
        assert (status, errors.strip().removeprefix("error: ")) == (2, str(refused.value))


def test_where_a_lazy_value_fails_the_others_have_ended():
    """Whoever removes a folder afterwards removes it from under nobody."""
    begun, ended = threading.Event(), threading.Event()

    def lasting():
        begun.set()
        time.sleep(0.3)
        ended.set()

    def failing():
        assert begun.wait(SECONDS)
        raise ValueError("a chunk that cannot be computed")

    values = [dask.delayed(lasting)(), dask.delayed(failing)()]
    with pytest.raises(ValueError, match="cannot be computed"):
        Executor(workers=2).compute_values(values, 2, "points")
    assert ended.is_set()


def test_what_is_left_open_is_the_default():
    asked = Executor.from_options(None, None, None, Progress())
    assert (asked.workers, asked.memory, asked.wait) == (Executor().workers, None, Executor().wait)
    assert Executor.from_options("threads", 3, "1kB", Progress(), wait=2.0).memory == 1000


@pytest.mark.parametrize(
    ("scheduler", "budgets"),
    [(None, [Budget(3, 4 * 10**9)]), ("threads", [Budget(3, 4 * 10**9)]), ("processes", [Budget(1, 10**9)] * 3)],
)
def test_threads_share_a_budget_and_local_processes_divide_it_with_the_driver(scheduler, budgets):
    assert Executor(scheduler=scheduler, workers=3, memory=4 * 10**9).processes == budgets


def test_a_process_that_was_forked_after_a_fit_fits_too():
    """Threads of the parent are not in the child: nothing that tasks run on may be kept from one fit to the next."""
    program = """
import multiprocessing, sys
import numpy as np
import scalemani as sm
points = np.random.default_rng(0).random((300, 3))
def fit():
    return sm.LaplacianEigenmaps(perplexity=5, n_landmarks=50, random_state=0, workers=2).fit(points).embedding_
def child(answers):
    answers.put(fit())
expected = fit()
context = multiprocessing.get_context("fork")
answers = context.Queue()
process = context.Process(target=child, args=(answers,), daemon=True)
process.start()
sys.exit(0 if np.array_equal(answers.get(timeout=240), expected) else 1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_system_that_starts_no_more_threads_is_told_with_its_limit(monkeypatch, tmp_path):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refused)
    with pytest.raises(ScalemaniError, match=r"starts no more threads or processes .* raise the limit") as told:
        sm.LaplacianEigenmaps(store=tmp_path / "run").fit(np.random.default_rng(0).random((200, 3)))
    assert told.value.exit_status == 1
    with pytest.raises(RuntimeError, match="another"), Executor().started():
        raise RuntimeError("another")


def test_units_that_had_not_begun_are_left_when_one_fails():
    begun = []

    def fail(unit):
        begun.append(unit)
        raise ValueError(f"unit {unit}")

    with pytest.raises(ValueError, match="unit"):
        Executor(workers=1).map_here(fail, range(100))
    assert len(begun) < 5


def test_processes_are_refused_where_none_can_be_started():
    program = """
import multiprocessing
def start(_):
    from scalemani.errors import ConfigError
    from scalemani.engine.workers.executor import Executor
    try:
        with Executor("processes", 1).started():
            return "started"
    except ConfigError as error:
        return str(error)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(start, [0])[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "cannot start processes from a daemonic one" in done.stdout


@pytest.mark.parametrize(
    ("scheduler", "on_threads", "on_cluster"),
    [(None, True, False), ("threads", True, False), ("processes", False, False), ("tcp://host:8786", False, True)],
)
def test_where_tasks_run(scheduler, on_threads, on_cluster):
    executor = Executor(scheduler)
    assert (executor.on_threads, executor.on_cluster) == (on_threads, on_cluster)
