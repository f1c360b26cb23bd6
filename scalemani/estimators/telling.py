"""How a run that Python users start tells of itself: warnings as Python gives them, the rest in the library's log."""

import logging

import sklearn.exceptions

from scalemani.errors import ScalemaniWarning, ShortfallWarning, warn
from scalemani.progress import Progress
from scalemani.progress.lines import plural

logger = logging.getLogger("scalemani")


class ConvergenceWarning(ShortfallWarning, sklearn.exceptions.ConvergenceWarning):
    """A result that falls short of what was asked for, as scikit-learn's users know it."""


def give(message: str, kind: type[ScalemaniWarning]) -> None:
    """Give one warning, of a kind that scikit-learn's users know where there is one."""
    warn(message, ConvergenceWarning if issubclass(kind, ShortfallWarning) else kind)


class LoggedProgress:
    """Sends what is going on to the library's logger, and gives warnings to Python."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Log that a stage starts."""
        logger.info("%s: %d %s to do", stage, total, plural(unit, total))

    def advance(self, done: int = 1) -> None:
        """Log nothing for a single unit."""

    def note(self, message: str) -> None:
        """Log one line."""
        logger.info(message)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Give one warning."""
        give(message, kind)


class ShownProgress(LoggedProgress):
    """Shows what is going on as the command line does, and gives warnings to Python."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Show that a stage starts."""
        self._shown.start(stage, total, unit)

    def advance(self, done: int = 1) -> None:
        """Show that units were finished."""
        self._shown.advance(done)

    def note(self, message: str) -> None:
        """Show one line."""
        self._shown.note(message)
