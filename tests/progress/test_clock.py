"""What a run still takes: as expected at first, then by how long its stages have taken."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.progress.clock import TRUSTED_SECONDS, RunClock, duration_text


class Watch:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_what_is_expected_counts_down_and_follows_the_stages_that_are_done():
    watch = Watch()
    clock = RunClock(watch)
    assert clock.remaining() is None
    clock.expect({"a": 99.0, "b": 100.0, "c": 300.0})
    clock.begin("a")
    assert clock.remaining() == 499
    watch.seconds = 40
    assert clock.remaining() == 459
    watch.seconds = 199
    assert clock.end("a") == 199
    assert clock.remaining() is None
    clock.begin("b")  # this machine takes twice what was expected
    factor = (TRUSTED_SECONDS + 199) / (TRUSTED_SECONDS + 99)
    assert clock.remaining() == pytest.approx(400 * factor)


def test_units_that_are_done_tell_more_the_more_they_are():
    watch = Watch()
    clock = RunClock(watch)
    clock.expect({"a": 100.0})
    clock.begin("a")
    watch.seconds = 30
    assert clock.remaining(0.0) == 70
    assert clock.remaining(0.5) == pytest.approx((30 + 70) / 2)
    assert clock.remaining(1.0) == clock.remaining(1.5) == 0
    watch.seconds = 1000
    assert clock.remaining() == pytest.approx(10)


def test_a_stage_that_ends_while_another_thread_asks_ends_after_the_answer():
    ending, asking = threading.Thread(target=lambda: clock.end("a")), threading.Event()

    def now() -> float:
        if asking.is_set() and not ending.ident:
            ending.start()
            ending.join(0.1)  # it waits for the answer
        return 0.0

    clock = RunClock(now)
    clock.expect({"a": 10.0, "b": 20.0})
    clock.begin("a")
    asking.set()
    assert clock.remaining() == 30
    ending.join()
    assert clock.remaining() is None


def test_compiling_says_nothing_of_other_stages():
    watch = Watch()
    clock = RunClock(watch)
    clock.expect({"a": 10.0, "b": 10.0})
    clock.begin("a")
    watch.seconds = 40
    clock.end("a", compiling=30)
    clock.begin("b")
    assert clock.remaining() == pytest.approx(10)


@given(st.floats(0, 1e6))
def test_durations_are_said_to_the_second_below_an_hour(seconds):
    words = duration_text(seconds).split()
    amounts = dict(zip(words[1::2], map(int, words[::2]), strict=True))
    found = amounts.get("h", 0) * 3600 + amounts.get("min", 0) * 60 + amounts.get("s", 0)
    assert abs(found - seconds) <= (0.5 if seconds < 3599 else 60)
