"""Bars on a terminal: one a stage, with rate and remaining time."""

from types import TracebackType

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
    TimeRemainingColumn,
)
from rich.text import Text

from scalemani.errors import ScalemaniWarning
from scalemani.progress.lines import plural


class RateColumn(ProgressColumn):
    """Units a second of the stage at work."""

    def render(self, task: Task) -> Text:
        """Return the rate as text."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


class ProgressBars:
    """One bar a stage: name, share, rate, elapsed and remaining time."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description:<22}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._bar: TaskID | None = None

    def __enter__(self) -> "ProgressBars":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Open the bar of a stage; a stage with nothing to do gets none."""
        self._bar = self._bars.add_task(stage, total=total, unit=plural(unit, total)) if total else None

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        if self._bar is not None:
            self._bars.advance(self._bar, done)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Print a line above the bars."""
        self.note(message)
