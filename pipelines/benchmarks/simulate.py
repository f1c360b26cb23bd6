"""How long 100 million and a billion points would take on 1 to 256 workers, from the task times of measured runs.

    python pipelines/benchmarks/simulate.py WORK_FOLDER --points 200000 400000 [--beside RUN]
    python pipelines/benchmarks/simulate.py WORK_FOLDER --points 510000 1020000 --workers 64 256 --block-rows 65536

Runs two sizes on a cluster of one worker, and the larger on two. Each stage has tasks, of which the seconds of every
block are measured, and a part that the driver does alone. How they grow with the points is taken from the two sizes:
tasks as a power of at least one, the driver's part as a constant and a share in proportion. A pass that every run of
blocks makes over all points or over the whole graph is taken from one worker against two. The tasks are then given to
workers in the order of the driver, each when a worker is free. Two workers are predicted from one, and compared with
what was measured; so are the points of a finished RUN. Bandwidth of the store is taken to grow with the workers. Both
sizes lie above those at which the search for neighbours changes its numbers (`neighbors.FEW_POINTS`). Embeddings are
those of landmarks (`embedding.solver=lll`): a refinement holds the graph and all vectors on the driver.

The memory of a stage is what its plan projects for one process with one task: sketches of all points, say. A process
that has less cannot take part, however many there are.
"""

import argparse
import dataclasses
import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commanding import command, fresh, running_cluster, succeeded
from digits import million_digits
from ledger import Task, read_ledger, spans
from measuring import show

from scalemani.engine.sizes import Sizes
from scalemani.runs.opened import Run, open_run
from scalemani.stages.table import STAGES

SECONDS_PER_DISPATCH = 0.002  # of driver and scheduler, for one task: processor time with empty tasks
WORKER_BYTES = 8e9
# Each run of blocks reads everything; bytes a row that a run holds: 15 incoming edges, or a point of 784 bytes.
STREAMING = {"symmetric_affinities": 24 * 15, "work_points": 784}
DRIVER_MODELS = ("partition", "work_points", "landmarks", "components", "reduced", "landmark_embedding")
LEAST_SECONDS = 1.0  # measured; what takes less says nothing about how it grows
ROWS_PER_BLOCK = 20_480
BY_LANDMARKS = ["--set=embedding.solver=lll"]
SIZES, WORKERS = (10**8, 10**9), (1, 4, 16, 64, 256)


@dataclass
class Measured:
    """A run on a cluster: points, workers, the tasks of every stage, and the seconds of every stage as a whole."""

    n_points: int
    workers: int
    tasks: dict[str, dict[str, list[Task]]]  # stage -> step -> tasks
    seconds: dict[str, float]

    def busy(self, stage: str) -> float:
        """Return the seconds of all tasks of a stage."""
        return sum(task.seconds for members in self.tasks.get(stage, {}).values() for task in members)

    def span(self, stage: str) -> float:
        """Return the seconds in which tasks of a stage were at work."""
        steps = self.tasks.get(stage, {}).values()
        return sum(max(task.end for task in members) - min(task.begin for task in members) for members in steps)

    def alone(self, stage: str) -> float:
        """Return the seconds in which the driver was on its own."""
        return max(0.0, self.seconds[stage] - self.span(stage))


