"""Threads that work panels off give what the builtin `map` gives, whatever fails or calls them again."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.workspace import threads

SECONDS = 60  # on a machine that does much else


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.lists(st.integers()))
def test_results_come_in_the_order_of_the_units(count, units):
    with threads(count) as some:
        assert some.over(abs, units) == [abs(unit) for unit in units]
        assert some.over(abs, units[::-1]) == [abs(unit) for unit in units[::-1]]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_so_many_threads_work_at_a_time(count):
    together = threading.Barrier(count)
    with threads(count) as some:
        names = some.over(lambda _: (together.wait(SECONDS), threading.current_thread().name)[1], range(count))
    assert len(set(names)) == count
    assert threading.current_thread().name in names


@pytest.mark.parametrize("failing", [0, 1, 999])
def test_an_error_ends_the_call_and_begins_no_further_unit(failing):
    begun, failed = [], threading.Event()

    def work(unit):
        begun.append(unit)
        if unit == failing:
            failed.set()
            raise KeyError(unit)
        if failing < 2 and unit > 1:  # the one that fails may be behind
            failed.wait(SECONDS)
            time.sleep(0.5)  # until it has ended the call
        return unit

    with threads(2) as some:
        with pytest.raises(KeyError):
            some.over(work, range(1000))
        assert failing in begun
        assert failing == 999 or len(begun) <= 4
        assert some.over(str, [1, 2, 3]) == ["1", "2", "3"]


def test_the_error_of_another_thread_is_raised_in_the_calling_one():
    here, both = threading.current_thread(), threading.Barrier(2)

    def work(_):
        both.wait(SECONDS)
        if threading.current_thread() is not here:
            raise ValueError("not here")

    with threads(2) as some, pytest.raises(ValueError, match="not here"):
        some.over(work, range(2))


def test_a_call_within_a_call_waits_for_no_thread_that_waits():
    with threads(2) as some:
        nested = some.over(lambda first: some.over(lambda second: first * second, range(50)), range(50))
    assert nested == [[first * second for second in range(50)] for first in range(50)]
