import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.blas import BLAS
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

SECONDS = 240  # on a machine that does much else


def numbers_of_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        yield


def test_the_limit_lasts_until_the_last_of_all_holders_has_left():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with BLAS.hold_at_one():
            entered.set()
            leave.wait(SECONDS)

    first = threading.Thread(target=hold)
    first.start()
    assert entered.wait(SECONDS)
    with BLAS.hold_at_one():
        leave.set()
        first.join()
        assert numbers_of_threads() == {1}
    assert numbers_of_threads() == {2}


def test_an_error_gives_the_threads_back():
    with pytest.raises(ZeroDivisionError), BLAS.hold_at_one():
        _ = 1 / 0
    assert numbers_of_threads() == {2}


class Looking(Progress):
    """Keeps with how many threads libraries compute while stages do."""

    def __init__(self):
        self.seen = []

    def advance(self, done=1):
        self.seen.append(numbers_of_threads())


def test_stages_compute_at_one_thread(tmp_path):
    points, progress = np.random.default_rng(0).random((300, 3)), Looking()
    run(open_points(points), tmp_path / "run", "knn-graph", Parameters(), Executor(workers=2, progress=progress))
    assert len(progress.seen) > 2
    assert all(threads == {1} for threads in progress.seen)
    assert numbers_of_threads() == {2}


def test_holders_may_be_nested():
    with BLAS.hold_at_one():
        with BLAS.hold_at_one():
            pass
        assert numbers_of_threads() == {1}
    assert numbers_of_threads() == {2}
