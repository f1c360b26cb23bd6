"""The process of a command: one line for an error, and its exit status."""

import contextlib
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import typer

from scalemani.cli.commands import app
from scalemani.cli.ending import ending_in_time
from scalemani.cli.output import outlasting, say, tell
from scalemani.errors import FULL, ScalemaniError, is_lasting, printable, remedy_of, without_secrets

LONGEST_LINE = 4000  # letters of an error; a header or a path that it repeats may have any length
LEAST_FREE = 2**20  # bytes: a disk with less is full
NO_THREAD = "can't start new thread"  # Python's words
NO_PROCESS = (
    "the system starts no more threads or processes for this user: raise the limit (ulimit -u, or pids of a control "
    "group) or give fewer --workers; the same command goes on"
)
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
    except OSError as error:
        lasting = is_lasting(error)
        return report(error, text_of(error), 2 if lasting else 1)
    except Exception as error:
        if isinstance(error, RuntimeError) and NO_THREAD in str(error):
            return report(error, NO_PROCESS, 1)
        if is_of_loading(error):
            text = f"a library cannot be loaded: {type(error).__name__}: {error}; mend its settings or install it anew"
            return report(error, text, 2)
        text = f"{type(error).__name__}: {error}; this should not happen: --debug shows where, the same command goes on"
        return report(error, text, 1)


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
    """Print one line on standard error, after the traceback where it is asked for."""
    if "--debug" in sys.argv:
        say(without_secrets("".join(traceback.format_exception(error)), sys.argv), err=True)
    line = " ".join(printable(without_secrets(text, sys.argv)).split())
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} ... {line[-LONGEST_LINE // 2 :]}"
    tell("error", line, before="error: ")
    return status
