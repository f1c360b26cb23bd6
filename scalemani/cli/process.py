"""The process of a command: one line for an error, its exit status, and an end in time when it is told to stop."""

import contextlib
import errno
import faulthandler
import itertools
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

import typer

from scalemani.cli.commands import app
from scalemani.cli.standard_error import outlasting
from scalemani.errors import ScalemaniError, without_secrets
from scalemani.progress.lines import json_line

GRACE_SECONDS = 3.0
STANDARD_ERROR = 2
LONGEST_LINE = 4000  # letters of an error; a header or a path that it repeats may have any length
NAMES_THAT_CANNOT_BE = (errno.ENAMETOOLONG, errno.ELOOP)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last when a terminal goes
# Typer brings a copy of click or uses click itself, by its version; BadParameter is public in both.
UsageError: Any = typer.BadParameter.__base__


def main() -> None:
    """Run the command line and end the process: status 0, 1 for a failure, 2 for arguments, input or state."""
    with contextlib.redirect_stderr(outlasting(sys.stderr)), ending_in_time():
        sys.exit(run_command())


def run_command() -> int:
    """Run the command asked for and return its exit status."""
    try:
        return app(standalone_mode=False) or 0
    except UsageError as error:
        if len(sys.argv) == 1:  # the message of a bare call is the help itself
            return 2
        command = error.ctx.command_path if error.ctx else "scalemani"
        return report(error, f"{error.format_message()} ('{command} --help' says what is allowed)", 2)
    except ScalemaniError as error:
        return report(error, str(error), error.exit_status)
    except MemoryError as error:
        return report(error, "out of memory: give a budget with --memory, and see 'scalemani plan'", 1)
    except (PermissionError, FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        return report(error, f"{error}; choose a place that can be read and written", 2)
    except OSError as error:
        return report(error, str(error), 2 if error.errno in NAMES_THAT_CANNOT_BE else 1)
    except Exception as error:
        text = f"{type(error).__name__}: {error}; this should not happen: --debug shows where, the same command goes on"
        return report(error, text, 1)


def report(error: BaseException, text: str, status: int) -> int:
    """Print one line on standard error, after the traceback where it is asked for."""
    if "--debug" in sys.argv:
        typer.echo(without_secrets("".join(traceback.format_exception(error)), sys.argv), err=True)
    line = "".join(letter if letter.isprintable() else " " for letter in without_secrets(text, sys.argv))
    line = " ".join(line.split())
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} ... {line[-LONGEST_LINE // 2 :]}"
    tell("error", line, before="error: ")
    return status


def tell(event: str, message: str, before: str = "") -> None:
    """Print one line on standard error, in the form in which progress is told; text begins with `before`."""
    arguments = sys.argv[1:]
    as_json = "--log=json" in arguments or ("--log", "json") in itertools.pairwise(arguments)
    typer.echo(json_line(event, message) if as_json else f"{before}{message}", err=True)


@contextlib.contextmanager
def ending_in_time() -> Iterator[None]:
    """End within seconds of SIGINT, SIGTERM or SIGHUP with status 130, 143 or 129, whatever compiled code is at work.

    Python's handlers wait for compiled code of the main thread to return, and the interpreter for its worker threads.
    The number of a signal is in the pipe at once. What was finished by then is marked, the rest is left for the next
    run. SIGUSR1 shows what every thread is doing.
    """
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    faulthandler.register(signal.SIGUSR1, file=STANDARD_ERROR, all_threads=True)
    reader, writer = os.pipe()
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
    tell("stopped", f"stopped by {signal.Signals(number).name}: the same command goes on where this one ended")
    raise SystemExit(128 + number)


def watch(reader: int) -> None:
    """Wait for a stop signal, or for the end of the command; give the first a grace, then end the process."""
    while received := os.read(reader, 1):
        if received[0] in STOP_SIGNALS:
            time.sleep(GRACE_SECONDS)
            os._exit(128 + received[0])
    os.close(reader)
