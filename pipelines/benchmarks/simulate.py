"""How long a billion points and more would take on a cluster, what they would cost, and what limits: by ledgers.

    python pipelines/benchmarks/simulate.py ledger-1000000.json ledger-10000000.json [--measured ledger-100000000.json]

Ledgers are those of `hundred_million.py`: runs of two threads, of whose stages they have seconds, processor seconds and
bytes. What a stage takes a point grows by as much each decade as from the fewest points at which it was measured to the
most; where it falls, a part of it is the same at any size. What was measured once, or took less than LEAST_SECONDS,
grows in proportion. With --measured the run of another ledger is predicted, on two threads, and compared.

A stage takes on W threads what the driver does alone, what tasks do divided by W, and what no number of workers makes
less: a table of all points that each process reads (TABLES), and passes over everything that each block range makes
(`n_passes`). Of two threads that took w seconds and p processor seconds, the driver was alone for at most 2 w - p, of
which the least a point of all ledgers counts where the driver computes (DRIVER); anything else is tasks, waiting for
the disk among it. The cells of `partition` are trained on a sample, by as many visits as LLOYD_STEPS times its rows, a
share of all visits, on the driver's threads. Reading a table or a pass takes as much a byte as the pass over the points
before the first stage (`reading`). Dispatch takes SECONDS_PER_DISPATCH a task, while others run.

Bytes that are read are those of the inputs of each stage once, of tables and of passes. Memory is what the plan
projects, with nothing cached and arrays of a row a point in files. The store is as fast for each machine as the disk
was. More than 2^31 - 1 points are refused by the code (32-bit rows); the model goes on as if they were not.

The price is of a list as of 17 June 2026: m7g.large, 2 processors and 8 GiB, on demand with Linux in us-east-1
(factualminds.com/blog/amazon-ec2-on-demand-pricing-instance-families-2026); its processor is not that of the ledgers.
"""

import argparse
import functools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from hundred_million import GENERATING, METHOD, READING, SETTINGS
from measuring import show

from scalemani.config.params import Parameters
from scalemani.config.routes import ROUTES
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.stages.embedding.by_blocks import RUN_ROWS
from scalemani.stages.table import STAGES

N_FEATURES, DTYPE = 64, "int8"
THREADS = 2  # of the runs of ledgers, and of a machine
MACHINE_DOLLARS = 0.0816  # an hour
MACHINE_BYTES = 8e9
SECONDS_PER_DISPATCH = 0.002  # of driver and scheduler, for one task: processor time with empty tasks
BLOCK_ROWS = 65_536
LAYERS = 2  # of blocks and of parts, in most stages
LEAST_SECONDS = 5.0  # of a stage in a ledger: what takes less says nothing about how it grows
DRIVER = ("partition", "work_points", "landmarks", "components", "reduced", "landmark_embedding", "clustering")
CONSTANT = ("landmarks", "reduced", "landmark_embedding", "clustering")  # whose driver looks at landmarks alone
WITHOUT_TASKS = ("components", "landmarks", "landmark_embedding")
SEQUENTIAL = ("components",)  # which the driver computes, block after block
INPUTS = {stage.name: stage.inputs for stage in ROUTES[METHOD]}
# The stages whose arrays a table of all points is made of in each process.
BY_PASSES = ("symmetric_affinities", "embedding")  # which grow by the passes that block ranges make
LLOYD_STEPS = 10  # of the cells, over the sample that they are trained on, on the driver's threads
TABLES = {"neighbors": "points", "reduced": "landmark_weights", "embedding": "landmark_weights"}
EDGE_BYTES = 24 * 15  # of a row in a block range of W, for edges that end there


@dataclass
class Cluster:
    """Workers of one thread, threads of the driver, and stages whose driver's part is taken to be done by tasks."""

    workers: int
    driver_threads: int = THREADS
    by_tasks: tuple[str, ...] = ()


