"""What estimators share: a store to run in, and resources."""

import contextlib
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from scalemani.estimators.telling import LoggedProgress
from scalemani.workers.executor import Executor

# The temporary store that estimators without one share while several of them run.
SHARED: ContextVar[Path | None] = ContextVar("shared temporary store", default=None)


@contextlib.contextmanager
def store_or_temporary(store: str | Path | None) -> Iterator[str | Path]:
    """Yield the folder or URL asked for, or a temporary folder that goes when the block ends."""
    shared = SHARED.get() if store is None else store
    if shared is not None:
        yield shared
        return
    with tempfile.TemporaryDirectory(prefix="scalemani-") as folder:
        yield Path(folder) / "run"


@contextlib.contextmanager
def sharing_temporary(store: str | Path | None) -> Iterator[str | Path]:
    """As `store_or_temporary`; estimators without a store that are fitted in the block run in the same one."""
    with store_or_temporary(store) as folder:
        before = SHARED.set(Path(folder) if store is None else None)
        try:
            yield folder
        finally:
            SHARED.reset(before)


def executor_for(scheduler: Any, workers: int | None, memory: str | int | None) -> Executor:
    """Return where an estimator's tasks run."""
    return Executor.asked_for(scheduler, workers, memory, LoggedProgress())
