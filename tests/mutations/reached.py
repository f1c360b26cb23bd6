"""Which lines of the package does each test run? A plugin of pytest that `selection.py` reads the answers of.

    PYTHONPATH=$PWD:tests/mutations REACHED=/dev/shm/reached python -m pytest -n 0 -p reached tests/stages tests/cli

The file that REACHED names gets two lines of JSON for each test: one for what makes its fixtures, which other tests of
the file may share, and one for the test itself. They hold its name, seconds of processor time, and the lines that ran
by file. The inside of compiled functions and of other processes is not seen.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

REPOSITORY = Path.cwd()
PACKAGE = str(REPOSITORY / "scalemani") + os.sep


class Reached:
    """Records every line of the package that runs."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.is_ours = path, set[tuple[str, int]](), dict[str, bool]()

    def enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Trace the lines of a function of the package, and none of others."""
        file = frame.f_code.co_filename
        ours = self.is_ours.get(file)
        if ours is None:
            ours = self.is_ours[file] = file.startswith(PACKAGE)
        return self.step if ours else None

    def step(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Record a line."""
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self.step

    def recorded(self, test: str, phase: str) -> Iterator[None]:
        """Trace while a phase of a test runs, and append what it reached."""
        self.lines.clear()
        begin = time.process_time()
        sys.settrace(self.enter)  # a test or its libraries may have taken the tracing away
        yield
        by_file: dict[str, list[int]] = {}
        for file, line in sorted(self.lines):
            by_file.setdefault(str(Path(file).relative_to(REPOSITORY)), []).append(line)
        row = {"test": test, "phase": phase, "seconds": round(time.process_time() - begin, 3), "lines": by_file}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Record what makes the fixtures of a test."""
        yield from self.recorded(item.nodeid, "setup")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Record the test itself."""
        yield from self.recorded(item.nodeid, "call")


def pytest_configure(config: pytest.Config) -> None:
    """Trace this thread and those that are started from here on."""
    reached = Reached(Path(os.environ["REACHED"]).absolute())
    config.pluginmanager.register(reached)
    threading.settrace(reached.enter)
