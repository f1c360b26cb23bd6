"""Another try or an error: what is counted against a unit, and when it is too much."""

import pytest

from scalemani.errors import PoisonTaskError, StoreError, WorkersLostError
from scalemani.workers.attempts import MOST_ATTEMPTS, MOST_LOST, MOST_OWN_PROCESSES, OWN_PROCESS_AFTER, Attempts
from scalemani.workers.own_process import OwnProcessEndedError


@pytest.fixture
def attempts():
    return Attempts("demo", ["first", [7, 8]])


def test_a_unit_has_a_process_of_its_own_once_two_workers_were_lost_with_it(attempts):
    for _ in range(OWN_PROCESS_AFTER):
        assert not attempts.needs_own_process(1)
        attempts.note_lost_worker(1)
    assert attempts.needs_own_process(1)
    assert attempts.was_lost(1)
    assert not attempts.was_lost(0)


def test_workers_that_go_again_and_again_are_to_blame_themselves(attempts):
    for _ in range(MOST_LOST - 1):
        attempts.note_lost_worker(1)
    with pytest.raises(WorkersLostError, match=rf"stage demo, block 7, 8: {MOST_LOST} workers were lost"):
        attempts.note_lost_worker(1)


def test_a_unit_that_ends_its_own_processes_is_to_blame(attempts):
    attempts.note_lost_worker(0)
    for _ in range(MOST_OWN_PROCESSES - 1):
        attempts.note_failure(0, OwnProcessEndedError("by signal 11"))
    with pytest.raises(PoisonTaskError, match=rf"block first: {1 + MOST_OWN_PROCESSES} processes .* ended by signal 9"):
        attempts.note_failure(0, OwnProcessEndedError("by signal 9"))


def test_errors_of_the_system_may_pass_for_some_attempts(attempts):
    for _ in range(MOST_ATTEMPTS - 1):
        attempts.note_failure(0, ConnectionResetError("gone"))
    attempts.note_failure(1, ConnectionResetError("gone"))
    with pytest.raises(ConnectionResetError):
        attempts.note_failure(0, ConnectionResetError("gone"))


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), StoreError("not to be had")])
def test_other_errors_are_raised_at_once(attempts, error):
    with pytest.raises(type(error)):
        attempts.note_failure(0, error)
