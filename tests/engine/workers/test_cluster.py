"""Tasks on a Dask cluster: as many as fit into the memory of the workers, under names that a dashboard groups."""

import operator
import re
import subprocess
import sys
import threading
import time

import pytest
from distributed import Client, LocalCluster, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import key_split

from scalemani.config.limits import CLUSTER_TIMEOUTS, ClusterTimeouts
from scalemani.engine.graph import TaskGraph
from scalemani.engine.memory_model import Batch, Memory
from scalemani.engine.workers import clients
from scalemani.engine.workers import cluster as module
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, StoreError, WorkersLostError

GIGABYTE = 10**9
SECONDS = 120  # on a machine that does much else
LOADED = """
import sys
from scalemani.stages.table import STAGES
from scalemani.engine.workers.cluster import run_unit
assert STAGES
print(*sorted(name for name in sys.argv[1:] if name in sys.modules))
"""


class Side:
    """How many tasks were at work at the same moment, by thread of this process; what was called, and how often.

    The first tasks wait until as many as are `awaited` are at work, however late the machine starts the last of them.
    """

    def __init__(self):
        self.changed, self.now, self.most, self.awaited, self.calls = threading.Condition(), 0, 0, 1, []


SIDE = Side()


@pytest.fixture(autouse=True)
def side():
    SIDE.__init__()
    return SIDE


def work(unit):
    with SIDE.changed:
        SIDE.now += 1
        SIDE.most = max(SIDE.most, SIDE.now)
        SIDE.changed.notify_all()
        if not SIDE.changed.wait_for(lambda: SIDE.most >= SIDE.awaited, SECONDS):
            SIDE.awaited = 0  # they do not come
    time.sleep(0.05)
    with SIDE.changed:
        SIDE.now -= 1
    return unit


def fail_at_first(unit):
    SIDE.calls.append(unit)
    if SIDE.calls.count(unit) < 3:
        raise ConnectionResetError("gone")
    return unit


def always_fails(unit):
    SIDE.calls.append(unit)
    raise {1: ConnectionResetError, 2: StoreError, 3: ZeroDivisionError}[unit]("not to be had")


@pytest.fixture
def started():
    """Start clusters in this process: `started(threads, memory, workers=1)` returns a client."""
    open_ones = []

    def start(threads=2, memory=4 * GIGABYTE, workers=1, **options):
        local = LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            memory_limit=memory,
            processes=False,
            dashboard_address=None,
            **options,
        )
        open_ones.append((Client(local), local))
        return open_ones[-1][0]

    yield start
    for client, local in open_ones:
        client.close()
        local.close()


def summed(client, function, units, memory=None, timeouts=CLUSTER_TIMEOUTS):
    return Executor(client, timeouts=timeouts).fold(
        function, operator.add, units, batch=Batch("demo", "scope", memory or Memory())
    )


@pytest.mark.parametrize(("per_task", "side_by_side"), [(GIGABYTE, 4), (1.5 * GIGABYTE, 2), (3 * GIGABYTE, 1)])
def test_no_more_tasks_run_side_by_side_than_fit_into_the_memory_of_workers(started, side, per_task, side_by_side):
    client, side.awaited = started(threads=4), side_by_side
    assert summed(client, work, range(12), Memory(task={"block": per_task})) == 66
    assert side.most == side_by_side


def test_where_workers_declare_bytes_dask_divides_them(started, side):
    client, side.awaited = started(threads=4, resources={clients.RESOURCE: 5 * GIGABYTE}), 2
    assert summed(client, work, range(12), Memory({"model": GIGABYTE}, {"block": 2 * GIGABYTE})) == 66
    assert side.most == 2


def add_worker(client, name, threads, memory):
    options = {**client.cluster.new_spec["options"], "memory_limit": memory, "nthreads": threads}
    client.cluster.worker_spec[name] = {"cls": client.cluster.new_spec["cls"], "options": options}
    client.sync(client.cluster._correct_state)


def test_a_worker_that_has_no_room_for_a_task_is_given_none(started, side):
    client = started(threads=4, memory=GIGABYTE)
    add_worker(client, "larger", 1, 4 * GIGABYTE)
    client.wait_for_workers(2)
    assert summed(client, work, range(6), Memory(task={"block": 3 * GIGABYTE})) == 15
    assert side.most == 1


