"""What a run still takes: as expected at first, then by how long its stages have taken."""

import pytest

from scalemani.engine.progress import LEFT_SHARE, TRUSTED_SECONDS, Progress


class Watch:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def expecting(seconds, watch):
    progress = Progress()
    progress.now = watch
    progress.expect(seconds)
    return progress


def test_what_is_expected_counts_down_and_follows_the_stages_that_have_ended():
    watch = Watch()
    progress = expecting({"a": 99.0, "b": 100.0, "c": 300.0}, watch)
    assert progress.remaining() == 499
    progress.begin("a")
    watch.seconds = 40
    assert progress.remaining() == 459
    watch.seconds = 199
    progress.end("a")
    factor = (TRUSTED_SECONDS + 199) / (TRUSTED_SECONDS + 99)  # this machine takes twice what was expected
    assert progress.remaining() == pytest.approx(400 * factor)
    progress.begin("b")
    assert progress.remaining() == pytest.approx(400 * factor)
    watch.seconds += 50
    assert progress.remaining() == pytest.approx(400 * factor - 50)


def test_a_stage_that_takes_longer_than_expected_says_so_of_the_others_before_it_ends():
    watch = Watch()
    progress = expecting({"a": 9.0, "b": 10.0}, watch)
    progress.begin("a")
    watch.seconds = 99
    assert progress.remaining() == pytest.approx(10 * 10 + LEFT_SHARE * 99)


def test_stages_of_which_nothing_is_expected_leave_the_rest_as_it_is():
    watch = Watch()
    progress = expecting({"b": 10.0}, watch)
    progress.begin("a")
    watch.seconds = 0.5
    assert progress.remaining() == 10


def test_what_one_run_has_taken_says_nothing_of_the_next():
    watch = Watch()
    progress = expecting({"a": 1.0}, watch)
    progress.begin("a")
    watch.seconds = 99
    progress.end("a")
    progress.expect({"a": 1.0, "b": 10.0})
    assert progress.remaining() == 11
