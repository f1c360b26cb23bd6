"""What a run may use: tasks at once and caches within a budget of memory, and the disk that it will write to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dask.utils import format_bytes

from scalemani.chunked.work import Dimensions, DiskNeed
from scalemani.errors import DiskSpaceError, MemoryBudgetError
from scalemani.memory.mapped import TOUCHED_BYTES
from scalemani.workers.budget import Budget, MemoryNeed

PROCESS_BYTES = 650 * 10**6  # the interpreter with numpy, scipy, numba, zarr and Dask loaded and the kernels compiled
# Of files of a block and of a stage: marks, descriptions, and what rounding to the disk's own blocks takes.
BLOCK_OVERHEAD_BYTES, STAGE_OVERHEAD_BYTES = 32 * 2**10, 64 * 2**10


class Fit(NamedTuple):
    """How a stage uses the processes there are.

    Tasks at once in all and in one process; what these need, with the process itself, with what its cache has room for,
    and without what is mapped; and whether arrays that grow with the points are in memory.
    """

    at_once: int
    in_one_process: int
    need: MemoryNeed
    in_memory: bool


def fit(name: str, need: MemoryNeed, processes: Sequence[Budget], dimensions: Dimensions) -> Fit:
    """Return how many tasks of a stage run at once and the bytes of its cache, or refuse the budget.

    The cache is what the smallest process that can hold a task has to spare.
    """
    blocks = max(dimensions.n_blocks, 1)
    held = replace(need, fixed=PROCESS_BYTES + need.fixed, cache=0)
    in_memory = need.growing <= TOUCHED_BYTES or all(
        process.fit(held) >= min(process.threads, blocks) for process in processes
    )
    if not in_memory:
        held = replace(held, fixed=held.fixed + TOUCHED_BYTES, growing=0)
    tasks = [(min(process.fit(held), blocks), process.memory) for process in processes]
    able = [(at_once, memory) for at_once, memory in tasks if at_once]
    if not able:
        raise MemoryBudgetError(too_little(name, held, processes, dimensions))
    cache = min([need.cache, *(memory - held.total(at_once) for at_once, memory in able if memory)])
    at_once = min(sum(count for count, _ in able), blocks)
    return Fit(at_once, max(count for count, _ in able), replace(held, cache=cache), in_memory)


def too_little(name: str, held: MemoryNeed, processes: Sequence[Budget], dimensions: Dimensions) -> str:
    """Return what to say of a budget that cannot hold one task of a stage."""
    least, largest = held.total(1), max(memory or 0 for _, memory in processes)
    several = len(processes) > 1
    return (
        f"stage {name} needs {format_bytes(least)} with one task at a time ({format_bytes(PROCESS_BYTES)} for the "
        f"process, {format_bytes(held.shared - PROCESS_BYTES)} for what all tasks share, "
        f"{format_bytes(held.per_task)} for a block of {dimensions.block_rows} rows), the budget"
        f"{' of a process' if several else ''} is {format_bytes(largest)}: raise --memory to "
        f"{format_bytes(least * (1 + several * len(processes)))}"
        f"{', or the memory of the workers of a cluster' if several else ''}, or start a new run with smaller "
        "blocks (--block-rows)"
    )


class DiskUse(NamedTuple):
    """Bytes that a stage has yet to write, at most: those that stay, and those that go when it ends."""

    stored: int = 0
    passing: int = 0


def disk_use(need: DiskNeed, point_bytes: float, dimensions: Dimensions, committed: int, mapped: int = 0) -> DiskUse:
    """Return what a stage has yet to write of what it stores, and of checkpoints and mapped files.

    Parameters: `point_bytes`, what a point takes as stored; `committed`, what the stage has written before; `mapped`,
    the bytes of `mapped_bytes`.
    """
    overhead = STAGE_OVERHEAD_BYTES + BLOCK_OVERHEAD_BYTES * dimensions.n_blocks
    stored = need.stored + int(need.points * point_bytes) + overhead
    return DiskUse(max(0, stored - committed), need.passing + mapped)


def mapped_bytes(need: MemoryNeed, uncached: int, used: Fit, n_processes: int) -> int:
    """Return the bytes of the files that processes map while a stage runs, where memory has no room for them."""
    grown = 0 if used.in_memory else need.growing
    read = 0 if used.in_memory and used.need.cache >= uncached else uncached
    return n_processes * (grown + read)


def check_disk(place: object, free: int | None, uses: Mapping[str, DiskUse]) -> None:
    """Refuse a run, before any work, whose stages have more to write than the disk has room for.

    Parameters: `place`, where the run is; `free`, the bytes free there, None where nothing says; `uses`, by stage.
    """
    needed = total_bytes(uses.values())
    if free is None or needed <= free:
        return
    largest = sorted(uses, key=lambda name: sum(uses[name]), reverse=True)[:3]
    listed = ", ".join(f"{name} {format_bytes(sum(uses[name]))}" for name in largest)
    raise DiskSpaceError(
        f"the run has up to {format_bytes(needed)} ({needed} bytes) to write below {place} (the most: {listed}), and "
        f"{format_bytes(free)} ({free} bytes) are free on its disk: free {format_bytes(needed - free)} or choose a "
        "folder on a larger disk, then run the same command again"
    )


def total_bytes(uses: Iterable[DiskUse]) -> int:
    """Return the bytes that stages take together: all that stays, and the most that any has while it runs."""
    listed = list(uses)
    return sum(use.stored for use in listed) + max((use.passing for use in listed), default=0)
