"""A process that is forked while threads of its parent are at work can compute what it likes."""

import gc
import os
import select
import signal
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import scalemani as sm
from scalemani.engine.memory.process import PROCESS, Key
from scalemani.engine.workers.blas import BLAS
from scalemani.io.sources import open_points
from scalemani.kernels.machine.compile import COMPILING
from scalemani.kernels.machine.forks import cached_property, new_lock
from scalemani.store.groups import StageGroup

SECONDS = 120  # on a machine that does much else
ROWS = np.random.default_rng(0).normal(size=(300, 4))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")


def in_child(act):
    """Return what a forked child writes of `act()`; fail where it does not end."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, repr(act()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], SECONDS)
        assert ready, "the child hangs"
        return os.read(reading, 4096).decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)


@pytest.fixture
def held():
    """Return a function that has another thread enter a context, and leave it at the end."""
    leave, threads = threading.Event(), []

    def hold(context):
        entered = threading.Event()

        def enter():
            with context:
                entered.set()
                leave.wait(SECONDS)

        threads.append(threading.Thread(target=enter))
        threads[-1].start()
        assert entered.wait(SECONDS)

    yield hold
    leave.set()
    for thread in threads:
        thread.join()


def fitted():
    return sm.LaplacianEigenmaps(random_state=0).fit(ROWS).embedding_.tobytes() == EXPECTED.tobytes()


EXPECTED = sm.LaplacianEigenmaps(random_state=0).fit(ROWS).embedding_


def test_a_child_fits_though_every_lock_of_the_process_was_held_elsewhere(held):
    key = Key.of(np.sum, ())
    PROCESS.once(key, lambda: 1)
    for lock in (BLAS._lock, PROCESS._lock, PROCESS.blocks._lock, PROCESS._making[key], COMPILING._lock):
        held(lock)
    assert in_child(fitted) == "True"


def test_a_child_reads_what_was_read_elsewhere(held, tmp_path):
    np.savez_compressed(tmp_path / "p.npz", X=ROWS)
    source, group = open_points(tmp_path / "p.npz"), StageGroup(tmp_path / "run", "stages/points/0", 1024)
    held(source._lock)
    held(group._lock)
    assert in_child(lambda: source.read(0, 300).tobytes() == ROWS.tobytes()) == "True"
    assert in_child(lambda: group._lock.acquire(timeout=SECONDS)) == "True"


def test_what_the_forking_thread_holds_stays_its_own():
    lock = new_lock()

    def still_held():
        taken = []
        thread = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        lock.release()
        return taken

    with lock:
        assert in_child(still_held) == "[False]"


class Slow:
    entered, leave = threading.Event(), threading.Event()

    def __init__(self, wait=False):
        self.wait = wait

    @cached_property
    def value(self):
        if self.wait:
            self.entered.set()
            self.leave.wait(SECONDS)
        return 7


def test_a_child_computes_a_property_that_was_computed_elsewhere():
    thread = threading.Thread(target=lambda: Slow(wait=True).value)
    thread.start()
    assert Slow.entered.wait(SECONDS)
    try:
        assert in_child(lambda: Slow().value) == "7"
    finally:
        Slow.leave.set()
        thread.join()


def test_a_child_counts_no_threads_of_its_parent(held):
    def after_a_fit():
        with BLAS.hold_at_one():
            pass
        threads = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        return threads, gc.isenabled(), COMPILING.total

    with threadpool_limits(2, user_api="blas"):
        held(BLAS.hold_at_one())
        COMPILING.on_start(None)
        try:
            before = COMPILING._total
            assert in_child(after_a_fit) == repr(({2}, True, before))
        finally:
            COMPILING.on_end(None)


def test_a_child_that_is_forked_within_a_fit_leaves_it():
    def leave():
        with BLAS.hold_at_one():
            pass
        return len(BLAS._holders)

    with BLAS.hold_at_one():
        assert in_child(leave) == "1"
