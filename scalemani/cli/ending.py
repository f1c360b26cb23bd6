"""The end of a command in time when it is told to stop, whatever compiled code is at work."""

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
WAIT_COMPILED = 0  # a byte in the pipe that is the number of no signal


class Watch:
    """A thread that ends the process soon after a stop signal, whose number is in a pipe at once."""

    def __init__(self) -> None:
        self._writer: int | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the command ends; entered by the main thread, to which Python gives the signals."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._writer = writer
        threading.Thread(target=watch, args=(reader,), name="stop signals", daemon=True).start()
        try:
            yield
        finally:
            self._writer = None
            signal.set_wakeup_fd(before)
            os.close(writer)

    def wait_compiled(self) -> None:
        """Have the thread wait in compiled code from here on, if there is one: SciPy's LAPACK holds the GIL."""
        if self._writer is None:
            return
        from scalemani.kernels.machine.plain import PLAIN

        if not PLAIN:
            compile_wait()
            os.write(self._writer, bytes([WAIT_COMPILED]))


WATCH = Watch()


@contextlib.contextmanager
def ending_in_time() -> Iterator[None]:
    """End within seconds of SIGINT, SIGTERM or SIGHUP with status 130, 143 or 129, whatever compiled code is at work.

    Python's handlers wait for compiled code of the main thread to return, and the interpreter for its worker threads.
    What was finished by then is marked, the rest is left for the next run. SIGUSR1 shows what every thread is doing.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, file=STANDARD_ERROR, all_threads=True)
    with WATCH.watching():
        yield


def stop(number: int, frame: FrameType | None) -> None:
    """Unwind on a signal, so that locks, bars and local clusters are let go of."""
    tell("stopped", f"stopped by {signal.Signals(number).name}: the same command goes on where this one ended")
    raise SystemExit(STATUS_OF_SIGNALS + number)


def watch(reader: int) -> None:
    """Wait for a stop signal, or for the end of the command; give the first a grace, then end the process."""
    while received := os.read(reader, 1):
        if received[0] in STOP_SIGNALS:
            time.sleep(GRACE_SECONDS)
            os._exit(STATUS_OF_SIGNALS + received[0])
        if received[0] == WAIT_COMPILED:
            wait_in_compiled_code(reader)
            break
    os.close(reader)


def compile_wait() -> None:
    """Compile the wait in the main thread, which heeds signals meanwhile, by one that is over at once."""
    reader, writer = os.pipe()
    os.close(writer)
    wait_in_compiled_code(reader)
    os.close(reader)


def wait_in_compiled_code(reader: int) -> None:
    """Do what `watch` does without the interpreter."""
    from scalemani.kernels.machine.stop_signals import end_on_signal

    end_on_signal(reader, tuple(map(int, STOP_SIGNALS)), STATUS_OF_SIGNALS, GRACE_SECONDS)
