"""The private calls of `distributed` that the driver relies on are there, and do what it expects of them."""

import operator
import os
import threading
import time

import pytest
from distributed import Client, LocalCluster, get_worker, wait

from scalemani.workers.dask_calls import ask_scheduler, results_at_hand, run_on_workers, send_messages

SECONDS = 30.0


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=3, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def wait_for(name):
    return EVENTS[name].wait(SECONDS)


EVENTS = {"gather": threading.Event(), "run": threading.Event()}


def test_the_scheduler_tells_the_threads_and_the_memory_of_every_worker(client):
    threads = ask_scheduler(client, "ncores", SECONDS)
    described = ask_scheduler(client, "identity", SECONDS, n_workers=-1)["workers"]
    assert list(threads.values()) == [3, 3]
    assert described.keys() == threads.keys()
    assert all(worker["memory_limit"] > 0 for worker in described.values())


def test_results_are_known_by_the_keys_of_their_futures(client):
    futures = client.map(operator.neg, range(20))
    wait(futures, SECONDS)
    found = results_at_hand(client, futures, SECONDS)
    assert [found[future.key] for future in futures] == [-number for number in range(20)]


def test_a_result_that_no_worker_holds_keeps_no_other_back(client):
    future, held_back = client.submit(operator.neg, 7), client.submit(wait_for, "gather", pure=False)
    wait([future], SECONDS)
    assert results_at_hand(client, [future, held_back], SECONDS) == {future.key: -7}
    EVENTS["gather"].set()
    wait([held_back], SECONDS)
    assert results_at_hand(client, [held_back], SECONDS) == {held_back.key: True}
    assert results_at_hand(client, [], SECONDS) == {}


def test_a_function_is_called_on_every_worker(client):
    found = run_on_workers(client, operator.add, 2, 3, seconds=SECONDS)
    assert found == dict.fromkeys(ask_scheduler(client, "ncores", SECONDS), 5)


def test_what_a_function_raises_on_a_worker_is_returned(client):
    found = run_on_workers(client, os.stat, "/no/such/file", seconds=SECONDS)
    assert len(found) == 2
    assert all(isinstance(error, FileNotFoundError) for error in found.values())


def test_a_worker_that_does_not_answer_is_an_error_in_time(client):
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        run_on_workers(client, wait_for, "run", seconds=0.2)
    assert time.monotonic() - started < SECONDS / 2
    EVENTS["run"].set()


def unsent_messages(number):
    send_messages()
    return len(get_worker().batched_stream.buffer)


def test_a_worker_has_sent_what_it_had_to_say_of_earlier_tasks():
    alone = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**alone) as cluster, Client(cluster) as client:
        assert client.gather(client.map(unsent_messages, range(200), pure=False)) == [0] * 200
