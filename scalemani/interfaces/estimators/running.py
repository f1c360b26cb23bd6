"""Runs that Python users start: their store, resources, warnings, log and callbacks."""

import contextlib
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.exceptions
from sklearn.base import BaseEstimator

from scalemani.config.params import Parameters
from scalemani.engine.progress import Callback, Progress, plural, progress_for
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, ScalemaniWarning, ShortfallWarning, warn
from scalemani.interfaces.estimators.parameters import RESOURCES
from scalemani.io.sources import PointsSource
from scalemani.runs.opened import Run
from scalemani.runs.walk import run

logger = logging.getLogger("scalemani")


class ConvergenceWarning(ShortfallWarning, sklearn.exceptions.ConvergenceWarning):
    """A result that misses its target, as a warning that scikit-learn's users know."""


def give(message: str, kind: type[ScalemaniWarning]) -> None:
    """Give one warning, of a kind that scikit-learn's users know where there is one."""
    warn(message, ConvergenceWarning if issubclass(kind, ShortfallWarning) else kind)


class LoggedProgress(Progress):
    """Sends what is going on to the logger of the library."""

    def start(self, stage: str, total: int, unit: str = "block") -> None:
        """Log that a stage starts."""
        logger.info("%s: %d %s to do", stage, total, plural(unit, total))

    def note(self, message: str) -> None:
        """Log one line."""
        logger.info(message)


@contextlib.contextmanager
def store_or_temporary(store: str | Path | None) -> Iterator[str | Path]:
    """Yield the requested folder or URL, or a temporary folder that is removed when the block ends."""
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        yield Path(folder) / "run"


def resources_of(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the arguments of `executor_for` among an estimator's parameters."""
    return {name: getattr(estimator, name) for name in RESOURCES if hasattr(estimator, name) and name != "store"}


@contextlib.contextmanager
def executor_for(
    scheduler: Any,
    workers: int | None,
    memory: str | int | None,
    verbose: bool = False,
    callbacks: Any = None,
    callbacks_every: Any = 50,
) -> Iterator[Executor]:
    """Yield the executor of an estimator; `verbose` shows progress on standard error."""
    found, every = checked_callbacks(callbacks, callbacks_every)
    with progress_for(sys.stderr) if verbose else LoggedProgress() as progress:
        progress.callbacks, progress.callbacks_every, progress.give_warning = found, every, give
        yield Executor.asked_for(scheduler, workers, memory, progress)


@contextlib.contextmanager
def finished_run(
    source: PointsSource, store: str | Path | None, method: str, params: Parameters, **resources: Any
) -> Iterator[Run]:
    """Run a method in a store, and yield the run; a temporary store is removed when the block ends."""
    with store_or_temporary(store) as folder:
        with executor_for(**resources) as executor:
            finished = run(source, folder, method, params, executor)
        yield finished


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
