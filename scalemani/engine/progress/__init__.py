"""How far a run has come: what a run tells of its progress, and who may listen."""

import sys
from collections.abc import Callable
from typing import Any, Self, TextIO

from scalemani.errors import ConfigError, ScalemaniWarning, nearest_name

Positions = Callable[[], Any]  # (N, d), made where somebody wants them
LOGS = ("text", "json")


class Progress:
    """Told how far a run has come; shows nothing unless a subclass does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop showing anything."""

    def begin(self, stage: str) -> None:
        """Note that a stage of the run begins."""

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Note that a stage has ended, of which so many seconds went into compiling."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Note that there are `total` units to do, each a `unit`; a stage may have several lots of units."""

    def advance(self, done: int = 1) -> None:
        """Note that units were finished."""

    def iterate(self, iteration: int, objective: float, positions: Positions) -> None:
        """Note that a descent has made an iteration; `positions` makes those that it has come to, in input order."""

    def note(self, message: str) -> None:
        """Show one line of what is going on."""

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Show one line that whoever uses the result should know."""


class Silent(Progress):
    """Shows nothing."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose cells show more than text."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress_for(stream: TextIO | None, log: str = "text", quiet: bool = False) -> Progress:
    """Return what tells a stream of progress.

    Parameters
    ----------
    stream : what is written to; None where a process has no standard error, and nothing is told then.
    log : "text", bars where `stream` is a terminal or the standard error of a notebook and lines otherwise, or "json",
        one object a line.

    Raises
    ------
    ConfigError
        For another `log`.
    """
    from scalemani.engine.progress.lines import ProgressLines

    if log not in LOGS:
        raise ConfigError(f"unknown log {log!r}: {nearest_name(log, LOGS)}")
    if stream is None or getattr(stream, "closed", False):
        return Silent()
    notebook = stream is sys.stderr and in_notebook()
    if quiet or log == "json" or not (notebook or stream.isatty()):
        return ProgressLines(stream, as_json=log == "json", quiet=quiet)
    from scalemani.engine.progress.bars import NotebookBars, ProgressBars  # a tenth of a second that logs do without

    return NotebookBars() if notebook else ProgressBars(stream)
