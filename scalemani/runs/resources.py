"""What a run may use: tasks at once and caches within a budget of memory, and the disk that it will write to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dask.utils import format_bytes

from scalemani.engine.needs import PROCESS_BYTES, Budget, DiskNeed, MemoryNeed
from scalemani.engine.task import Dimensions
from scalemani.errors import DiskSpaceError, MemoryBudgetError
from scalemani.kernels.arrays.tiles import TILE_ROWS

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


def fit(need: MemoryNeed, processes: Sequence[Budget], n_blocks: int) -> Fit:
    """Return how many tasks of a stage run at once, none where no process can hold one, and the bytes of its cache.

    The cache is what the smallest process that can hold a task has to spare.
    """
    blocks = max(n_blocks, 1)
    held = replace(need, fixed=PROCESS_BYTES + need.fixed, cache=0)
    in_memory = all(process.fit(held) >= min(process.threads, blocks) for process in processes)
    if not in_memory:
        held = replace(held, growing=0)
    tasks = [(min(process.fit(held), blocks), process.memory) for process in processes]
    able = [(at_once, memory) for at_once, memory in tasks if at_once]
    spare = [memory - held.total(at_once) for at_once, memory in able if memory]
    cache = min([need.cache, *spare])
    at_once = min(sum(count for count, _ in able), blocks)
    most = max((count for count, _ in able), default=0)
    return Fit(at_once, most, replace(held, cache=cache if able else 0), in_memory)


def check_memory(fits: Mapping[str, Fit], processes: Sequence[Budget], block_rows: int) -> None:
    """Refuse a budget that cannot hold one task of every stage, by what the stage needs that needs most.

    Raises
    ------
    MemoryBudgetError
        Where a stage does not fit; it says the least budget that does for all of them.
    """
    short = sorted((name for name in fits if not fits[name].at_once), key=lambda name: -fits[name].need.total(1))
    if not short:
        return
    need, several = fits[short[0]].need, len(processes) > 1
    least, largest = need.total(1), max(process.memory or 0 for process in processes)
    others = f", {len(short) - 1} other stages more than the budget" if short[1:] else ""
    smaller = ", or start a new run with smaller blocks (--block-rows)" if block_rows > TILE_ROWS else ""
    raise MemoryBudgetError(
        f"stage {short[0]} needs {format_bytes(least)} with one task at a time ({format_bytes(PROCESS_BYTES)} for the "
        f"process, {format_bytes(need.shared - PROCESS_BYTES)} for what all tasks share, "
        f"{format_bytes(need.per_task)} for a block of {block_rows} rows){others}; the budget"
        f"{' of a process' if several else ''} is {format_bytes(largest)}"
        f"{memory_remedy(least, len(processes))}{smaller}"
    )


def memory_remedy(least: int, n_processes: int) -> str:
    """Return what to do where a process of a budget must have so many bytes."""
    several = n_processes > 1
    shares = 1 + n_processes if several else 1  # the driver has one as well
    workers = ", or the memory of the workers of a cluster" if several else ""
    return f": raise --memory to {least_budget(least * shares)}, which does for all stages{workers}"


def least_budget(n_bytes: int) -> str:
    """Return a size that --memory takes, not below so many bytes."""
    return f"{-(-n_bytes // 10**6)}MB"


class DiskUse(NamedTuple):
    """Bytes that a stage has yet to write, at most: those that stay, and those that go when it ends."""

    stored: int = 0
    passing: int = 0


def disk_use(need: DiskNeed, point_bytes: float, dimensions: Dimensions, committed: int, mapped: int = 0) -> DiskUse:
    """Return what a stage has yet to write of what it stores, and of checkpoints and mapped files.

    A stored point takes `point_bytes`, `committed` bytes are written, files that processes map take `mapped` bytes.
    """
    stored = need.stored + int(need.points * point_bytes) + overhead_bytes(dimensions.n_blocks)
    return DiskUse(max(0, stored - committed), need.passing + mapped)


def overhead_bytes(n_blocks: int) -> int:
    """Return the bytes of marks and descriptions of a stage, with what rounding to the disk's own blocks takes."""
    return STAGE_OVERHEAD_BYTES + BLOCK_OVERHEAD_BYTES * n_blocks


def mapped_bytes(need: MemoryNeed, uncached: int, used: Fit, n_processes: int) -> int:
    """Return the bytes of the files that processes map while a stage runs, where memory has no room for them."""
    grown = 0 if used.in_memory else need.growing
    read = 0 if used.in_memory and used.need.cache >= uncached else uncached
    return n_processes * (grown + read)


def check_disk(place: object, free: int | None, uses: Mapping[str, DiskUse], remedy: str = "") -> None:
    """Refuse a run, before any work, whose stages have more to write than `free` bytes; None where nothing says these.

    Raises
    ------
    DiskSpaceError
        Where the stages write more than is free.
    """
    needed = total_bytes(uses.values())
    if free is None or needed <= free:
        return
    largest = sorted(uses, key=lambda name: sum(uses[name]), reverse=True)[:3]
    listed = ", ".join(f"{name} {format_bytes(sum(uses[name]))}" for name in largest)
    raise DiskSpaceError(
        f"the run has up to {format_bytes(needed)} ({needed} bytes) to write below {place} (the most: {listed}), and "
        f"{format_bytes(free)} ({free} bytes) are free on its disk: free {format_bytes(needed - free)} or choose a "
        f"folder on a larger disk, then run the same command again{remedy}"
    )


def total_bytes(uses: Iterable[DiskUse]) -> int:
    """Return the bytes that stages take together: all that stays, and the most that any has while it runs."""
    listed = list(uses)
    return sum(use.stored for use in listed) + max((use.passing for use in listed), default=0)
