"""How far a run has come: what a run tells of its progress, and who may listen."""

from typing import TYPE_CHECKING, Protocol, TextIO

from scalemani.errors import ScalemaniWarning
from scalemani.progress.lines import ProgressLines

if TYPE_CHECKING:
    from scalemani.progress.bars import ProgressBars


class Progress(Protocol):
    """Told how far a stage has come."""

    def start(self, stage: str, total: int) -> None:
        """Note that a stage starts with `total` units to do."""

    def advance(self, done: int = 1) -> None:
        """Note that units were finished."""

    def note(self, message: str) -> None:
        """Show one line of what is going on."""

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Show one line that whoever uses the result should know."""


class Silent:
    """Shows nothing."""

    def start(self, stage: str, total: int) -> None:
        """Do nothing."""

    def advance(self, done: int = 1) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Do nothing."""


def progress_for(stream: TextIO) -> "ProgressBars | ProgressLines":
    """Return bars where `stream` is a terminal, lines otherwise."""
    if not stream.isatty():
        return ProgressLines(stream)
    from rich.console import Console  # a tenth of a second that workers and logs do without

    from scalemani.progress.bars import ProgressBars

    return ProgressBars(Console(file=stream))
