"""Rich's bars, one a stage, on a terminal or as an output of a notebook's cell."""

import time
from typing import Any, TextIO

import rich.progress
from rich.console import Console

from scalemani.engine.progress import Progress
from scalemani.engine.progress.lines import TOLD_COMPILING, plural
from scalemani.errors import printable

SECONDS_BETWEEN = 0.25  # two looks of the bars of a notebook, while a stage is at work


class ProgressBars(Progress):
    """One bar a stage: its name, units, elapsed and remaining time; notes are lines above the bars."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description:<22}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TextColumn("{task.fields[unit]}", markup=False),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(compact=True),
            console=Console(file=stream),
        )
        self._bar: rich.progress.TaskID | None = None
        self._stage = ""

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def begin(self, stage: str) -> None:
        """End the bar of an earlier stage."""
        self._finish()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """End the bar of a stage, and tell what it spent on compiling."""
        self._finish()
        if compiling >= TOLD_COMPILING:
            self.note(f"{stage}: {compiling:.0f} s of it compiling kernels, which are cached for the next run")

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Open the bar of a stage, or let it count from zero again; a stage with nothing to do gets none."""
        if not total:
            return
        if self._bar is not None and self._stage == stage:
            self._bars.update(self._bar, completed=0, total=total, unit=plural(unit, total))
            return
        self._finish()
        self._bar, self._stage = self._bars.add_task(stage, total=total, unit=plural(unit, total)), stage

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        if self._bar is not None:
            self._bars.advance(self._bar, done)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    def _finish(self) -> None:
        """Let the last bar stand still, complete: a descent that has converged has no iterations left."""
        for task in self._bars.tasks:
            if task.id == self._bar:
                self._bars.update(task.id, total=task.completed or task.total)
                self._bars.stop_task(task.id)
        self._bar, self._stage = None, ""


class NotebookBars(ProgressBars):
    """The same bars as one output of a cell, which is drawn again as the run proceeds; it needs no widgets."""

    def __enter__(self) -> "NotebookBars":
        from IPython.display import display  # there, since this process is a kernel

        self._output: Any = display(self._bars, display_id=True)
        self._shown_at = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self._finish()

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        super().advance(done)
        if time.monotonic() - self._shown_at >= SECONDS_BETWEEN:
            self._show()

    def note(self, message: str) -> None:
        """Print a line below the bars."""
        print(printable(message))

    def _finish(self) -> None:
        super()._finish()
        self._show()

    def _show(self) -> None:
        self._output.update(self._bars)
        self._shown_at = time.monotonic()
