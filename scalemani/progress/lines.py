"""Lines of progress, written to a stream: for a person who reads a log, or one JSON object a line for a program."""

import json
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from scalemani.errors import ScalemaniWarning

SECONDS_BETWEEN_LINES = 20.0

Form = Callable[..., str]  # a kind of event, its message and its numbers, as one line


def plural(unit: str, count: int) -> str:
    """Return the name of a unit as it stands after a number."""
    return unit if count == 1 else f"{unit}{'es' if unit.endswith('s') else 's'}"


def text_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a line for people: local time and the message."""
    return f"{time.strftime('%H:%M:%S')} {message}"


def plain_line(event: str, message: str, **numbers: Any) -> str:
    """Return the message of an event alone."""
    return message


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
        `text_line` or `json_line`, whose events are start, progress, note and warning.
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
            if self._stage:
                message, numbers = self._state()
                self._write("progress", message, **numbers)

    def _state(self) -> tuple[str, dict[str, Any]]:
        """Return where the stage at work stands, with rate and remaining time once there is one."""
        with self._lock:
            elapsed = time.monotonic() - self._started
            numbers = {"stage": self._stage, "done": self._done, "total": self._total, "unit": self._unit}
            numbers["seconds"] = round(elapsed, 1)
            state = (
                f"{self._stage}: {self._done} of {self._total} {plural(self._unit, self._total)} after {elapsed:.0f} s"
            )
            if self._done == 0:
                return state, numbers
            remaining = elapsed * (self._total - self._done) / self._done
            numbers["seconds_remaining"] = round(remaining, 1)
            return f"{state}, {self._done / elapsed:.1f}/s, {remaining:.0f} s remaining", numbers
