"""Lines of progress, written to a stream: for a log."""

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from scalemani.errors import ScalemaniWarning

SECONDS_BETWEEN_LINES = 20.0


class ProgressLines:
    """A line when a stage starts, one every 20 seconds whether or not anything was finished, one for each note."""

    def __init__(self, stream: TextIO | None = None, seconds_between_lines: float = SECONDS_BETWEEN_LINES) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds_between_lines
        self._stage, self._total, self._done, self._started = "", 0, 0, 0.0
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

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Print one line."""
        self.note(message)

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
