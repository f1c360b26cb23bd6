"""What estimators share: a store to run in, resources, and the seed."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.progress.lines import ProgressLogger
from scalemani.validation import check_seed
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
    return Executor.asked_for(scheduler, workers, memory, ProgressLogger())


def seed_of(random_state: Any) -> int:
    """Return the seed: an integer as it is, one drawn from None or a generator."""
    return check_seed(np.random.default_rng() if random_state is None else random_state)
