"""What is lost while a run is at work: workers, all of them, the scheduler; and blocks that end their workers."""

import collections
import contextlib
import functools
import operator
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, KilledWorker

from scalemani.config.limits import CLUSTER_TIMEOUTS, ClusterTimeouts
from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.graph import TaskGraph
from scalemani.engine.memory_model import Batch, Budget, Memory
from scalemani.engine.task import Dimensions
from scalemani.engine.workers import cluster as tasks
from scalemani.engine.workers.clients import described_workers
from scalemani.engine.workers.executor import Executor
from scalemani.errors import PoisonTaskError, SchedulerLostError, StoreError, WorkersLostError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from tests.cluster.tasks_of_losses import (
    always_end,
    crash,
    end_at_zero,
    end_beside_the_first,
    grow,
    noted_square,
    refuse,
    slow_square,
)

# A worker that says nothing for so long is given up; 60 s but for these tests.
SHORT_LIVED = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "8 s"}
# Workers that may die with a task until Dask gives it up: 3 but for these tests, in which each takes seconds.
FEW_DEATHS = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
# Workers ask a bucket that does not answer for so long: 90 s but for these tests.
FEW_RETRIES = {
    "DASK_DISTRIBUTED__WORKER__PRELOAD": "['from scalemani.store import buckets; "
    "buckets.BucketObjects.__init__.__defaults__ = (buckets.Timeouts(retry=1.0),)']"
}
BLOCKS_BEFORE_LOSS = 4  # done when the scheduler is killed
THAW_SECONDS = 3.0  # for what a worker had begun when it was stopped
SECONDS_ON_A_BUSY_MACHINE = 240  # some 15 where nothing else runs: processes are started one after the other


def embed(points, root, values, **resources):
    params = Parameters().with_values(values)
    return run(open_points(points), root, "laplacian-eigenmaps", params, Executor(**resources), 1024)


class Killer(threading.Thread):
    """Ends a worker at random whenever so many more blocks are finished: a run gets on, however slow the machine is."""

    def __init__(self, processes, seed, ledger, blocks):
        super().__init__(daemon=True)
        self.processes, self.draws, self.ledger, self.blocks = processes, random.Random(seed), ledger, blocks
        self.stop = threading.Event()
        self.kills = 0

    def run(self):
        at = self.blocks
        while not self.stop.wait(0.05):
            finished = self.ledger.read_text().count("\n") if self.ledger.exists() else 0
            found = self.processes()
            if finished >= at and found:
                with contextlib.suppress(psutil.Error):
                    self.draws.choice(found).kill()
                    self.kills += 1
                at = finished + self.blocks