def test_where_the_only_worker_with_room_is_lost_another_one_takes_its_tasks(started, side):
    client = started(threads=1, memory=GIGABYTE)
    add_worker(client, "larger", 1, 4 * GIGABYTE)
    client.wait_for_workers(2)

    def replace():
        with side.changed:
            side.changed.wait_for(lambda: side.most)
        del client.cluster.worker_spec["larger"]
        add_worker(client, "another", 1, 4 * GIGABYTE)

    replacing = threading.Thread(target=replace)
    replacing.start()
    assert summed(client, work, range(40), Memory(task={"block": 3 * GIGABYTE})) == 780
    replacing.join()
    assert side.most == 1


def own_key(unit):
    return [get_worker().get_current_task()]


def test_tasks_have_the_name_of_their_stage_and_block(started):
    keys = Executor(started()).fold(own_key, operator.add, [[3], range(4, 7)], batch=Batch("neighbors", "scope"))
    assert [key_split(key) for key in keys] == ["neighbors"] * 2
    assert [key[1] for key in keys] == ["3", "4 to 6"]
    assert len({key[0] for key in keys}) == 1
    assert re.fullmatch(r"neighbors-[0-9a-f]{8}", keys[0][0])


class Submitted(SchedulerPlugin):
    """The dependencies of the tasks that a scheduler of this process is given."""

    def __init__(self):
        self.dependencies = {}

    def update_graph(self, scheduler, *, tasks, **others):
        self.dependencies |= {key: {before.key for before in scheduler.tasks[key].dependencies} for key in tasks}


def test_sums_are_trees_of_which_the_root_alone_reaches_the_driver(started):
    client, submitted, graph = started(threads=1), Submitted(), TaskGraph("demo")
    client.cluster.scheduler.add_plugin(submitted)
    root = graph.tree(operator.add, graph.units(operator.neg, range(40)))
    assert Executor(client).compute(graph, [root]) == [-780]
    edges = {(before[1], key[1]) for key, needed in submitted.dependencies.items() for before in needed}
    assert edges == {(before[1], key[1]) for before, key in graph.edges}
    waited_for = {before for needed in submitted.dependencies.values() for before in needed}
    assert [key[0].rpartition("-")[0] for key in submitted.dependencies.keys() - waited_for] == [root[0]]


def test_no_result_stays_on_the_cluster(started):
    client = started()
    summed(client, work, range(12))
    end = time.monotonic() + SECONDS
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) and time.monotonic() < end:
        time.sleep(0.05)
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


def test_errors_of_the_system_may_pass(started, side):
    assert summed(started(), fail_at_first, range(3)) == 3
    assert sorted(side.calls) == sorted([0, 1, 2] * 3)


@pytest.mark.parametrize(
    ("unit", "error", "attempts"), [(1, ConnectionResetError, 4), (2, StoreError, 1), (3, ZeroDivisionError, 1)]
)
def test_other_errors_and_those_that_do_not_pass_are_raised_as_they_are(started, side, unit, error, attempts):
    with pytest.raises(error, match="not to be had"):
        summed(started(), always_fails, [unit])
    assert side.calls == [unit] * attempts


def test_no_room_for_long_is_an_error_that_says_what_is_missing(started):
    client, brief = started(), ClusterTimeouts(lost_workers=0.5)
    with pytest.raises(WorkersLostError, match="stage demo has no worker: none has the memory for one task"):
        summed(client, work, range(3), Memory(task={"block": 5 * GIGABYTE}), brief)
    client.cluster.scale(0)
    with pytest.raises(WorkersLostError, match="stage demo has no worker: none is there"):
        summed(client, work, range(300), timeouts=brief)


def test_nobody_waits_longer_than_two_minutes_for_workers_or_one_for_a_scheduler():
    answer = CLUSTER_TIMEOUTS.answer + module.POLL_SECONDS
    assert CLUSTER_TIMEOUTS.lost_workers + answer <= 120
    assert CLUSTER_TIMEOUTS.connect + answer <= 60  # Dask closes a client that cannot connect again for so long


def test_a_client_that_is_closed_is_an_error(started):
    client = started()
    client.close()
    with pytest.raises(ConfigError, match="was closed: make another one"):
        summed(client, work, range(3))


def test_a_worker_does_not_load_what_only_drivers_need():
    needless = ["dask.array", "matplotlib", "pandas", "pyarrow", "sklearn.manifold", "typer"]
    command = [sys.executable, "-c", LOADED, *needless]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
