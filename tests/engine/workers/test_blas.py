import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from scalemani.engine.workers.blas import BLAS

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


def test_holders_may_be_nested():
    with BLAS.hold_at_one():
        with BLAS.hold_at_one():
            pass
        assert numbers_of_threads() == {1}
    assert numbers_of_threads() == {2}
