"""Lines of progress, written to a stream: for a person who reads a log, or one JSON object a line for a program."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from scalemani.errors import ScalemaniWarning, printable
from scalemani.progress.clock import RunClock, duration_text

SECONDS_BETWEEN_LINES = 20.0
TOLD_COMPILING = 1.0  # seconds of compiling from which they are told apart

Form = Callable[..., str]  # a kind of event, its message and its numbers, as one line


def plural(unit: str, count: int) -> str:
    """Return the name of a unit as it stands after a number."""
    return unit if count == 1 else f"{unit}{'es' if unit.endswith('s') else 's'}"


def text_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a line for people: local time and the message."""
    return f"{time.strftime('%H:%M:%S')} {printable(message)}"


def plain_line(event: str, message: str, **numbers: Any) -> str:
    """Return the message of an event alone."""
    return printable(message)


def json_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a JSON object on one line: `time` (ISO 8601, UTC), `event`, `message` and its numbers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, "message": message, **numbers})


class ProgressLines:
    """A line when a stage starts, one every 20 seconds whether or not anything was finished, one for each note.

    Parameters
    ----------
    stream : file, default standard error
        What is written to.
    seconds_between_lines : float, default 20
        Between two lines on the stage at work.
    form : callable
        `text_line` or `json_line`, whose events are start, progress, end, note and warning.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        seconds_between_lines: float = SECONDS_BETWEEN_LINES,
        form: Form = text_line,
    ) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds_between_lines
        self._form = form
        self._stage, self._unit, self._total, self._done, self._started = "", "", 0, 0, 0.0
        self._clock = RunClock()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "ProgressLines":
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heart.join()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Keep about how long each stage takes, for what is said of the time that the whole run takes."""
        self._clock.expect(seconds)

    def begin(self, stage: str) -> None:
        """Keep when a stage begins."""
        self._clock.begin(stage)

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Print how long a stage took."""
        seconds = self._clock.end(stage, compiling)
        with self._lock:
            self._stage = ""
        numbers: dict[str, Any] = {"stage": stage, "seconds": round(seconds, 1)}
        told = f"{stage}: {seconds:.1f} s"
        if compiling >= TOLD_COMPILING:
            numbers["seconds_compiling"] = round(compiling, 1)
            told += f", {compiling:.1f} s of them compiling kernels, which are kept for the next time"
        self._write("end", told, **numbers)

    def iterate(self, iteration: int, objective: float, positions: Callable[[], Any]) -> None:
        """Print nothing: a descent notes its iterations itself."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Print that a stage starts; a stage with nothing to do is passed over."""
        with self._lock:
            self._stage, self._unit, self._total, self._done = stage if total else "", unit, total, 0
            self._started = time.monotonic()
        if total:
            self._write("start", f"{stage}: {total} {plural(unit, total)} to do", stage=stage, total=total, unit=unit)

    def advance(self, done: int = 1) -> None:
        """Count what was finished."""
        with self._lock:
            self._done += done

    def note(self, message: str) -> None:
        """Print one line."""
        self._write("note", message)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Print one line."""
        self._write("warning", message, kind=kind.__name__)

    def _write(self, event: str, message: str, **numbers: Any) -> None:
        with self._lock:
            self._stream.write(f"{self._form(event, message, **numbers)}\n")
            self._stream.flush()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            state = self._state()
            if state is not None:
                self._write("progress", state[0], **state[1])

    def _state(self) -> tuple[str, dict[str, Any]] | None:
        """Return where the stage at work stands, with rate and remaining time once there is one; None without a stage.

        A stage may end between two looks at it: all of it is read under the lock.
        """
        with self._lock:
            if not self._stage:
                return None
            elapsed = time.monotonic() - self._started
            numbers = {"stage": self._stage, "done": self._done, "total": self._total, "unit": self._unit}
            numbers["seconds"] = round(elapsed, 1)
            state = (
                f"{self._stage}: {self._done} of {self._total} {plural(self._unit, self._total)} after {elapsed:.0f} s"
            )
            if self._done:
                remaining = elapsed * (self._total - self._done) / self._done
                numbers["seconds_remaining"] = round(remaining, 1)
                state += f", {self._done / elapsed:.1f}/s, {remaining:.0f} s remaining"
            whole = self._clock.remaining(self._done / self._total)
            if whole is not None:
                numbers["run_seconds_remaining"] = round(whole, 1)
                state += f"; about {duration_text(whole)} to the end of the run"
            return state, numbers
