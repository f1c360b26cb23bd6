"""The end of a process that is told to stop while threads are at work."""

import os
import signal
import subprocess
import sys
import time

import pytest

from scalemani.interfaces.cli.process import GRACE_SECONDS

# The interpreter would wait for the other thread, which gives the GIL up.
IN_THREADS = """
import threading
from scalemani.interfaces.cli.process import ending_in_time
with ending_in_time():
    threading.Thread(target=threading.Event().wait, args=[3600]).start()
    print("at work", flush=True)
    threading.Event().wait(3600)
"""
SECONDS_INTO_WORK = 2.0
LONGEST_SECONDS = 5.0  # of the end, the grace and what the system takes for it where nothing else runs
SECONDS = 240  # on a machine that does much else


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_whose_threads_are_at_work_ends_in_time(number):
    heeded = f"import signal; signal.signal({int(number)}, signal.SIG_DFL)\n"  # a shell may have it ignored
    command = [sys.executable, "-c", heeded + IN_THREADS]
    with subprocess.Popen(
        command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(SECONDS_INTO_WORK)
        process.send_signal(number)
        try:
            assert process.wait(SECONDS) == 128 + number  # an hour before the threads have done their work
        finally:
            process.kill()
    assert GRACE_SECONDS <= LONGEST_SECONDS - 1
