"""What a run would do: stages, keys, missing blocks, memory, disk and seconds. Plain data, made before any work."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from scalemani.config.params import Resolved
from scalemani.config.stages import Stage
from scalemani.config.units import format_bytes
from scalemani.engine.context import DIMENSIONS
from scalemani.engine.memory_model import Budget, Disk, Memory, of_process, process_bytes
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DiskSpaceError, MemoryBudgetError
from scalemani.io.sources.columns import names_of
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.runs.outline import SEARCH, SOLVER, Outline, stage_params
from scalemani.runs.survey import checked_block_rows
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredCoarseGraphs
from scalemani.stages.neighbors.counts import exact_seconds
from scalemani.stages.shared.side_data import memory_of_merged
from scalemani.stages.table import STAGES
from scalemani.store.groups import StageGroup, block_unit
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import COLUMNS, RunStore

# Of files of a block and of a stage: marks, descriptions, and what rounding to whole blocks of the disk takes.
BLOCK_OVERHEAD_BYTES, STAGE_OVERHEAD_BYTES = 32 * 2**10, 64 * 2**10
APPENDED = "appended"  # in the stored plan: after how many points, and the digest of those that follow
# Of what a stage writes at most, the share that it is projected to write, compressed; 1 of others. The largest seen, of
# digits, cells of a tissue, surfaces and pixels, 2,000 to a million points, are 0.61, 0.78, 0.66 and 0.79.
PROJECTED_SHARES = {
    "neighbors": 0.65,
    "affinities": 0.8,
    "symmetric_affinities": 0.7,
    "normalized_affinities": 0.7,
    "landmark_weights": 0.85,
}
RARE_STEPS = ("small eigenvalues",)  # of graphs that next to nothing holds together, which few runs have
FEW_NEIGHBORS = 15  # do for most graphs; where a disk has no room for more, the message says so


class Fit(NamedTuple):
    """How a stage uses the processes there are.

    Tasks at once in all and in one process; what a process holds then, with itself, with what its cache has room for,
    and without what is in files; the bytes of that cache; and whether arrays with a row a point are in memory.
    """

    at_once: int
    in_one_process: int
    memory: Memory
    cache: int
    in_memory: bool


def fit(memory: Memory, processes: Sequence[Budget], n_blocks: int) -> Fit:
    """Return how many tasks of a stage run at once, none where no process can hold one, and the bytes of its cache.

    The cache is what the smallest process that can hold a task has to spare.
    """
    blocks = max(n_blocks, 1)
    held = Memory(of_process()) + memory
    without = held.with_cache(0)
    in_memory = all(process.fit(without) >= min(process.threads, blocks) for process in processes)
    if not in_memory:
        without = held.with_cache(0, in_memory)
    tasks = [(min(process.fit(without), blocks), process.memory) for process in processes]
    able = [(at_once, limit) for at_once, limit in tasks if at_once]
    spare = [limit - without.total(at_once) for at_once, limit in able if limit]
    cache = min([memory.cached, *spare]) if able else 0
    most = max((count for count, _ in able), default=0)
    at_once = min(sum(count for count, _ in able), blocks)
    return Fit(at_once, most, held.with_cache(cache, in_memory), cache, in_memory)


def check_memory(fits: Mapping[str, Fit], processes: Sequence[Budget], block_rows: int) -> None:
    """Refuse a budget that cannot hold one task of every stage, by what the stage needs that needs most.

    Raises
    ------
    MemoryBudgetError
        Where a stage does not fit; it says the least budget that does for all of them.
    """
    short = sorted((name for name in fits if not fits[name].at_once), key=lambda name: -fits[name].memory.total())
    if not short:
        return
    largest, several = max(fits[short[0]].memory.by_step.values(), key=Memory.total), len(processes) > 1
    least, most = largest.total(), max(process.memory or 0 for process in processes)
    of_block = int(sum(largest.task.values()))
    process = ", ".join(f"{megabytes(int(n_bytes))} for {name}" for name, n_bytes in of_process().items())
    others = f", {len(short) - 1} other stages more than the budget" if short[1:] else ""
    # The driver has a share as well.
    shares, workers = (1 + len(processes), ", or the memory of the workers of a cluster") if several else (1, "")
    can_shrink = block_rows > TILE_ROWS and most > least - of_block
    smaller = ", or start a new run with smaller blocks (--block-rows)" if can_shrink else ""
    raise MemoryBudgetError(
        f"stage {short[0]} needs up to {megabytes(least)} with one task at a time ({process}, "
        f"{megabytes(least - process_bytes() - of_block)} for what all tasks share, "
        f"{megabytes(of_block)} for a block of {block_rows} rows){others}; the budget"
        f"{' of a process' if several else ''} is {megabytes(most)}: raise --memory to "
        f"{megabytes(least * shares)}, which does for all stages{workers}{smaller}"
    )


def megabytes(n_bytes: int) -> str:
    """Return a size in the unit in which budgets are written, rounded up."""
    return f"{-(-n_bytes // 10**6)}MB"


def yet_to_write(disk: Disk, dimensions: Dimensions, committed: int, mapped: int = 0, share: float = 1.0) -> Disk:
    """Return what a stage has yet to write of what it stores, and of checkpoints and mapped files.

    `committed` bytes are written, files that processes map take `mapped` bytes; a `share` of the other bytes is left
    when they are compressed.
    """
    stored = int(share * sum(disk.stored.values())) + overhead_bytes(dimensions.n_blocks)
    return Disk({"stored": max(0, stored - committed)}, {"passing": int(share * sum(disk.passing.values())) + mapped})


def overhead_bytes(n_blocks: int) -> int:
    """Return the bytes of marks and descriptions of a stage, with what rounding to whole blocks of the disk takes."""
    return STAGE_OVERHEAD_BYTES + BLOCK_OVERHEAD_BYTES * n_blocks


def mapped_bytes(memory: Memory, disk: Disk, used: Fit, n_processes: int) -> int:
    """Return the bytes of the files that processes map while a stage runs, where memory has no room for them."""
    grown = 0 if used.in_memory else memory.total() - memory.with_cache(0, in_memory=False).total()
    read = int(sum(disk.mapped.values()))
    return n_processes * (grown + (0 if used.in_memory and used.cache >= read else read))


def check_disk(
    place: object, free: int | None, uses: Mapping[str, Disk], remedy: str = "", most: int | None = None
) -> None:
    """Refuse a run, before any work, whose stages have more to write than `free` bytes; None where nothing says these.

    `uses` are at most, or projected where `most` says what is written at most.

    Raises
    ------
    DiskSpaceError
        Where the stages write more than is free.
    """
    needed = total_bytes(uses.values())
    if free is None or needed <= free:
        return
    largest = sorted(uses, key=lambda name: uses[name].total, reverse=True)[:3]
    listed = ", ".join(f"{name} {format_bytes(uses[name].total)}" for name in largest)
    about = "up to" if most is None else "about"
    bound = "" if most is None else f"; {format_bytes(most)} in all if nothing were compressed"
    raise DiskSpaceError(
        f"the run has {about} {format_bytes(needed)} ({needed} bytes) to write below {place} "
        f"(the most: {listed}{bound}), and "
        f"{format_bytes(free)} ({free} bytes) are free on its disk: free {format_bytes(needed - free)} or choose a "
        f"folder on a larger disk, then run the same command again{remedy}"
    )


def check_projected(place: object, free: int | None, stages: Sequence["PlannedStage"], remedy: str) -> None:
    """Refuse stages that are projected to write more than `free` bytes; errors are those of `check_disk`."""
    projected = {planned.stage.name: planned.projected for planned in stages}
    check_disk(place, free, projected, remedy, total_bytes(planned.disk for planned in stages))


def total_bytes(uses: Iterable[Disk]) -> int:
    """Return the most bytes that stages, in their order, take at a time: what stays of each, and what goes with one."""
    staying, most = 0.0, 0.0
    for use in uses:
        staying += sum(use.stored.values())
        most = max(most, staying + sum(use.passing.values()))
    return int(most)


def counted(groups: Mapping[str, StageGroup]) -> dict[str, Any]:
    """Return fields of `Sizes`: the nonzeros of W once it is there, nodes and nonzeros of its coarse graphs.

    Raises
    ------
    CorruptChunkError
        Where a record does not say them as it should.
    """
    counts: dict[str, Any] = {"counted_nonzeros": None, "counted_graphs": None}
    matrix, coarse = groups.get(StoredSymmetricAffinities.STAGE), groups.get(StoredCoarseGraphs.STAGE)
    if matrix is not None and matrix.complete:
        counts["counted_nonzeros"] = matrix.certificate("nonzeros", int)
    if coarse is not None and coarse.complete:
        counts["counted_graphs"] = StoredCoarseGraphs(coarse).graph_sizes
    return counts


@dataclass(frozen=True)
class PlannedStage:
    """One stage of a plan: where its results go, what is there already, and what it may use.

    `disk` is what it has yet to write at most, `projected` what is expected of that.
    """

    stage: Stage
    key: str
    params: dict[str, Any]
    group: StageGroup
    held: Memory
    written: Disk
    fit: Fit
    disk: Disk
    projected: Disk

    @property
    def tasks(self) -> int:
        """How many tasks run in a process at once, one where none fits."""
        return max(1, self.fit.in_one_process)

    @property
    def memory(self) -> int:
        """The bytes of a process while the stage runs."""
        return self.fit.memory.total(self.tasks)

    def missing(self, n_blocks: int) -> str:
        """Return what is left to do, for people."""
        if self.group.complete:
            return "complete"
        done = sum(self.group.committed(block_unit(block)) for block in range(n_blocks))
        return f"{n_blocks - done} of {n_blocks}" if self.stage.by_block else "all"


@dataclass(frozen=True)
class Plan:
    """The stages of a method on its points, in order, and what the store has of them already."""

    outline: Outline
    sizes: Sizes
    processes: tuple[Budget, ...]
    stages: tuple[PlannedStage, ...]
    place: object
    free_bytes: int | None

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.outline.method

    @property
    def params(self) -> Resolved:
        """The parameters, those left open decided."""
        return self.sizes.params

    @property
    def dimensions(self) -> Dimensions:
        """The shape of the points, and their blocks."""
        return self.sizes.dimensions

    def planned(self, name: str) -> PlannedStage:
        """Return one stage of the plan by its name."""
        for planned in self.stages:
            if planned.stage.name == name:
                return planned
        raise ConfigError(
            f"{self.method} has no stage {name!r}; its stages: {', '.join(s.stage.name for s in self.stages)}"
        )

    @property
    def disk(self) -> int:
        """How many bytes the stages have yet to write, at most."""
        return total_bytes(planned.disk for planned in self.stages)

    @property
    def projected_disk(self) -> int:
        """How many bytes the stages are projected to write yet."""
        return total_bytes(planned.projected for planned in self.stages)

    def check(self, only: str | None = None) -> None:
        """Refuse a run whose stages, or one of them, need more memory than the budget, or are projected to fill a disk.

        A disk that fills up nevertheless ends a stage, which is resumed where there is room.

        Raises MemoryBudgetError or DiskSpaceError; stages that are complete need neither.
        """
        to_do = [one for one in self.stages if only in (None, one.stage.name) and not one.group.complete]
        fits = {planned.stage.name: planned.fit for planned in to_do}
        check_memory(fits, self.processes, self.dimensions.block_rows)
        check_projected(self.place, self.free_bytes, to_do, self.remedy)

    @property
    def remedy(self) -> str:
        """What makes a run smaller on its disk: the remedy other than a larger disk."""
        k = self.params.n_neighbors
        return f", or ask for fewer neighbours (neighbors.n_neighbors is {k})" if k > FEW_NEIGHBORS else ""

    def as_dict(self) -> dict[str, Any]:
        """Return what is stored of the plan."""
        earlier = self.outline.earlier
        appended = {} if earlier is None else {APPENDED: {"after": earlier.n_points, "content": earlier.appended}}
        solver = {} if self.outline.solver is None else {SOLVER: asdict(self.outline.solver)}
        search = {} if self.outline.search is None else {SEARCH: self.outline.search.as_dict()}
        names = names_of(self.outline.survey.points.source)
        columns = {COLUMNS: list(names)} if names else {}
        return {
            **appended,
            **columns,
            **solver,
            **search,
            "method": self.method,
            "params": self.params.as_dict(),
            "dimensions": self.dimensions.as_dict(),
            "keys": {planned.stage.name: planned.key for planned in self.stages},
            "within": list(self.outline.origins),
        }


def make_plan(store: RunStore, outline: Outline, executor: Executor) -> Plan:
    """Return what a run has yet to do and what it may use, by what its store holds at this moment.

    Raises
    ------
    CorruptChunkError
        Where the stored dimensions of the points are damaged.
    """
    keys, surveyed = outline.keys, outline.survey
    dimensions = with_stored_blocks(store, keys["points"], surveyed.dimensions)
    groups = {stage.name: store.group(stage.name, keys[stage.name], dimensions.block_rows) for stage in outline.stages}
    weighted, processes = surveyed.side.weights is not None, tuple(executor.processes)
    n_appended = 0 if outline.earlier is None else dimensions.n_points - outline.earlier.n_points
    n_rows = 0 if surveyed.side.duplicates is None else len(surveyed.side.duplicates.points_of_rows)
    sizes = Sizes(dimensions, outline.params, None, weighted, n_appended, executor.keep, n_rows)
    sizes = replace(sizes, encoded_row_bytes=surveyed.stored_row_bytes, **counted(groups))
    planned = tuple(
        planned_stage(stage, keys[stage.name], groups[stage.name], sizes, processes) for stage in outline.stages
    )
    return Plan(outline, sizes, processes, planned, store.root, store.objects.free_bytes())


def planned_stage(stage: Stage, key: str, group: StageGroup, sizes: Sizes, processes: Sequence[Budget]) -> PlannedStage:
    """Return what a stage may use and has to do."""
    code, n_blocks = STAGES[stage.name], sizes.dimensions.n_blocks
    memory, disk, left, projected = code.memory(sizes) + memory_of_merged(sizes), code.disk(sizes), Disk(), Disk()
    used = fit(memory, processes, n_blocks)
    if not group.complete:
        usual = replace(memory, steps={name: step for name, step in memory.steps.items() if name not in RARE_STEPS})
        mapped, mapped_usually = (mapped_bytes(held, disk, used, len(processes)) for held in (memory, usual))
        committed, share = group.committed_bytes, PROJECTED_SHARES.get(stage.name, 1.0)
        left = yet_to_write(disk, sizes.dimensions, committed, mapped)
        projected = yet_to_write(disk, sizes.dimensions, committed, mapped_usually, share)
    return PlannedStage(stage, key, stage_params(stage, sizes.params), group, memory, disk, used, left, projected)


def with_counts(plan: Plan, planned: PlannedStage) -> PlannedStage:
    """Return a stage as planned by what was counted since the plan was made; refuse it where it fits no more."""
    counts = counted({one.stage.name: one.group for one in plan.stages})
    sizes, stage, group = replace(plan.sizes, **counts), planned.stage, planned.group
    if sizes == plan.sizes:
        return planned
    recounted = planned_stage(stage, planned.key, group, sizes, plan.processes)
    check_memory({stage.name: recounted.fit}, plan.processes, plan.dimensions.block_rows)
    check_projected(plan.place, group.objects.free_bytes(), [recounted], plan.remedy)
    return recounted


def with_stored_blocks(store: RunStore, key: str, dimensions: Dimensions) -> Dimensions:
    """Return the dimensions with the rows a block that were fixed when these points were first ingested."""
    where = f"stages/points/{key}/{DIMENSIONS}"
    stored = store.objects.get_json(where)
    if stored is None:
        return dimensions
    # All but the rows a block is in the key of the points; blocks that do not fit the stored ones would mix with them.
    rows = stored.get("block_rows") if isinstance(stored, dict) else None
    if not isinstance(rows, int) or stored != replace(dimensions, block_rows=rows).as_dict():
        raise damaged_object(f"{store.root}/{where}", "not the dimensions of these points")
    return replace(dimensions, block_rows=checked_block_rows(rows, dimensions.n_points))


class Usual(NamedTuple):
    """Seconds of a stage on two processors: of few points, of a million, the power of their number, of compiling."""

    least: float
    of_million: float
    power: float = 1.0
    compiling: float = 0.0


# Digits of 784 bytes. A descent makes fewer iterations the more points there are. What counts is the proportion of
# one stage to another.
USUAL = {
    "points": Usual(0.02, 2.0),
    "partition": Usual(0.2, 7.0, compiling=2.6),
    "work_points": Usual(0.03, 5.5, compiling=0.1),
    "neighbors": Usual(0.2, 20.0, compiling=1.1),
    "affinities": Usual(0.03, 2.0, compiling=0.8),
    "components": Usual(0.01, 0.6, compiling=0.3),
    "symmetric_affinities": Usual(0.04, 5.0, compiling=0.7),
    "landmarks": Usual(0.12, 1.5, compiling=1.8),
    "coarse_graphs": Usual(0.03, 6.0, compiling=0.6),
    "coarse_embedding": Usual(0.08, 3.5, compiling=1.0),
    "embedding": Usual(0.06, 3.0, compiling=0.5),
    "layout": Usual(0.0, 36.0, power=0.72, compiling=4.5),
}
OTHER = Usual(0.1, 3.0)
PROCESSORS = 2  # that the numbers above were measured with


def compile_seconds(stages: Sequence[PlannedStage]) -> float:
    """Return about how long stages compile where nothing is compiled yet."""
    return sum(USUAL.get(planned.stage.name, OTHER).compiling for planned in stages)


def expected_seconds(plan: Plan, stages: Sequence[PlannedStage], compiling: bool) -> dict[str, float]:
    """Return about how long each of some stages takes, by its name, with what it compiles if it has to."""
    millions, seconds = plan.dimensions.n_points / 1e6, {}
    for planned in stages:
        name = planned.stage.name
        usual = USUAL.get(name, OTHER)
        growing = usual.of_million * millions**usual.power
        predicted = search_seconds(plan) if name == "neighbors" else None
        seconds[name] = usual.least + compiling * usual.compiling + (growing if predicted is None else predicted)
    return seconds


def search_seconds(plan: Plan) -> float | None:
    """Return the predicted seconds of the search for neighbours; None where no sample of the points says any."""
    choice, method = plan.outline.search, plan.params.neighbors.method_for(plan.dimensions.n_points)
    if choice is not None:
        return choice.seconds[choice.resolved] / PROCESSORS
    return exact_seconds(plan.sizes) / PROCESSORS if method == "exact" else None
