"""How far a run has come: bars with rate and remaining time on a terminal, quiet lines in a log."""

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

SECONDS_BETWEEN_LINES = 20.0


class RateColumn(ProgressColumn):
    """Units a second of the stage at work."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


class TerminalProgress:
    """One bar a stage: name, share, rate, elapsed and remaining time."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._bar: TaskID | None = None

    def __enter__(self) -> "TerminalProgress":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, stage: str, total: int) -> None:
        """Open the bar of a stage; a stage with nothing to do gets none."""
        self._bar = self._bars.add_task(stage, total=total) if total else None

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        if self._bar is not None:
            self._bars.advance(self._bar, done)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(message, highlight=False, markup=False, soft_wrap=True)


class LogProgress:
    """A line when a stage starts, one every 20 seconds whether or not anything was finished, one for each note."""

    def __init__(self, stream: TextIO | None = None, seconds_between_lines: float = SECONDS_BETWEEN_LINES) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds_between_lines
        self._stage, self._total, self._done, self._started = "", 0, 0, 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "LogProgress":
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heart.join()

    def start(self, stage: str, total: int) -> None:
        """Print that a stage starts; a stage with nothing to do is passed over."""
        with self._lock:
            self._stage, self._total, self._done = stage if total else "", total, 0
            self._started = time.monotonic()
        if total:
            self.note(f"{stage}: {total} to do")

    def advance(self, done: int = 1) -> None:
        """Count what was finished."""
        with self._lock:
            self._done += done

    def note(self, message: str) -> None:
        """Print one line."""
        with self._lock:
            self._stream.write(f"{time.strftime('%H:%M:%S')} {message}\n")
            self._stream.flush()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            if self._stage:
                self.note(self._state())

    def _state(self) -> str:
        """Return where the stage at work stands, with rate and remaining time once there is one."""
        with self._lock:
            elapsed = time.monotonic() - self._started
            state = f"{self._stage}: {self._done} of {self._total} after {elapsed:.0f} s"
            if self._done == 0:
                return state
            remaining = elapsed * (self._total - self._done) / self._done
            return f"{state}, {self._done / elapsed:.1f}/s, {remaining:.0f} s remaining"


def progress_for(stream: TextIO) -> TerminalProgress | LogProgress:
    """Return bars where `stream` is a terminal, lines otherwise."""
    return TerminalProgress(Console(file=stream)) if stream.isatty() else LogProgress(stream)