def own_workers():
    """Return the processes of workers that this one has started."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            found += [child] if "spawn_main" in " ".join(child.cmdline()) else []
    return found


def test_a_run_outlives_its_workers_and_does_nothing_twice(roll, values, tmp_path, monkeypatch):
    points = np.concatenate([roll + 40 * number for number in range(2)])
    reference = embed(points, tmp_path / "reference", values)
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    killer = Killer(own_workers, 1, tmp_path / "ledger", 25)
    killer.start()
    found = embed(points, tmp_path / "run", values, scheduler="processes", workers=2)
    killer.stop.set()
    assert killer.kills >= 2
    for stage in reference.keys:
        assert found.group(stage).content_digest == reference.group(stage).content_digest, stage
    done = collections.Counter(line.rpartition(" ")[0] for line in (tmp_path / "ledger").read_text().splitlines())
    assert max(done.values()) == 1
    assert not own_workers()


def test_a_map_outlives_all_its_workers_at_once(mapped):
    executor = Executor(scheduler="processes", workers=2)
    with executor.started():

        def end_all():
            for worker in own_workers():
                worker.kill()

        for delay in (0.5, 4.0):
            threading.Timer(delay, end_all).start()
        assert mapped(executor, slow_square, range(30)) == [number**2 for number in range(30)]
    assert not own_workers()


def test_results_that_go_with_their_workers_are_computed_anew():
    executor = Executor(scheduler="processes", workers=2)
    with executor.started():

        def end_all():
            for worker in own_workers():
                worker.kill()

        killers = [threading.Timer(delay, end_all) for delay in (1.5, 6.0)]
        for killer in killers:
            killer.start()
        assert executor.fold(slow_square, operator.add, range(24), batch=Batch("demo", "scope")) == 4324
        for killer in killers:
            killer.cancel()


def test_a_block_that_ends_its_workers_is_named_and_the_others_are_done(start_cluster, tmp_path, mapped):
    cluster = start_cluster(2, FEW_DEATHS)
    executor = Executor(scheduler=cluster.address)
    started = time.monotonic()
    with executor.started(), pytest.raises(PoisonTaskError, match=r"stage demo, block 5: workers died whenever"):
        mapped(executor, functools.partial(crash, str(tmp_path)), range(12))
    assert time.monotonic() - started < SECONDS_ON_A_BUSY_MACHINE
    tried = collections.Counter(name.partition("-")[0] for name in os.listdir(tmp_path))
    assert tried["5"] <= 4
    assert tried.keys() == set(map(str, range(12)))


def test_a_block_that_ends_its_workers_is_named_where_tasks_wait_for_memory(start_cluster, tmp_path):
    """Dask gives all of these to workers at once, and counts each death against them all."""
    cluster = start_cluster(0, FEW_DEATHS)
    for _ in range(2):
        cluster.start("worker", cluster.address, "--nworkers", "1", "--nthreads", "2", "--memory-limit", "2GB")
    executor = Executor(scheduler=cluster.address)
    batch = Batch("demo", "scope", Memory(task={"block": 1.5e9}))
    with executor.started(), pytest.raises(PoisonTaskError, match=r"stage demo, block 5: workers died whenever"):
        executor.fold(functools.partial(crash, str(tmp_path)), operator.add, range(12), batch=batch)
    assert {name.partition("-")[0] for name in os.listdir(tmp_path)} == set(map(str, range(12)))


def test_of_blocks_that_end_their_workers_and_those_beside_them_the_first_that_does_is_named(tmp_path, mapped):
    executor = Executor(scheduler="processes", workers=1)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), executor.started():
        with pytest.raises(PoisonTaskError, match="block 0: workers died whenever") as ended:
            mapped(executor, functools.partial(end_at_zero, str(tmp_path)), range(4))
        assert isinstance(ended.value.__cause__, KilledWorker)
    assert {name.partition("-")[0] for name in os.listdir(tmp_path)} >= {"0", "2", "3"}


def test_nothing_runs_next_to_a_block_that_is_suspected(tmp_path, mapped):
    executor, units = Executor(scheduler="processes", workers=2), range(12)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), executor.started():
        assert mapped(executor, functools.partial(end_beside_the_first, str(tmp_path)), units) == list(units)
    spans = collections.defaultdict(list)
    for path in tmp_path.glob("*-*"):
        spans[int(path.name.partition("-")[0])].append(tuple(map(float, path.read_text().split())))
    again = {unit: max(spans[unit]) for unit in units if len(spans[unit]) > 1}
    assert again
    for unit, (begun, ended) in again.items():
        others = [one for other in units if other != unit for one in spans[other]]
        assert not [one for one in others if one[0] < ended and begun < one[1]], unit


def test_where_every_block_ends_its_workers_few_are_tried(tmp_path):
    executor, units = Executor(scheduler="processes", workers=1), [[block] for block in range(40)]
    graph = TaskGraph("demo")
    rows = Dimensions(40_000, 3, "float32", 1024).rows
    root = graph.tree(operator.add, graph.units(functools.partial(always_end, str(tmp_path)), units, rows=rows))
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), executor.started():
        named = r"stage demo, block (\d+) \(rows \d+ to \d+ of its arrays\): workers died"
        with pytest.raises(PoisonTaskError, match=named) as ended:
            executor.compute(graph, [root], batch=Batch("demo", "scope"))
    block = int(re.search(named, str(ended.value)).group(1))
    assert f"rows {1024 * block} to {min(1024 * block + 1023, 39_999)} of" in str(ended.value)
    tried = {name.partition("-")[0] for name in os.listdir(tmp_path)}
    assert len(tried) <= 4 * tasks.MOST_POISONED


def test_a_block_that_takes_more_memory_than_workers_have_is_named_with_what_to_do(start_cluster, mapped):
    cluster = start_cluster(0, FEW_DEATHS)
    cluster.add_workers(1, "--memory-limit", "1GB")
    executor = Executor(scheduler=cluster.address)
    with executor.started(), pytest.raises(PoisonTaskError, match=r"block 3: .* give workers more memory"):
        mapped(executor, grow, range(2, 4))


@contextlib.contextmanager
def workers_killed_as_they_begin(folder, most):
    """Kill the workers of this process whenever one of them notes a unit in a folder, `most` times."""
    stop = threading.Event()

    def watch():
        seen = set()
        while len(seen) < most and not stop.wait(0.02):
            begun = set(os.listdir(folder))
            for worker in own_workers() if begun - seen else []:
                worker.kill()
            seen |= begun

    killer = threading.Thread(target=watch)
    killer.start()
    try:
        yield
    finally:
        stop.set()
        killer.join()


def test_a_block_whose_workers_are_killed_each_time_is_not_at_fault(tmp_path, mapped):
    executor, kills = Executor(scheduler="processes", workers=1), 4
    with executor.started(), workers_killed_as_they_begin(tmp_path, kills):
        assert mapped(executor, functools.partial(noted_square, str(tmp_path)), [7]) == [49]
    assert len(os.listdir(tmp_path)) > kills


def test_an_error_of_a_task_is_raised_as_it_is(mapped):
    executor = Executor(scheduler="processes", workers=1)
    with executor.started(), pytest.raises(StoreError, match="is not to be had"):
        mapped(executor, refuse, range(6))


def test_no_worker_left_is_an_error_in_time_and_a_new_one_goes_on(start_cluster, mapped):
    cluster = start_cluster(0)
    nanny = cluster.add_workers(2)
    executor = Executor(scheduler=cluster.address)
    with executor.started():
        assert mapped(executor, slow_square, range(3)) == [0, 1, 4]

        def end_all():
            for process in [nanny, *cluster.worker_processes()]:
                process.send_signal(signal.SIGKILL)

        executor.timeouts = ClusterTimeouts(lost_workers=2.0)
        threading.Timer(0.5, end_all).start()
        started = time.monotonic()
        with pytest.raises(WorkersLostError, match="stage demo has no worker: none is there") as lost:
            mapped(executor, slow_square, range(100))
        assert time.monotonic() - started < CLUSTER_TIMEOUTS.lost_workers
        assert lost.value.exit_status == 1
        threading.Timer(0.5, cluster.add_workers, [1]).start()
        executor.timeouts = ClusterTimeouts(lost_workers=SECONDS_ON_A_BUSY_MACHINE)
        assert mapped(executor, slow_square, range(3)) == [0, 1, 4]


def test_a_scheduler_that_is_gone_is_an_error_in_time(start_cluster, mapped):
    cluster = start_cluster(1)
    executor = Executor(scheduler=cluster.address, timeouts=ClusterTimeouts(connect=5))
    started = time.monotonic()
    with executor.started():
        threading.Timer(0.5, cluster.scheduler.kill).start()
        with pytest.raises(SchedulerLostError, match="run the same command again to resume") as lost:
            mapped(executor, slow_square, range(200))
    assert time.monotonic() - started < 60
    assert lost.value.exit_status == 1


def test_a_scheduler_that_stands_still_is_an_error_in_time(start_cluster, mapped):
    cluster = start_cluster(1)
    executor = Executor(scheduler=cluster.address)
    with executor.started():
        assert mapped(executor, slow_square, range(2)) == [0, 1]
        executor.timeouts = ClusterTimeouts(answer=1.0, lost_workers=2.0)
        threading.Timer(0.5, cluster.scheduler.send_signal, [signal.SIGSTOP]).start()
        with pytest.raises(SchedulerLostError, match="run the same command again to resume"):
            mapped(executor, slow_square, range(200))
        cluster.scheduler.send_signal(signal.SIGCONT)


def test_a_run_whose_scheduler_was_killed_ends_in_time_and_goes_on_equal_with_another(
    start_cluster, roll, values, tmp_path, monkeypatch
):
    reference = embed(roll, tmp_path / "reference", values)
    ledger = tmp_path / "ledger"
    monkeypatch.setenv(LEDGER_VARIABLE, str(ledger))
    cluster, killed = start_cluster(1), []

    def kill_once_blocks_are_done():
        end = time.monotonic() + SECONDS_ON_A_BUSY_MACHINE
        while time.monotonic() < end and not (ledger.exists() and ledger.read_text().count("\n") >= BLOCKS_BEFORE_LOSS):
            time.sleep(0.05)
        cluster.scheduler.kill()
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill_once_blocks_are_done)
    killer.start()
    with pytest.raises(SchedulerLostError, match="run the same command again to resume"):
        embed(roll, tmp_path / "run", values, scheduler=cluster.address, timeouts=ClusterTimeouts(connect=5))
    waited = time.monotonic() - killed[0]
    killer.join()
    assert waited < CLUSTER_TIMEOUTS.connect == 30
    done_before = ledger.read_text().splitlines()
    found = embed(roll, tmp_path / "run", values, scheduler=start_cluster(1).address)
    assert len(ledger.read_text().splitlines()) > len(done_before)
    for stage in reference.keys:
        assert found.group(stage).content_digest == reference.group(stage).content_digest, stage


def two_machines(start_cluster, environment):
    """Start a cluster whose two workers have a nanny each; return it, and the second nanny."""
    cluster = start_cluster(1, environment)
    second = psutil.Process(cluster.add_workers(1).pid)
    end = time.monotonic() + SECONDS_ON_A_BUSY_MACHINE
    while len(cluster.worker_processes()) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    return cluster, second


def freeze(nanny):
    """Stop a nanny and its worker, as if their machine stood still; return what lets them go on."""
    stopped = [nanny, *nanny.children(recursive=True)]
    for process in stopped:
        process.suspend()

    def thaw():
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return thaw


def test_a_machine_that_stands_still_past_its_time_and_goes_on_changes_no_result(start_cluster, tmp_path, mapped):
    cluster, nanny = two_machines(start_cluster, SHORT_LIVED)
    executor, units = Executor(scheduler=cluster.address), range(40)
    with executor.started(), Client(cluster.address, set_as_default=False) as client:
        assert mapped(executor, slow_square, range(4)) == [0, 1, 4, 9]
        assert len(described_workers(client)) == 2
        go_on, thawed = freeze(nanny), []

        def thaw_once_given_up():
            end = time.monotonic() + SECONDS_ON_A_BUSY_MACHINE
            while time.monotonic() < end and len(described_workers(client)) == 2:
                time.sleep(0.1)
            go_on()
            thawed.append(time.monotonic() < end)

        thaw = threading.Thread(target=thaw_once_given_up)
        thaw.start()
        squares = [number**2 for number in units]
        assert mapped(executor, functools.partial(noted_square, str(tmp_path)), units) == squares
        thaw.join()
    assert thawed == [True]
    assert {name.partition("-")[0] for name in os.listdir(tmp_path)} == set(map(str, units))


def test_a_machine_of_an_earlier_run_that_goes_on_after_a_later_one_does_no_harm(roll, start_cluster, values, tmp_path):
    points, ledger, root = roll[:3000], tmp_path / "ledger", tmp_path / "run"
    reference = embed(points, tmp_path / "reference", values)
    np.save(tmp_path / "points.npy", points)
    cluster, nanny = two_machines(start_cluster, {**SHORT_LIVED, LEDGER_VARIABLE: str(ledger)})
    with killed_at_the_end(started_driver(tmp_path / "points.npy", root, values, cluster.address)) as driver:
        while driver.poll() is None and not (ledger.exists() and ledger.read_text().count("\n") >= 4):
            time.sleep(0.01)
        thaw = freeze(nanny)
    assert driver.returncode == -signal.SIGKILL
    finished = embed(points, root, values, scheduler=cluster.address)
    thaw()
    time.sleep(THAW_SECONDS)
    for stage in reference.keys:
        assert finished.group(stage).content_digest == reference.group(stage).content_digest, stage
        assert not finished.group(stage).damaged_units(), stage


def started_driver(points, root, values, address):
    """Start the same run in a process of its own."""
    chosen = [f"--set={stage}.{name}={value}" for stage, group in values.items() for name, value in group.items()]
    command = [sys.executable, "-m", "scalemani", "embed", str(points), str(root), "--block-rows=1024", *chosen]
    return subprocess.Popen([*command, "--scheduler", address], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def killed_at_the_end(process):
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_store_that_workers_do_not_see_is_refused(roll, start_cluster, values, bucket):
    nothing_there = {"AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "HOME": "/none"}
    cluster = start_cluster(1, {**nothing_there, **FEW_RETRIES})
    with pytest.raises(StoreError, match="cannot work on s3://"):
        embed(roll, f"{bucket}/run", values, scheduler=cluster.address)


def test_as_many_tasks_run_side_by_side_as_fit_into_a_worker():
    assert Budget(4, None).fit(Memory({"model": 100}, {"block": 50})) == 4
    assert Budget(4, 250).fit(Memory({"model": 100}, {"block": 50})) == 3
    assert Budget(4, 120).fit(Memory({"model": 100}, {"block": 50})) == 0
    assert [Budget(4, n_bytes).fit(Memory({"model": 100})) for n_bytes in (99, 100)] == [0, 4]
