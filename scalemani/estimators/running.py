"""What estimators share: a store to run in, and resources."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from scalemani.estimators.telling import LoggedProgress, ShownProgress
from scalemani.progress import progress_for
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


@contextlib.contextmanager
def executor_for(
    scheduler: Any, workers: int | None, memory: str | int | None, verbose: bool = False
) -> Iterator[Executor]:
    """Yield where an estimator's tasks run; `verbose` tells of their progress on standard error as it goes on."""
    with progress_for(sys.stderr) if verbose else contextlib.nullcontext() as shown:
        yield Executor.asked_for(
            scheduler, workers, memory, LoggedProgress() if shown is None else ShownProgress(shown)
        )
