"""Runs from Python: the store and executor that arguments stand for, and new points: `transform` and `append`."""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.exceptions

from scalemani.config.params import Parameters
from scalemani.config.validation import check_count, check_flag
from scalemani.engine.progress import Callback, Progress, plural, progress_for
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, ScalemaniWarning, ShortfallWarning, warn
from scalemani.interfaces.estimators.bases import BaseEstimator
from scalemani.interfaces.estimators.parameters import RESOURCES
from scalemani.io.sources import PointsSource, open_points, take_representation
from scalemani.runs.appending import Grown, append_points
from scalemani.runs.new_points.transforming import Transformed, transform_points
from scalemani.runs.opened import Run, open_run
from scalemani.runs.survey import checked_block_rows
from scalemani.runs.walk import run

MOST_BYTES_IN_MEMORY = 2**22  # of points, whose run takes some ten times as many
LEAST_ROOM = 2**27
MOST_ROWS_IN_ONE_BLOCK = 4096  # of a temporary store: tasks of a block each would take as long as what they compute
IN_MEMORY = "/dev/shm"  # Linux

logger = logging.getLogger("scalemani")


class ConvergenceWarning(ShortfallWarning, sklearn.exceptions.ConvergenceWarning):
    """A result that misses its target, as a warning that scikit-learn's users know."""


def give(message: str, kind: type[ScalemaniWarning]) -> None:
    """Give one warning, of a kind that scikit-learn's users know where there is one."""
    warn(message, ConvergenceWarning if issubclass(kind, ShortfallWarning) else kind)


class LoggedProgress(Progress):
    """Sends what is going on to the logger of the library."""

    def start(self, stage: str, total: int, unit: str = "block", done: int = 0) -> None:
        """Log that a stage starts."""
        logger.info("%s: %d %s to do", stage, total - done, plural(unit, total - done))

    def note(self, message: str) -> None:
        """Log one line."""
        logger.info(message)


@contextlib.contextmanager
def store_or_temporary(store: str | Path | None, points_bytes: int | None = None) -> Iterator[str | Path]:
    """Yield the requested folder or URL, or a temporary folder that is removed when the block ends.

    Of few points, a temporary store lies in memory: writes that wait for a disk take as long as the run.
    """
    if store is not None:
        yield store
        return
    few = points_bytes is not None and points_bytes <= MOST_BYTES_IN_MEMORY
    with tempfile.TemporaryDirectory(prefix="scalemani-", dir=folder_in_memory() if few else None) as folder:
        yield Path(folder) / "run"


def folder_in_memory(folder: str = IN_MEMORY, least_room: int = LEAST_ROOM) -> str | None:
    """Return the folder of temporary files in memory; None where that is full, or where TMPDIR names another place."""
    try:
        room = shutil.disk_usage(folder).free >= least_room
    except OSError:
        return None
    return folder if room and "TMPDIR" not in os.environ and os.access(folder, os.W_OK) else None


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
    calls, every = checked_callbacks(callbacks, callbacks_every)
    with progress_for(sys.stderr) if verbose else LoggedProgress() as progress:
        progress.callbacks, progress.callbacks_every, progress.give_warning = calls, every, give
        yield Executor.from_options(scheduler, workers, memory, progress)


@contextlib.contextmanager
def finished_run(
    source: PointsSource, store: str | Path | None, method: str, params: Parameters, **resources: Any
) -> Iterator[Run]:
    """Run a method in a store, and yield the run; a temporary store is removed when the block ends."""
    rows, columns = source.shape
    few = store is None and rows <= MOST_ROWS_IN_ONE_BLOCK and resources.get("memory") is None
    with store_or_temporary(store, rows * columns * np.dtype(source.dtype).itemsize) as folder:
        with executor_for(**resources) as executor:
            block_rows = checked_block_rows(MOST_ROWS_IN_ONE_BLOCK, max(rows, 1)) if few else None
            finished = run(source, folder, method, params, executor, block_rows)
        yield finished


def checked_callbacks(callbacks: Any, every: Any) -> tuple[tuple[Callback, ...], int]:
    """Return callbacks as a tuple, and how many iterations lie between two calls, or raise ConfigError."""
    calls = () if callbacks is None else (callbacks,) if callable(callbacks) else callbacks
    if not isinstance(calls, list | tuple) or not all(map(callable, calls)):
        raise ConfigError(
            f"callbacks must be callables of (iteration, objective, embedding), one or a list, got {callbacks!r}"
        )
    return tuple(calls), check_count(every, "callbacks_every")