@dataclass
class Stage:
    """How a stage scales: seconds of tasks and of the driver at `n_points`, and how they grow."""

    name: str
    n_points: int
    busy: float
    busy_power: float
    alone: float
    alone_rising: float
    pass_seconds: float
    run: Run
    shapes: list[list[float]]  # of each step, the seconds of its blocks relative to the mean of the stage
    block_rows: int  # of the runs that are predicted

    def of_driver(self, n_points: int) -> float:
        """Return the seconds that the driver is on its own, whatever the number of workers."""
        return self.alone * (1 + (n_points / self.n_points - 1) * self.alone_rising)

    def gigabytes(self, n_points: int) -> float:
        """Return the projected memory of a process with one task of the stage."""
        dimensions = dataclasses.replace(self.run.dimensions, n_points=n_points, block_rows=self.block_rows)
        memory = STAGES[self.name].memory(Sizes(dimensions, self.run.params))
        return memory.with_cache(0, in_memory=False).total() / 1e9

    @property
    def on_driver(self) -> bool:
        """Whether the driver computes most of the stage, or a model that the tasks use."""
        return self.name in DRIVER_MODELS or not self.shapes

    def predicted(self, n_points: int, workers: int, blocks: int | None = None) -> tuple[float, str]:
        """Return the seconds of the stage, and what most of them go to."""
        growth, alone = n_points / self.n_points, self.of_driver(n_points)
        blocks = blocks or -(-n_points // self.block_rows)
        if not self.shapes:
            return alone, "driver"
        busy = self.busy * growth**self.busy_power
        runs = workers
        if self.name in STREAMING:
            runs = max(workers, math.ceil(n_points * STREAMING[self.name] / WORKER_BYTES))
        passes = self.pass_seconds * growth * (runs - 1)
        mean = (busy + passes) / blocks / len(self.shapes)
        tasks = sum(makespan(mean, shape, blocks, workers) for shape in self.shapes)
        reasons = {"driver": alone, "passes over everything": tasks * passes / (busy + passes), "dispatch": 0.0}
        reasons["tasks"] = tasks - reasons["passes over everything"]
        dispatch = SECONDS_PER_DISPATCH * blocks * len(self.shapes) - busy / workers
        reasons["dispatch"] = max(0.0, dispatch)
        return alone + tasks, max(reasons, key=lambda reason: reasons[reason])


def makespan(mean: float, shape: list[float], blocks: int, workers: int) -> float:
    """Return when the last of the tasks ends, each given in turn to the worker that is free first."""
    free = [0.0] * min(workers, blocks)
    for block in range(blocks):
        begin = max(heapq.heappop(free), block * SECONDS_PER_DISPATCH)
        heapq.heappush(free, begin + mean * shape[block % len(shape)])
    return max(free)


def measured_run(folder: Path, n_points: int, workers: int) -> Measured:
    """Run, or read what an earlier call has left."""
    points, run = million_digits(folder, n_points), folder / f"simulate-{n_points}-{workers}"
    ledger, parts = run.with_suffix(".ledger"), run.with_suffix(".ledger.parts")
    if not ledger.exists() or not (run / "plan.json").exists():
        fresh(run), fresh(ledger), fresh(parts)
        with running_cluster(workers, {"SCALEMANI_LEDGER": str(ledger)}) as cluster:
            size = ["--block-rows", "4096", "--workers", "1"]
            succeeded(command(points, run, "--scheduler", cluster.address, *size, *BY_LANDMARKS))
    tasks: dict[str, dict[str, list[Task]]] = {}
    for step, members in spans(read_ledger(ledger) + read_ledger(parts)).items():
        tasks.setdefault(members[0].stage, {})[step] = members
    seconds = {stage: record["seconds"] for stage, record in open_run(run).records().items()}
    return Measured(n_points, workers, tasks, seconds)


def power(small: float, large: float, growth: float) -> float:
    """Return the power with which seconds grow: one at least, since every point has to be looked at."""
    if min(small, large) < LEAST_SECONDS:
        return 1.0
    return min(max(math.log(large / small) / math.log(growth), 1.0), 2.0)


def rising(small: Measured, large: Measured, stage: str) -> float:
    """Return the share of the driver's seconds that grows with the points; the rest is there for any number of them."""
    more = (large.alone(stage) - small.alone(stage)) / (large.n_points - small.n_points)
    return min(max(more * large.n_points / max(large.alone(stage), 1e-9), 0.0), 1.0)


def scaling(small: Measured, large: Measured, double: Measured, run: Run, block_rows: int) -> list[Stage]:
    """Return how every stage scales, and with how many rows a block runs are predicted."""
    growth, stages = large.n_points / small.n_points, []
    for stage in large.seconds:
        steps, busy = large.tasks.get(stage, {}), large.busy(stage)
        mean = busy / max(1, sum(map(len, steps.values())))
        shapes = [
            [task.seconds / mean for task in sorted(members, key=lambda t: t.block)] for members in steps.values()
        ]
        if stage in STREAMING:
            shapes = [[1.0]] if steps else []
        stages.append(
            Stage(
                stage,
                large.n_points,
                busy,
                1.0 if stage in STREAMING else power(small.busy(stage), large.busy(stage), growth),
                large.alone(stage),
                rising(small, large, stage),
                max(0.0, double.busy(stage) - large.busy(stage)) if stage in STREAMING else 0.0,
                run,
                shapes,
                block_rows,
            )
        )
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, nargs=2, default=[200_000, 400_000])
    parser.add_argument("--beside", type=Path, help="a finished run of other size, on two threads")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="points of the runs that are predicted")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--block-rows", type=int, default=ROWS_PER_BLOCK, help="of the runs that are predicted")
    arguments = parser.parse_args()
    small, large = (measured_run(arguments.folder, n_points, 1) for n_points in arguments.points)
    double = measured_run(arguments.folder, arguments.points[1], 2)
    stages = scaling(
        small, large, double, open_run(arguments.folder / f"simulate-{large.n_points}-1"), arguments.block_rows
    )
    show_checks(stages, large, double, arguments.beside)
    for n_points in arguments.sizes:
        show_prediction(stages, n_points, arguments.workers)


