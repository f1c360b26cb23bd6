"""What a driver knows of workers: how many tasks fit, who has least to do, and which units a lost worker had."""

import pytest
from distributed import Client, LocalCluster

from scalemani.errors import SchedulerLostError, WorkersLostError
from scalemani.workers import roster as roster_module
from scalemani.workers.budget import Batch, MemoryNeed
from scalemani.workers.roster import TASKS_IN_HAND, Roster

GIGABYTE = 10**9


@pytest.fixture
def cluster():
    options = {"processes": False, "dashboard_address": None, "memory_limit": 4 * GIGABYTE}
    with LocalCluster(n_workers=2, threads_per_worker=2, **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


def roster_of(client, need=None, restore=lambda: None):
    roster = Roster(client, Batch("demo", "scope", need or MemoryNeed()), restore)
    assert roster.refresh() == []
    roster.check_capacity()
    return roster


@pytest.mark.parametrize(("per_task", "capacity"), [(GIGABYTE, 4), (3 * GIGABYTE, 2)])
def test_as_many_tasks_fit_as_workers_have_threads_and_memory_for(client, per_task, capacity):
    assert roster_of(client, MemoryNeed(per_task=per_task)).capacity == capacity


def test_units_go_to_the_worker_with_least_to_do_until_all_have_what_they_can_work_on(client):
    roster, addresses = roster_of(client), []
    for unit in range(4):
        addresses.append(roster.least_busy(queued=False))
        roster.assign(addresses[-1], unit, isolate=False)
    assert sorted(map(addresses.count, set(addresses))) == [2, 2]
    assert roster.least_busy(queued=False) is None
    assert roster.least_busy(queued=True) is not None
    for unit in range(4, 2 * 2 * TASKS_IN_HAND):
        roster.assign(roster.least_busy(queued=True), unit, isolate=False)
    assert roster.least_busy(queued=True) is None
    roster.unassign(addresses[0], 0)
    assert roster.least_busy(queued=True) == addresses[0]


def test_a_unit_in_a_process_of_its_own_has_a_worker_to_itself(client):
    roster = roster_of(client)
    first = roster.least_busy(queued=False)
    roster.assign(first, 0, isolate=False)
    second = roster.for_retry(isolate=True)
    assert second != first
    roster.assign(second, 1, isolate=True)
    assert roster.for_retry(isolate=True) is None
    assert roster.least_busy(queued=True) == first
    roster.unassign(second, 1)
    assert roster.for_retry(isolate=True) == second


def test_one_worker_is_kept_free_for_a_unit_that_is_to_be_alone_and_the_others_go_on(client):
    roster = roster_of(client)
    first, second = given(roster, 0), given(roster, 1)
    given(roster, 2)
    roster.reserve()
    roster.reserve()  # while one is kept free, no other is
    assert roster.for_retry(isolate=True) is None
    kept = second if roster.least_busy(queued=True) == first else first
    other = second if kept == first else first
    for unit in range(3, 5):
        assert given(roster, unit) == other
    roster.unassign(kept, 0)
    roster.unassign(kept, 1)
    assert roster.for_retry(isolate=True) == kept
    roster.assign(kept, 6, isolate=True)
    roster.unassign(kept, 6)
    assert roster.least_busy(queued=True) == kept


def given(roster, unit):
    """Give a unit to the worker with least to do, and return the address of that."""
    address = roster.least_busy(queued=True)
    if address is not None:
        roster.assign(address, unit, isolate=False)
    return address


def test_a_worker_that_has_just_come_gets_no_unit_of_a_lost_one(client, monkeypatch):
    roster = roster_of(client)
    assert roster.for_retry(isolate=False) is None
    monkeypatch.setattr(roster_module, "STARTED_SECONDS", 0.0)
    assert roster.for_retry(isolate=False) is not None


def test_the_units_of_a_lost_worker_are_told_and_restoring_is_tried(cluster, client):
    restored = []
    roster = roster_of(client, restore=lambda: restored.append(True))
    first = roster.least_busy(queued=False)
    roster.assign(first, 5, isolate=False)
    roster.assign(first, 6, isolate=False)
    client.retire_workers([first], close_workers=True)
    assert [worker.units for worker in roster.refresh()] == [[5, 6]]
    assert roster.refresh() == []
    assert roster.capacity == 2
    assert len(restored) == 3
    roster.unassign(first, 5)  # a task of a lost worker may still end


def test_no_room_for_long_is_an_error_that_says_what_is_missing(cluster, client, monkeypatch):
    monkeypatch.setattr(roster_module, "WORKERS_LOST_SECONDS", -1.0)
    small = Roster(client, Batch("demo", "scope", MemoryNeed(per_task=5 * GIGABYTE)), lambda: None)
    assert small.refresh() == []
    with pytest.raises(WorkersLostError, match="stage demo has no worker: none has the memory for one task"):
        small.check_capacity()
    client.retire_workers(list(client.nthreads()), close_workers=True)
    empty = Roster(client, Batch("demo"), lambda: None)
    assert empty.refresh() == []
    with pytest.raises(WorkersLostError, match="stage demo has no worker: none is there"):
        empty.check_capacity()


def test_nobody_waits_longer_than_two_minutes_for_workers_or_one_for_a_scheduler():
    waits = (roster_module.WORKERS_LOST_SECONDS, roster_module.SCHEDULER_LOST_SECONDS)
    assert waits[0] + roster_module.ANSWER_SECONDS <= 120
    assert waits[1] + roster_module.ANSWER_SECONDS <= 60


def test_a_scheduler_that_is_silent_for_long_is_an_error(cluster, monkeypatch):
    with Client(cluster) as client:
        roster = roster_of(client)
    monkeypatch.setattr(roster_module, "SCHEDULER_LOST_SECONDS", 0.0)
    with pytest.raises(SchedulerLostError, match="the scheduler has not answered"):
        roster.refresh()