def transform(
    run: Run | str | Path,
    points: Any,
    out: str | Path,
    *,
    use_rep: str | None = None,
    scheduler: Any = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> Transformed:
    """Place new points in a finished run and write their coordinates, by blocks; the same call resumes.

    Finished blocks are stored in the folder OUT.transform next to the output, which is removed at the end.

    Parameters
    ----------
    run : a run as `open_run` gives it, or its folder or URL
    points : (n, D), the new points, as `fit` of an estimator takes them
    out : where the coordinates (n, d) float64 go: .npy, .parquet or .zarr. Clusters (n,) int32 of a run of spectral
        clustering are written to OUT.labels.npy
    use_rep : of points that are an AnnData, or the path of one, as in `LaplacianEigenmaps`
    scheduler, workers, memory, verbose : as in `LaplacianEigenmaps`; workers place points that are passed as a path or
        URL

    Returns
    -------
    Transformed
        `certificates`, `labels` (where the clusters are, or None) and `warnings`, which are also issued.

    Raises
    ------
    DataError
        For points with other columns, and with values that are not finite.
    StoreError, ConfigError, MemoryBudgetError
        For a run that is not finished, an output that cannot be, and a budget that cannot hold a block.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import scalemani as sm
    >>> points = np.random.default_rng(0).normal(size=(200, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sm.LaplacianEigenmaps(store=f"{folder}/run").fit(points)
    ...     placed = sm.transform(f"{folder}/run", points[:5], f"{folder}/placed.npy")
    ...     np.load(f"{folder}/placed.npy").shape
    (5, 2)
    """
    opened = run if isinstance(run, Run) else open_run(run)
    gaps, located = opened.params.leaves_out_gaps, isinstance(points, str | Path)
    source = str(take_representation(points, use_rep)) if located else open_points(points, gaps, use_rep)
    with executor_for(scheduler, workers, memory, verbose) as executor:
        placed = transform_points(opened, source, out, executor)
    for message, kind in placed.warnings:
        give(message, kind)
    return placed


def append(
    run: Run | str | Path,
    points: Any,
    *,
    freeze: bool = False,
    use_rep: str | None = None,
    scheduler: Any = None,
    workers: int | None = None,
    memory: str | int | None = None,
    verbose: bool = False,
) -> Grown:
    """Append points to a finished run; the same call resumes.

    The cells of the run stay, and its neighbour lists but where appended points come nearer: the search through cells
    costs what the appended points cost in a new run. All points are read, put in order and sketched once more, and a
    round over neighbours of neighbours looks at what has changed. Affinities are computed anew, eigenvectors are
    refined from the earlier ones too, and a descent starts where it had ended. The run in the store is the earlier one
    until the new one is complete, and its results stay there. Rows that a run ends with are not appended once more.

    Parameters
    ----------
    run : a run as `open_run` gives it, or its folder or URL
    points : (n, D), as `fit` of an estimator takes them, as wide and of the same type as those of the run
    freeze : whether a descent keeps the earlier points exactly where they are
    use_rep : of points that are an AnnData, or the path of one, as in `LaplacianEigenmaps`
    scheduler, workers, memory, verbose : as in `LaplacianEigenmaps`

    Returns
    -------
    Grown
        `run`, of all points with the appended ones last; `appended`, how many these are; and `moved`, how far the
        others have moved as a share of their spread.

    Raises
    ------
    DataError
        For points of another width or type, values that are not finite, and no points.
    ConfigError
        For runs of labels, of precomputed neighbour lists, or with components left out, and `freeze` without a descent.
    StoreError, MemoryBudgetError, DiskSpaceError
        As in a run of all points.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import scalemani as sm
    >>> points = np.random.default_rng(0).normal(size=(220, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sm.LaplacianEigenmaps(store=folder).fit(points[:200])
    ...     grown = sm.append(folder, points[200:])
    ...     grown.run.embedding.shape, grown.appended
    ((220, 2), 20)
    """
    opened, keeps = run if isinstance(run, Run) else open_run(run), check_flag(freeze, "freeze")
    with executor_for(scheduler, workers, memory, verbose) as executor:
        source = open_points(points, opened.params.leaves_out_gaps, use_rep)
        return append_points(opened, source, executor, keeps)
