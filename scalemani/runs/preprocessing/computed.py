"""Points that Dask computes are read from a copy: a run reads its points several times, each chunk is computed once."""

import contextlib
import functools
import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path

import dask

from scalemani.engine.memory_model import Disk, Memory
from scalemani.engine.workers.executor import Executor
from scalemani.errors import (
    DataError,
    PoisonTaskError,
    ScalemaniError,
    StoreLockedError,
)
from scalemani.io.sources import DaskPoints, PointsSource
from scalemani.io.sources.base import innermost, with_innermost
from scalemani.io.sources.lazy import ComputedPoints
from scalemani.runs.plan import check_disk
from scalemani.runs.survey import COPIES_AT_WORK, dimensions_of
from scalemani.store.locks import LOCK
from scalemani.store.run_store import RunStore

COPY = "computed-"  # begins the name of the folder of a copy, in that of the run
STAGE = "computing"


@contextlib.contextmanager
def computed_once(
    source: PointsSource, root: str | Path, executor: Executor, block_rows: int | None = None
) -> Iterator[PointsSource]:
    """Yield points whose rows are read from a copy where Dask computes them; others as they are.

    A run reads its points several times: to know what they are before anything is decided, and to store them. The copy
    lies in the folder of the run, takes as much as the points in memory would, and goes when the block ends; where
    there was no run before and none has begun, so does the folder.

    Parameters
    ----------
    source : (N, D), the points
    block_rows : rows a block, as in `run`

    Raises
    ------
    DataError
        Where a chunk cannot be computed, or is not what its array said.
    MemoryBudgetError, DiskSpaceError
        Where the largest chunk does not fit the budget, or the copy not the disk; nothing is written then.
    """
    points = innermost(source)
    if not isinstance(points, DaskPoints) or points.shape[0] == 0:
        yield source
        return
    dimensions = dimensions_of(points, executor, block_rows)
    copied = Disk(passing={"a copy of the points": dimensions.n_points * dimensions.row_bytes})
    check_disk(root, RunStore(root).objects.free_bytes(), {STAGE: copied}, ", or store the points and give their path")
    store = RunStore.create(root)
    executor.check_reach(root)
    remove_abandoned(store)
    name = f"{COPY}{uuid.uuid4().hex}"
    objects = store.objects.below(name)
    objects.prepare()
    try:
        with objects.lock():
            computed = ComputedPoints(objects.root, dimensions.block_rows, points)
            store_chunks(points, computed, executor)
            yield with_innermost(source, computed)
    finally:
        store.objects.delete_below(name)
        store.remove_empty()


def remove_abandoned(store: RunStore) -> None:
    """Remove copies of processes that were killed: nobody holds their locks. One without a lock is being made."""
    for name in store.objects.names():
        if name.startswith(COPY) and LOCK in store.objects.names(name):
            with contextlib.suppress(StoreLockedError), store.objects.below(name).lock():
                store.objects.delete_below(name)


def store_chunks(points: DaskPoints, copy: ComputedPoints, executor: Executor) -> None:
    """Compute all chunks and store their rows: on the workers, or in this process through the client that has them."""
    executor.progress.start(STAGE, len(points.starts) - 1, "chunk")
    holder = points.holder
    bounds = list(itertools.pairwise(points.starts))
    try:
        if holder is not None and not executor.shares_scheduler(holder):
            # Workers of a cluster that runs no tasks of ours may not reach the folder.
            executor.map_here(lambda bound: copy.keep(bound[0], bound[1], points.read(*bound)), bounds, sequential=True)
            return
        writers = [dask.delayed(functools.partial(copy.keep, *bound), pure=False, traverse=False) for bound in bounds]
        values = [write(chunk) for write, chunk in zip(writers, points.lazy_chunks(), strict=True)]
        chunk = Memory(task={"a chunk, which threads compute": COPIES_AT_WORK * points.held_bytes})
        executor.compute_values(values, min(budget.fit(chunk) for budget in executor.processes), STAGE, holder)
    except PoisonTaskError as error:
        raise DataError(
            f"{points.description} cannot be computed: workers died whenever they worked on one of its chunks, which "
            "may take more memory than a worker has: give smaller chunks, or workers more memory"
        ) from error
    except (ScalemaniError, MemoryError):
        raise
    except Exception as error:  # any error of the user's functions
        raise DataError(
            f"{points.description} cannot be computed: {type(error).__name__}: {error}. Workers take what "
            "pickle can send; the error above this one says where it arose"
        ) from error
