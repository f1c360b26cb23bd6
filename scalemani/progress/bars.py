"""Bars on a terminal: one a stage, with its rate and the time that the whole run still takes."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from scalemani.errors import ScalemaniWarning, printable
from scalemani.progress.clock import RunClock, duration_text
from scalemani.progress.lines import TOLD_COMPILING, plural


class RateColumn(ProgressColumn):
    """Units a second of the stage at work."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


class RunColumn(ProgressColumn):
    """What the whole run still takes, beside the stage at work; else what is to be said of a stage."""

    def __init__(self, clock: RunClock) -> None:
        super().__init__()
        self._clock = clock

    def render(self, task: Task) -> Text:
        """Return the remaining time as text."""
        if task.stop_time is not None:
            return Text(task.fields["told"], style="progress.remaining")
        share = task.completed / task.total if task.total else 0.0
        remaining = self._clock.remaining(share)
        return Text(
            "" if remaining is None else f"run: about {duration_text(remaining)} left", style="progress.remaining"
        )


class ProgressBars:
    """One bar a stage: name, share, rate, elapsed time, and the time that the whole run still takes."""

    def __init__(self, console: Console) -> None:
        self._clock = RunClock()
        self._bars = Progress(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            RateColumn(),
            TimeElapsedColumn(),
            RunColumn(self._clock),
            console=console,
        )
        self._bar: TaskID | None = None
        self._name = ""

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Keep about how long each stage takes."""
        self._clock.expect(seconds)

    def begin(self, stage: str) -> None:
        """Keep when a stage begins."""
        self._stop()
        self._clock.begin(stage)

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Stop the bar of a stage; what it spent on compiling is told beside it."""
        self._clock.end(stage, compiling)
        self._stop(f"{compiling:.0f} s of it compiling, once" if compiling >= TOLD_COMPILING else "")

    def iterate(self, iteration: int, objective: float, positions: Callable[[], Any]) -> None:
        """Show nothing: a descent notes its iterations itself."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Open the bar of a stage, or let it count from zero again; a stage with nothing to do gets none."""
        if not total:
            return
        if self._bar is not None and self._name == stage:
            self._bars.update(self._bar, completed=0, total=total, unit=plural(unit, total))
            return
        self._stop()
        self._bar = self._bars.add_task(stage, total=total, unit=plural(unit, total), told="")
        self._name = stage

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        if self._bar is not None:
            self._bars.advance(self._bar, done)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Print a line above the bars."""
        self.note(message)

    def _stop(self, told: str = "") -> None:
        """Let the clock of the last bar stand still."""
        if self._bar is not None:
            self._bars.update(self._bar, told=told)
            self._bars.stop_task(self._bar)
        self._bar, self._name = None, ""