@dataclass
class Stage:
    """What a stage takes in a ledger: seconds, processor seconds, and bytes that it adds to the store."""

    seconds: float
    processor_seconds: float
    written: int

    def alone(self, name: str) -> float:
        """Return the seconds for which the driver was alone, at most."""
        if name in SEQUENTIAL:
            return self.seconds
        return min(max(THREADS * self.seconds - self.processor_seconds, 0.0), self.seconds) if name in DRIVER else 0.0


@dataclass
class Ledger:
    """The stages of a run that are finished, and its points."""

    n_points: int
    stages: dict[str, Stage]
    unfinished: list[str]

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """Read a ledger, whose name ends in its number of points."""
        found = re.search(r"(\d+)$", path.stem)
        if found is None:
            raise SystemExit(f"{path}: the name of a ledger ends in its number of points, as ledger-1000000.json")
        entries, stages, before = json.loads(path.read_text())["stages"], dict[str, Stage](), 0
        for name, entry in entries.items():
            if name != GENERATING and entry["finished"]:
                written = 0 if name == READING else max(0, entry["most_stored_bytes"] - before)
                stages[name] = Stage(entry["seconds"], entry["processor_seconds"], written)
                before = max(before, 0 if name == READING else entry["stored_bytes"])
        return cls(int(found[1]), stages, [name for name, entry in entries.items() if not entry["finished"]])


@dataclass
class Fitted:
    """A stage at the most points at which it was measured, and at the fewest."""

    name: str
    n_points: int
    stage: Stage
    fewest: int
    smallest: Stage
    alone_a_point: float  # seconds of the driver, at most

    @property
    def growth(self) -> float:
        """How much more a point takes each decade; below 1 where most of it does not grow."""
        if self.fewest == self.n_points or self.smallest.seconds < LEAST_SECONDS or self.name in BY_PASSES:
            return 1.0
        ratio = self.stage.seconds / self.n_points / (self.smallest.seconds / self.fewest)
        return float(ratio ** (1 / math.log10(self.n_points / self.fewest)))

    def factor(self, n_points: int) -> float:
        """Return how many times as long the stage takes; a part that does not grow is the same at any size."""
        ratio = n_points / self.n_points
        if self.growth >= 1.0:
            return float(ratio * self.growth ** math.log10(ratio))
        slope = (self.stage.seconds - self.smallest.seconds) / (self.n_points - self.fewest)
        return 1.0 + max(0.0, slope) * (n_points - self.n_points) / self.stage.seconds

    def alone(self, n_points: int, threads: int) -> float:
        """Return the seconds for which the driver is alone at most, whatever the number of workers."""
        if self.name == "partition":
            trained = LLOYD_STEPS * sizes_of(n_points).partition_sample
            return self.stage.processor_seconds * self.factor(n_points) * trained / (trained + n_points) / threads
        if self.name in CONSTANT:
            return min(self.stage.alone(self.name), self.smallest.alone(self.name))
        return self.alone_a_point * n_points

    def busy(self, n_points: int) -> float:
        """Return the seconds of threads that tasks take."""
        taken = self.stage.seconds - self.alone(self.n_points, THREADS)
        return THREADS * max(0.0, taken) * self.factor(n_points)


class Model(dict[str, Fitted]):
    """The stages of some ledgers, each as at most points."""

    @classmethod
    def of(cls, ledgers: list[Ledger]) -> "Model":
        """Take each stage from the ledgers that have it."""
        model = cls()
        for name in dict.fromkeys(name for ledger in ledgers for name in ledger.stages):
            there = [(one.n_points, one.stages[name]) for one in ledgers if name in one.stages]
            alone = min(stage.alone(name) / n_points for n_points, stage in there)
            model[name] = Fitted(name, *there[-1], *there[0], alone)
        return model

    def bytes_written(self, name: str, n_points: int) -> float:
        """Return the bytes that a stage adds to the store; of points those of their rows."""
        if name == "points":
            return float(n_points * N_FEATURES)
        return self[name].stage.written * n_points / self[name].n_points if name in self else 0.0

    def seconds_to_read(self, n_bytes: float) -> float:
        """Return the seconds of a thread that reads and decodes so many bytes."""
        reading = self[READING]
        seconds, n_points = reading.stage.processor_seconds, reading.n_points
        if reading.fewest < n_points:  # the start of the program does not grow
            seconds, n_points = seconds - reading.smallest.processor_seconds, n_points - reading.fewest
        return n_bytes * seconds / (n_points * N_FEATURES)


