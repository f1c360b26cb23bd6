"""The private calls of `distributed` that the driver relies on are there, and do what it expects of them."""

import operator
import os
import threading
import time

import pytest
from distributed import Client, LocalCluster

from scalemani.workers.dask_calls import ask_scheduler, gather_results, run_on_workers

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


def test_results_come_in_the_order_of_their_futures(client):
    futures = client.map(operator.neg, range(20))
    assert gather_results(client, futures[::-1], SECONDS) == [-number for number in range(20)][::-1]


def test_a_result_that_does_not_come_is_an_error_in_time(client):
    future, started = client.submit(wait_for, "gather", pure=False), time.monotonic()
    with pytest.raises(TimeoutError):
        gather_results(client, [future], 0.2)
    assert time.monotonic() - started < SECONDS / 2
    EVENTS["gather"].set()
    assert gather_results(client, [future], SECONDS) == [True]


def test_the_error_of_a_task_is_raised_when_its_result_is_gathered(client):
    with pytest.raises(ZeroDivisionError):
        gather_results(client, [client.submit(operator.floordiv, 1, 0)], SECONDS)


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