def show_checks(stages: list[Stage], large: Measured, double: Measured, beside: Path | None) -> None:
    """Show predictions beside what was measured."""
    rows, blocks = [], -(-large.n_points // 4096)
    other = None if beside is None else open_run(beside)
    records = {} if other is None else other.records()
    for stage in stages:
        row: dict[str, object] = {"stage": stage.name}
        for run in (large, double):
            row[f"{run.workers} measured"] = run.seconds[stage.name]
            row[f"{run.workers} predicted"] = stage.predicted(large.n_points, run.workers, blocks)[0]
        if other is not None and stage.name in records:
            n_points = other.dimensions.n_points
            row[f"{n_points}: measured"] = records[stage.name]["seconds"]
            row[f"{n_points}: 2 predicted"] = stage.predicted(n_points, 2, other.dimensions.n_blocks)[0]
        rows.append(row)
    total = {name: sum(float(str(row[name])) for row in rows) for name in rows[0] if name != "stage"}
    show([*rows, {"stage": "whole", **total}])


def show_prediction(stages: list[Stage], n_points: int, workers: Sequence[int]) -> None:
    """Show the hours of every stage on several numbers of workers, and the bottleneck: in time, and in memory."""
    rows: list[dict[str, object]] = []
    for stage in stages:
        row: dict[str, object] = {"stage": stage.name, "tasks grow as N^": round(stage.busy_power, 2)}
        row["of the driver grows"] = round(stage.alone_rising, 2)
        row["driver alone, h"] = stage.of_driver(n_points) / 3600
        row |= {f"{count} workers, h": stage.predicted(n_points, count)[0] / 3600 for count in workers}
        row |= {"limited by": stage.predicted(n_points, workers[-1])[1], "GB a process": stage.gigabytes(n_points)}
        rows.append(row)
    whole = {name: sum(float(str(row[name])) for row in rows) for name in rows[0] if name.endswith(", h")}
    print(f"{n_points} points")
    show([*rows, {"stage": "whole", **whole}])
    show([summary(stages, n_points, count) for count in workers])


def summary(stages: list[Stage], n_points: int, workers: int) -> dict[str, object]:
    """Return the hours on so many workers, the driver's share of them, the stages that limit, and the memory."""
    took = {stage.name: stage.predicted(n_points, workers) for stage in stages}
    alone, seconds = sum(stage.of_driver(n_points) for stage in stages), sum(spent for spent, _ in took.values())
    slowest = max(took, key=lambda name: took[name][0])
    driver = max((stage for stage in stages if stage.on_driver), key=lambda stage: stage.gigabytes(n_points))
    largest = max(stages, key=lambda stage: stage.gigabytes(n_points))
    return {
        "points": n_points,
        "workers": workers,
        "hours": seconds / 3600,
        "driver alone, h": alone / 3600,
        "driver's share": alone / seconds,
        "slowest stage": f"{slowest}, {took[slowest][0] / seconds:.0%} ({took[slowest][1]})",
        "GB of the driver": f"{driver.gigabytes(n_points):.1f} ({driver.name})",
        "GB of a worker": f"{largest.gigabytes(n_points):.1f} ({largest.name})",
    }


if __name__ == "__main__":
    main()
