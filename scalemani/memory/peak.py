"""The peak of resident memory of this process and its children, sampled while a stage runs."""

import contextlib
import threading
from types import TracebackType

import psutil

SECONDS_BETWEEN_SAMPLES = 0.05


def resident_bytes() -> int:
    """Return the resident memory of this process and all its children."""
    process = psutil.Process()
    total = process.memory_info().rss
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += child.memory_info().rss
    return total


class PeakMemory:
    """Samples resident memory between entering and leaving; `bytes` is the largest sample, `before` the first."""

    def __init__(self) -> None:
        self.bytes = self.before = resident_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.bytes = max(self.bytes, resident_bytes())
            if self._stop.wait(SECONDS_BETWEEN_SAMPLES):
                return
