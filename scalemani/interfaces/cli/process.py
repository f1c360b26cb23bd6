"""The process of a command: one line for an error, its exit status, and its end within seconds of a signal."""

import contextlib
import faulthandler
import functools
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from scalemani.config.other_names import Ours, name_here, with_note
from scalemani.errors import (
    FULL,
    NO_PROCESS,
    NO_THREAD,
    ScalemaniError,
    ScalemaniWarning,
    is_lasting,
    printable,
    remedy_of,
    without_secrets,
)
from scalemani.interfaces.cli.commands import app
from scalemani.interfaces.cli.output import outlasting, print_event, say

LONGEST_LINE = 4000  # letters of an error; a header or a path that it repeats may have any length
LEAST_FREE = 2**20  # bytes: a disk with less is full
GRACE_SECONDS = 3
STANDARD_ERROR = 2
STATUS_OF_SIGNALS = 128  # a shell reports signal n as status 128 + n
# The last when a terminal goes, on systems that have it.
STOP_SIGNALS = tuple(one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP"))
# Typer brings a copy of click or uses click itself, by its version; BadParameter is public in both.
UsageError: Any = typer.BadParameter.__base__


def main() -> None:
    """Run the command line and end the process: status 0, 1 for a failure, 2 for arguments, input or state."""
    with contextlib.redirect_stderr(outlasting(sys.stderr)), warnings.catch_warnings(), ending_in_time():
        warnings.showwarning = functools.partial(show_warning, warnings.showwarning)
        try:
            status = app(standalone_mode=False) or 0
        except Exception as error:
            status = report_failure(error)
        sys.exit(status)


def show_warning(others: Callable[..., None], message: Warning | str, kind: type[Warning], *where: Any) -> None:
    """Print what concerns a result as one line; hand warnings of other libraries on to what shows `others`."""
    if issubclass(kind, ScalemaniWarning):
        print_event("warning", str(message), before="warning: ")
    else:
        others(message, kind, *where)


def report_failure(error: Exception) -> int:
    """Print one line about what ended a command, and return its exit status."""
    if isinstance(error, UsageError):
        if len(sys.argv) == 1:  # the message of a bare call is the help itself
            return 2
        command = error.ctx.command_path if error.ctx else "scalemani"
        meant = option_instead(error)
        said = f"{error.message}{meant}" if meant else error.format_message()
        return report(error, f"{said} ('{command} --help' says what is allowed)", 2)
    if isinstance(error, ScalemaniError):
        return report(error, str(error), error.exit_status)
    if isinstance(error, MemoryError):
        return report(error, "out of memory: give a budget with --memory, and see 'scalemani plan'", 1)
    if isinstance(error, OSError):
        return report(error, text_of(error), 2 if is_lasting(error) else 1)
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return report(error, NO_PROCESS, 1)
    if is_of_loading(error):
        text = f"a library cannot be loaded: {type(error).__name__}: {error}; mend its settings or install it anew"
        return report(error, text, 2)
    text = f"{type(error).__name__}: {error}; this should not happen: --debug shows where, the same command resumes"
    return report(error, text, 1)


def option_instead(error: Any) -> str:
    """Return what an option that a command does not have may stand for: another one, or a parameter of --set."""
    from scalemani.config.params import names_of_parameters

    name = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
    options = {one for parameter in error.ctx.command.params for one in parameter.opts} if name and error.ctx else set()
    ours, names = name_here(name), names_of_parameters() if "--set" in options else []
    homes = [ours.name] if ours else [full for full in names if full.rpartition(".")[2] == name]
    words = [f"--set {full}=VALUE" for full in homes if full in names]
    words += [f"--{full}" for full in homes if f"--{full}" in options]
    return f": {with_note(' or '.join(words), ours or Ours(name))}" if words else ""


def text_of(error: OSError) -> str:
    """Return what an error of the system means for a command, and what to do."""
    if error.errno in FULL:
        from scalemani.store.objects import as_store_error

        place = error.filename or next(filter(is_full, places()), None)
        if place is not None:
            return str(as_store_error(error, Path(os.fsdecode(place))))
        return f"no space left on a disk of {', '.join(places())}: free some and run the same command again"
    if isinstance(error, BlockingIOError):  # fork
        return NO_PROCESS
    if is_lasting(error):
        return f"{error}; choose a place that can be read and written"
    return str(error) if error.errno is None else f"{error}; {remedy_of(error)}"


def places() -> list[str]:
    """Return what a command may write to: its arguments that are paths, and where temporary files go."""
    words = [word for word in sys.argv[2:] if not word.startswith("-") and "://" not in word]
    return [*(word for word in words if Path(word).suffix or os.path.lexists(word)), tempfile.gettempdir()]


def is_full(place: str) -> bool:
    """Return whether the disk of a place takes no more."""
    from scalemani.store.objects import free_bytes, free_inodes

    return free_bytes(Path(place)) < LEAST_FREE or not free_inodes(Path(place))


def is_of_loading(error: BaseException) -> bool:
    """Return whether an error was raised while a module was loaded: by what is installed, or by its settings."""
    return any(frame.name == "<module>" for frame in traceback.extract_tb(error.__traceback__))


def report(error: BaseException, text: str, status: int) -> int:
    """Print one line on standard error, after the traceback with --debug."""
    if "--debug" in sys.argv:
        say(without_secrets("".join(traceback.format_exception(error)), sys.argv), err=True)
    line = " ".join(printable(without_secrets(text, sys.argv)).split())
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} ... {line[-LONGEST_LINE // 2 :]}"
    print_event("error", line, before="error: ")
    return status


@contextlib.contextmanager
def ending_in_time() -> Iterator[None]:
    """End within seconds of SIGINT, SIGTERM or SIGHUP with status 130, 143 or 129, even while other threads compute.

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
    text = f"stopped by {signal.Signals(number).name}: the same command resumes the run"
    try:
        print_event("stopped", text)
    except RuntimeError:  # the signal came within a write to the same stream, which cannot be entered again
        os.write(STANDARD_ERROR, f"\n{text}\n".encode())
    raise SystemExit(STATUS_OF_SIGNALS + number)


def watch(reader: int) -> None:
    """Wait for a stop signal, or for the end of the command; give the first a grace, then end the process."""
    while received := os.read(reader, 1):
        if received[0] in STOP_SIGNALS:
            time.sleep(GRACE_SECONDS)
            os._exit(STATUS_OF_SIGNALS + received[0])
    os.close(reader)
