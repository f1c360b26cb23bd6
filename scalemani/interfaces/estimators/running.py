"""What estimators share: a store to run in, and resources."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scalemani.engine.progress import progress_for
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.estimators.parameters import RESOURCES
from scalemani.interfaces.estimators.telling import LoggedProgress, ShownProgress, checked_callbacks


@contextlib.contextmanager
def store_or_temporary(store: str | Path | None) -> Iterator[str | Path]:
    """Yield the folder or URL asked for, or a temporary folder that goes when the block ends."""
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        yield Path(folder) / "run"


def resources_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `executor_for` takes of an estimator's parameters."""
    return {name: asked[name] for name in RESOURCES if name in asked and name != "store"}


@contextlib.contextmanager
def executor_for(
    scheduler: Any,
    workers: int | None,
    memory: str | int | None,
    verbose: bool = False,
    callbacks: Any = None,
    callbacks_every: Any = 50,
) -> Iterator[Executor]:
    """Yield where an estimator's tasks run; `verbose` tells of their progress on standard error as it goes on."""
    called = checked_callbacks(callbacks, callbacks_every)
    with progress_for(sys.stderr) if verbose else contextlib.nullcontext() as shown:
        progress = LoggedProgress(*called) if shown is None else ShownProgress(shown, *called)
        yield Executor.asked_for(scheduler, workers, memory, progress)
