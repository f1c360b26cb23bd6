"""What estimators share: a store to run in, and resources."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalemani.estimators.telling import LoggedProgress
from scalemani.workers.executor import Executor


@contextlib.contextmanager
def store_or_temporary(store: str | Path | None) -> Iterator[str | Path]:
    """Yield the folder or URL asked for, or a temporary folder that goes when the block ends."""
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        yield Path(folder) / "run"


def executor_for(scheduler: Any, workers: int | None, memory: str | int | None) -> Executor:
    """Return where an estimator's tasks run."""
    return Executor.asked_for(scheduler, workers, memory, LoggedProgress())
