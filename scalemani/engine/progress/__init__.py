"""Progress of a run: the events, and the classes that show them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Self, TextIO

from scalemani.errors import ConfigError, ScalemaniWarning, nearest_name

Positions = Callable[[], Any]  # returns (N, d) in input order
Callback = Callable[[int, float, Any], Any]  # iteration, objective, positions (N, d)
LOGS = ("text", "json")


class Progress:
    """Progress of a run: shows nothing unless a subclass does, and calls back from descents.

    Attributes
    ----------
    callbacks : callables of (iteration, objective, embedding)
        Called every `callbacks_every` iterations of a descent, from the first one on, with a copy of the embedding.
    give_warning : callable of (message, kind) or None
        Replaces the line that a warning would be shown as.
    """

    callbacks: Sequence[Callback] = ()
    callbacks_every = 50
    give_warning: Callable[[str, type[ScalemaniWarning]], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Stop showing anything."""

    def begin(self, stage: str) -> None:
        """Note that a stage of the run begins."""

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Note that a stage has ended, of which `compiling` seconds were compilation."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Note that a stage has `total` units to do; it may start several times."""

    def advance(self, done: int = 1) -> None:
        """Note that units were finished."""

    def note(self, message: str) -> None:
        """Show one line."""

    def show_warning(self, message: str, kind: type[ScalemaniWarning]) -> None:
        """Show a warning as one line."""
        self.note(message)

    def iterate(self, iteration: int, objective: float, positions: Positions) -> None:
        """Call back after an iteration of a descent; `positions` are computed for each callback."""
        if iteration % self.callbacks_every == 0:
            for callback in self.callbacks:
                callback(iteration, objective, positions())

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Give or show a warning that concerns the result."""
        (self.give_warning or self.show_warning)(message, kind)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, whose cells show more than text."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress_for(stream: TextIO | None, log: str = "text", quiet: bool = False) -> Progress:
    """Return the progress that is shown on a stream; on None, as without a standard error, none.

    `log` is "text", bars where `stream` is a terminal or the standard error of a notebook and lines otherwise, or
    "json", one object in each line; raises ConfigError for another one.
    """
    from scalemani.engine.progress.lines import ProgressLines

    if log not in LOGS:
        raise ConfigError(f"unknown log {log!r}: {nearest_name(log, LOGS)}")
    if stream is None or getattr(stream, "closed", False):
        return Progress()
    notebook = stream is sys.stderr and in_notebook()
    if quiet or log == "json" or not (notebook or stream.isatty()):
        return ProgressLines(stream, as_json=log == "json", quiet=quiet)
    from scalemani.engine.progress.bars import NotebookBars, ProgressBars  # a tenth of a second that logs do without

    return NotebookBars() if notebook else ProgressBars(stream)