@dataclass
class Prediction:
    """A stage on a cluster: seconds of the driver and of all else by what they go to, and bytes."""

    name: str
    alone: float
    others: dict[str, float]
    read: float
    written: float

    @property
    def seconds(self) -> float:
        """The seconds of the stage."""
        return self.alone + sum(self.others.values())

    @property
    def reason(self) -> str:
        """What most of them go to."""
        reasons = {"driver": self.alone, **self.others}
        return max(reasons, key=lambda reason: reasons[reason])


def predicted(model: Model, name: str, n_points: int, cluster: Cluster) -> Prediction:
    """Return what a stage takes on a cluster."""
    stage, workers, processes = model[name], cluster.workers, max(1, cluster.workers // THREADS)
    alone, busy = stage.alone(n_points, cluster.driver_threads), stage.busy(n_points)
    if name in cluster.by_tasks:
        alone, busy = 0.0, busy + alone
    others = {"tasks": busy / workers}
    inputs = sum(model.bytes_written(one, n_points) for one in INPUTS.get(name, ()))
    read = inputs or float(n_points * N_FEATURES)
    if name in TABLES:
        table = model.bytes_written(TABLES[name], n_points)
        others["a table in each process"] = model.seconds_to_read(table) * (1 - 1 / processes)
        read += (processes - 1) * table
    of_pass = passed_over(model, name, n_points)
    extra = n_passes(name, n_points, workers) - n_passes(name, stage.n_points, THREADS)
    if extra > 0:  # the others are among what was measured
        others["passes over everything"] = math.ceil(extra / workers) * model.seconds_to_read(of_pass)
        read += extra * of_pass
    n_tasks = 0 if name in WITHOUT_TASKS else LAYERS * -(-n_points // BLOCK_ROWS)
    others["dispatch"] = max(0.0, n_tasks * SECONDS_PER_DISPATCH - sum(others.values()))
    return Prediction(name, alone, others, read, model.bytes_written(name, n_points))


def n_passes(name: str, n_points: int, workers: int) -> int:
    """Return how many block ranges of a stage read all of something."""
    if name == "symmetric_affinities":
        return max(workers, math.ceil(n_points * EDGE_BYTES / (MACHINE_BYTES / THREADS)))
    return max(workers, -(-n_points // RUN_ROWS)) if name == "embedding" else 0


def passed_over(model: Model, name: str, n_points: int) -> float:
    """Return the bytes that each of them reads: all lists and affinities, or the order of the points."""
    if name == "symmetric_affinities":
        return model.bytes_written("neighbors", n_points) + model.bytes_written("affinities", n_points)
    return 8.0 * n_points


@functools.cache
def sizes_of(n_points: int) -> Sizes:
    """Return the sizes of a run as those of ledgers are."""
    values = dict(setting.removeprefix("--set=").split("=") for setting in SETTINGS)
    params = Parameters().with_values({name: number_or_name(value) for name, value in values.items()})
    return Sizes(Dimensions(n_points, N_FEATURES, DTYPE, BLOCK_ROWS), params.resolved(METHOD, n_points))


def number_or_name(value: str) -> object:
    """Return a setting as its parameter has it."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def gigabytes(name: str, n_points: int) -> float:
    """Return the projected memory of a process with one task of a stage."""
    return STAGES[name].memory(sizes_of(n_points)).with_cache(0, in_memory=False).total() / 1e9


def show_calibration(model: Model) -> None:
    """Show what each stage took a point, at the most points at which it was measured."""
    rows = []
    for name, fitted in model.items():
        stage, n_points = fitted.stage, fitted.n_points
        row: dict[str, object] = {"stage": name, "points": n_points, "us a point": 1e6 * stage.seconds / n_points}
        row["processor, us a point"] = 1e6 * stage.processor_seconds / n_points
        row["driver alone at most, us a point"] = 1e6 * fitted.alone(n_points, THREADS) / n_points
        rows.append({**row, "bytes a point": stage.written / n_points, "growth a decade": fitted.growth})
    print(f"as measured, on {THREADS} threads")
    show(rows)


def show_check(model: Model, measured: Ledger) -> None:
    """Show predictions next to what a run of two threads took."""
    names, cluster = [name for name in measured.stages if name in model], Cluster(THREADS)
    took = {name: measured.stages[name].seconds for name in names}
    said = {name: predicted(model, name, measured.n_points, cluster).seconds for name in names}
    print(f"{measured.n_points} points, predicted and measured; not finished: {measured.unfinished or 'none'}")
    pairs = [(name, said[name], took[name]) for name in names] + [("sum", sum(said.values()), sum(took.values()))]
    rows = [{"stage": name, "predicted, s": one, "measured, s": other} for name, one, other in pairs]
    show([{**row, "ratio": one / other if other else "-"} for row, (_, one, other) in zip(rows, pairs, strict=True)])


def show_cluster(model: Model, n_points: int, clusters: list[Cluster], dollars: float) -> None:
    """Show each stage on each cluster, and their sums."""
    names = [name for name in model if name in INPUTS]
    found = [[predicted(model, name, n_points, cluster) for name in (READING, *names)] for cluster in clusters]
    print(f"{n_points} points")
    rows = []
    for stages in zip(*found, strict=True):
        row: dict[str, object] = {"stage": stages[0].name, "driver alone, h": stages[0].alone / 3600}
        row |= {f"{one.workers}, h": stage.seconds / 3600 for one, stage in zip(clusters, stages, strict=True)}
        rows.append({**row, f"limited by, on {clusters[-1].workers}": stages[-1].reason})
    show(rows)
    show([totals(stages, n_points, one, dollars) for one, stages in zip(clusters, found, strict=True)])


def totals(stages: list[Prediction], n_points: int, cluster: Cluster, dollars: float) -> dict[str, object]:
    """Return the sums of all stages on a cluster, and what limits."""
    seconds, alone = sum(stage.seconds for stage in stages), sum(stage.alone for stage in stages)
    slowest = max(stages, key=lambda stage: stage.seconds)
    machines = -(-cluster.workers // THREADS) + -(-cluster.driver_threads // THREADS)
    memory = {stage.name: gigabytes(stage.name, n_points) for stage in stages if stage.name != READING}
    driver = max((name for name in memory if name in DRIVER), key=memory.__getitem__)
    return {
        "workers": cluster.workers,
        "hours": seconds / 3600,
        "read, TB": sum(stage.read for stage in stages) / 1e12,
        "written, TB": sum(stage.written for stage in stages) / 1e12,
        "dollars": seconds / 3600 * dollars * machines,
        "limits": f"{slowest.name}, {slowest.seconds / seconds:.0%} ({slowest.reason})",
        "driver's share": alone / seconds,
        "driver, GB": f"{memory[driver]:.1f} ({driver})",
        "a worker, GB": f"{max(memory.values()):.1f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ledgers", type=Path, nargs="+", help="of runs that the model is fitted to")
    parser.add_argument("--measured", type=Path, help="of a run that is predicted and compared")
    parser.add_argument("--points", type=int, nargs="*", default=[10**8, 10**9, 10**10])
    parser.add_argument("--workers", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--driver-threads", type=int, default=THREADS)
    parser.add_argument(
        "--by-tasks", nargs="*", default=[], metavar="STAGE", help="what if tasks did its driver's part"
    )
    parser.add_argument("--dollars", type=float, default=MACHINE_DOLLARS, help="an hour of a machine of two threads")
    arguments = parser.parse_args()
    model = Model.of(sorted(map(Ledger.read, arguments.ledgers), key=lambda ledger: ledger.n_points))
    show_calibration(model)
    if arguments.measured is not None:
        show_check(model, Ledger.read(arguments.measured))
    clusters = [Cluster(count, arguments.driver_threads, tuple(arguments.by_tasks)) for count in arguments.workers]
    for n_points in arguments.points:
        show_cluster(model, n_points, clusters, arguments.dollars)


if __name__ == "__main__":
    main()
