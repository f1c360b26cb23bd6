"""What a run still takes: as expected at first, then by how long its stages have taken."""

import pytest

from scalemani.engine.remaining import LEFT_SHARE, TRUSTED_SECONDS, RunClock


class Watch:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_what_is_expected_counts_down_and_follows_the_stages_that_have_ended():
    watch = Watch()
    clock = RunClock({"a": 99.0, "b": 100.0, "c": 300.0}, watch)
    assert clock.remaining() == 499
    clock.begin("a")
    watch.seconds = 40
    assert clock.remaining() == 459
    watch.seconds = 199
    clock.end()
    factor = (TRUSTED_SECONDS + 199) / (TRUSTED_SECONDS + 99)  # this machine takes twice what was expected
    assert clock.remaining() == pytest.approx(400 * factor)
    clock.begin("b")
    assert clock.remaining() == pytest.approx(400 * factor)
    watch.seconds += 50
    assert clock.remaining() == pytest.approx(400 * factor - 50)


def test_a_stage_that_takes_longer_than_expected_says_so_of_the_others_before_it_ends():
    watch = Watch()
    clock = RunClock({"a": 9.0, "b": 10.0}, watch)
    clock.begin("a")
    watch.seconds = 99
    assert clock.remaining() == pytest.approx(10 * 10 + LEFT_SHARE * 99)


def test_stages_of_which_nothing_is_expected_leave_the_rest_as_it_is():
    watch = Watch()
    clock = RunClock({"b": 10.0}, watch)
    clock.begin("a")
    watch.seconds = 0.5
    assert clock.remaining() == 10
