"""Lines of progress, written to a stream: for a person who reads a log, or one JSON object a line for a program."""

import json
import threading
import time
from datetime import UTC, datetime
from typing import Any, TextIO

from scalemani.engine.progress import Progress
from scalemani.errors import ScalemaniWarning, printable

SECONDS_BETWEEN_LINES = 20.0
TOLD_COMPILING = 1.0  # seconds of compiling from which they are told apart


def plural(unit: str, count: int) -> str:
    """Return the name of a unit as it stands after a number."""
    return unit if count == 1 else f"{unit}{'es' if unit.endswith('s') else 's'}"


def json_line(event: str, message: str, **numbers: Any) -> str:
    """Return an event as a JSON object on one line: `time` (ISO 8601, UTC), `event`, `message` and its numbers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, "message": message, **numbers})


class ProgressLines(Progress):
    """A line when a stage starts and ends, one every 20 seconds while it is at work, one for each note and warning.

    Parameters
    ----------
    as_json : whether a line is an object, whose events are start, progress, end, note and warning
    """

    def __init__(
        self,
        stream: TextIO,
        as_json: bool = False,
        quiet: bool = False,
        seconds_between: float = SECONDS_BETWEEN_LINES,
    ) -> None:
        self._stream, self._as_json, self._quiet, self._seconds = stream, as_json, quiet, seconds_between
        self._stage, self._unit, self._total, self._done = "", "", 0, 0
        self._began = self._started = time.monotonic()  # of the stage, and of its units
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "ProgressLines":
        if not self._quiet:
            self._heart.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if not self._quiet:
            self._heart.join()

    def begin(self, stage: str) -> None:
        """Keep when a stage begins."""
        self._began = time.monotonic()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Print how long a stage took."""
        seconds = time.monotonic() - self._began
        with self._lock:
            self._stage = ""
        numbers = {"stage": stage, "seconds": round(seconds, 1)}
        told = f"{stage}: {seconds:.1f} s"
        if compiling >= TOLD_COMPILING:
            numbers["seconds_compiling"] = round(compiling, 1)
            told += f", {compiling:.1f} s of them compiling kernels, which are cached for the next run"
        self._write("end", told, numbers)

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Print that a stage starts; a stage with nothing to do is passed over."""
        with self._lock:
            self._stage, self._unit, self._total, self._done = stage if total else "", unit, total, 0
            self._started = time.monotonic()
        if total:
            numbers = {"stage": stage, "total": total, "unit": unit}
            self._write("start", f"{stage}: {total} {plural(unit, total)} to do", numbers)

    def advance(self, done: int = 1) -> None:
        """Count what was finished."""
        with self._lock:
            self._done += done

    def note(self, message: str) -> None:
        """Print one line."""
        self._write("note", message, {})

    def show_warning(self, message: str, kind: type[ScalemaniWarning]) -> None:
        """Print one line, in quiet too."""
        self._write("warning", message, {"kind": kind.__name__})

    def _write(self, event: str, message: str, numbers: dict[str, Any]) -> None:
        if self._quiet and event != "warning":
            return
        before = "" if self._quiet else time.strftime("%H:%M:%S ")
        line = json_line(event, message, **numbers) if self._as_json else f"{before}{printable(message)}"
        with self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            state = self._state()
            if state is not None:
                self._write("progress", *state)

    def _state(self) -> tuple[str, dict[str, Any]] | None:
        """Return where the stage at work stands, with rate and remaining time once there is one; None without a stage.

        A stage may end between two looks at it: all of it is read under the lock.
        """
        with self._lock:
            stage, unit, total, done = self._stage, self._unit, self._total, self._done
            elapsed = time.monotonic() - self._started
        if not stage:
            return None
        numbers = {"stage": stage, "done": done, "total": total, "unit": unit, "seconds": round(elapsed, 1)}
        state = f"{stage}: {done} of {total} {plural(unit, total)} after {elapsed:.0f} s"
        if done:
            remaining = elapsed * (total - done) / done
            numbers["seconds_remaining"] = round(remaining, 1)
            state += f", {done / elapsed:.1f}/s, {remaining:.0f} s remaining"
        return state, numbers
