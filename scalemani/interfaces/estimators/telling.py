"""How a run that Python users start tells of itself: warnings as Python gives them, the rest in the library's log."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sklearn.exceptions

from scalemani.engine.progress import Positions, Progress, Silent
from scalemani.engine.progress.lines import plural
from scalemani.errors import ConfigError, ScalemaniWarning, ShortfallWarning, warn

logger = logging.getLogger("scalemani")

Callback = Callable[[int, float, np.ndarray], Any]


class ConvergenceWarning(ShortfallWarning, sklearn.exceptions.ConvergenceWarning):
    """A result that falls short of what was asked for, as scikit-learn's users know it."""


def give(message: str, kind: type[ScalemaniWarning]) -> None:
    """Give one warning, of a kind that scikit-learn's users know where there is one."""
    warn(message, ConvergenceWarning if issubclass(kind, ShortfallWarning) else kind)


class LoggedProgress(Silent):
    """Sends what is going on to the library's logger, gives warnings to Python, and calls back from descents.

    Parameters
    ----------
    callbacks : callables of (iteration, objective, embedding)
        Called every so many iterations of a descent, and with the first one.
    every : int
        The iterations between two calls.
    """

    def __init__(self, callbacks: Sequence[Callback] = (), every: int = 50) -> None:
        self._callbacks, self._every = tuple(callbacks), every

    def iterate(self, iteration: int, objective: float, positions: Positions) -> None:
        """Call back with the embedding in input order, a copy for each."""
        if iteration % self._every == 0:
            for callback in self._callbacks:
                callback(iteration, objective, positions())

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Log that a stage starts."""
        logger.info("%s: %d %s to do", stage, total, plural(unit, total))

    def note(self, message: str) -> None:
        """Log one line."""
        logger.info(message)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Give one warning."""
        give(message, kind)


class ShownProgress(LoggedProgress):
    """Shows what is going on as the command line does, and gives warnings to Python."""

    def __init__(self, shown: Progress, callbacks: Sequence[Callback] = (), every: int = 50) -> None:
        super().__init__(callbacks, every)
        self._shown = shown

    def begin(self, stage: str) -> None:
        """Show that a stage begins."""
        self._shown.begin(stage)

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Show that a stage has ended."""
        self._shown.end(stage, compiling)

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Show what there is to do."""
        self._shown.start(stage, total, unit)

    def advance(self, done: int = 1) -> None:
        """Show that units were finished."""
        self._shown.advance(done)

    def note(self, message: str) -> None:
        """Show one line."""
        self._shown.note(message)


def checked_callbacks(callbacks: Any, every: Any) -> tuple[tuple[Callback, ...], int]:
    """Return callbacks as a tuple, and how many iterations lie between two calls, or raise ConfigError."""
    found = () if callbacks is None else (callbacks,) if callable(callbacks) else callbacks
    if not isinstance(found, list | tuple) or not all(map(callable, found)):
        raise ConfigError(
            f"callbacks must be callables of (iteration, objective, embedding), one or a list, got {callbacks!r}"
        )
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ConfigError(f"callbacks_every must be a whole number of iterations of at least one, got {every!r}")
    return tuple(found), int(every)
