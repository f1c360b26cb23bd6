"""The end of a command in time when it is told to stop."""

import contextlib
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from scalemani.cli.output import tell

GRACE_SECONDS = 3
STANDARD_ERROR = 2
STATUS_OF_SIGNALS = 128  # a shell tells of signal n by status 128 + n
# The last when a terminal goes, on systems that have it.
STOP_SIGNALS = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP"))


@contextlib.contextmanager
def ending_in_time() -> Iterator[None]:
    """End within seconds of SIGINT, SIGTERM or SIGHUP with status 130, 143 or 129, whatever other threads compute.

    Python's handlers wait for compiled code of the main thread to return, and the interpreter for its worker threads.
    A thread therefore ends the process after a grace. A call that holds the GIL, as SciPy's LAPACK does, ends first.
    What was finished by then is marked, the rest is left for the next run. SIGUSR1 shows what every thread is doing.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, file=STANDARD_ERROR, all_threads=True)
    reader, writer = os.pipe()  # the number of a signal is in it at once
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=watch, args=(reader,), name="stop signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)


def stop(number: int, frame: FrameType | None) -> None:
    """Unwind on a signal, so that locks, bars and local clusters are let go of."""
    tell("stopped", f"stopped by {signal.Signals(number).name}: the same command resumes the run")
    raise SystemExit(STATUS_OF_SIGNALS + number)


def watch(reader: int) -> None:
    """Wait for a stop signal, or for the end of the command; give the first a grace, then end the process."""
    while received := os.read(reader, 1):
        if received[0] in STOP_SIGNALS:
            time.sleep(GRACE_SECONDS)
            os._exit(STATUS_OF_SIGNALS + received[0])
    os.close(reader)
