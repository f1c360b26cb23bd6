"""How far a run has come: what a run tells of its progress, and who may listen."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from scalemani.errors import ConfigError, ScalemaniWarning, nearest_name
from scalemani.progress.lines import Form, ProgressLines, json_line, plain_line, text_line

if TYPE_CHECKING:
    from scalemani.progress.bars import ProgressBars

Positions = Callable[[], Any]  # (N, d), made where somebody wants them
FORMS: dict[str, Form] = {"text": text_line, "json": json_line}


class Progress(Protocol):
    """Told how far a stage has come."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Note which stages a run has to do, and about how many seconds each takes."""

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


class Silent:
    """Shows nothing."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Do nothing."""

    def begin(self, stage: str) -> None:
        """Do nothing."""

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Do nothing."""

    def iterate(self, iteration: int, objective: float, positions: Positions) -> None:
        """Do nothing."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Do nothing."""

    def advance(self, done: int = 1) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Do nothing."""


class WarningLines(Silent):
    """Shows warnings alone, one a line."""

    def __init__(self, stream: TextIO, form: Form) -> None:
        self._stream, self._form = stream, form

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Print one line."""
        self._stream.write(f"{self._form('warning', message, kind=kind.__name__)}\n")
        self._stream.flush()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose cells show more than text."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress_for(
    stream: TextIO | None, log: str = "text", quiet: bool = False
) -> AbstractContextManager["ProgressBars | ProgressLines | Silent"]:
    """Return what tells a stream of progress.

    Parameters
    ----------
    stream : what is written to; None where a process has no standard error, and nothing is told then.
    log : "text", bars where `stream` is a terminal or the standard error of a notebook and lines otherwise, or "json",
        one object a line.
    quiet : show warnings alone.

    Raises
    ------
    ConfigError
        For another `log`.
    """
    if log not in FORMS:
        raise ConfigError(f"unknown log {log!r}: {nearest_name(log, FORMS)}")
    if stream is None or getattr(stream, "closed", False):
        return nullcontext(Silent())
    if quiet:
        return nullcontext(WarningLines(stream, json_line if log == "json" else plain_line))
    if log == "text" and stream is sys.stderr and in_notebook():
        from scalemani.progress.notebooks import NotebookBars

        return NotebookBars()
    if log == "json" or not stream.isatty():
        return ProgressLines(stream, form=FORMS[log])
    from rich.console import Console  # a tenth of a second that workers and logs do without

    from scalemani.progress.bars import ProgressBars

    return ProgressBars(Console(file=stream))
