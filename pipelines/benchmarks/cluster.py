"""A run on clusters: the same results everywhere, what scheduling costs, and what further workers bring.

python pipelines/benchmarks/cluster.py same WORK_FOLDER --points 50000
python pipelines/benchmarks/cluster.py overhead WORK_FOLDER --points 1020000 --workers 2 [--solver lll]
python pipelines/benchmarks/cluster.py speed WORK_FOLDER --points 200000
python pipelines/benchmarks/cluster.py scaling WORK_FOLDER --points 1020000 [--solver lll]

Runs of `overhead` and `scaling` are of --solver.
"""

import argparse
import contextlib
import csv
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from commanding import command, difference, fresh, running_cluster, succeeded
from digits import million_digits
from ledger import Task, read_ledger, spans
from measuring import records, show

from scalemani.runs.opened import Run, open_run
from scalemani.stages.arrays.graph import StoredNeighbors

BIT_EQUAL = {
    "refine": {
        "graph": ("neighbors", ("indices", "distances")),
        "affinities": ("affinities", ("values", "beta")),
        "landmarks": ("landmarks", ("rows", "points")),
        "embedding": ("embedding", ("embedding",)),
    },
    "lll": {"Z": ("landmark_weights", ("indices", "values"))},
}
MOST_APART = {"reduced": 1e-12, "by landmarks": 1e-6}  # sums over the points depend on blocks in their last bits
EVERY_STAGE = "--set=embedding.solver=lll+refine"  # Z and the reduced matrices beside the coarse graphs
MOST_TASKS = 20_000
# Nearly all the time of their tasks is kernels on rows at hand. The others copy and project the points (partition,
# work_points), or read the whole graph once for each worker (symmetric_affinities).
COMPUTE_BOUND = ("neighbors", "affinities", "landmark_weights", "reduced")
WARMING_POINTS, REPEATS = 20_000, 2
WHOLE = "whole command"
SCALING = Path(__file__).with_name("worker_scaling.csv")


def same(points: Path, folder: Path, workers: list[int], solver: str) -> None:
    """Compare threads, processes and clusters of several sizes, with several sizes of blocks, against threads.

    Each runs the route by refinement, and the one by locally linear landmarks in a folder of its own.
    """
    references: dict[str, Run] = {}
    rows = []
    for scheduler, count, block_rows in layouts(workers):
        row: dict[str, Any] = {"on": scheduler, "workers": count, "rows a block": block_rows}
        with contextlib.ExitStack() as stack:
            where = ["--scheduler", scheduler, "--workers", str(count)]
            if scheduler == "cluster":
                where = ["--scheduler", stack.enter_context(running_cluster(count)).address]
            for solver, stored in BIT_EQUAL.items():
                run = fresh(folder / f"same-{solver}-{scheduler}{count}-{block_rows}")
                asked = [*where, "--block-rows", str(block_rows), f"--set=embedding.solver={solver}"]
                row[f"seconds by {solver}"] = succeeded(command(points, run, *asked))
                found = open_run(run)
                first = references.setdefault(solver, found)
                row |= {name: same_bits(first, found, *arrays) for name, arrays in stored.items()}
        row |= {"reduced": reduced_difference(first, found), "by landmarks": difference(first, found)}
        rows.append(row)
    show(rows)
    bits = all(row[name] for row in rows for stored in BIT_EQUAL.values() for name in stored)
    if not bits or any(row[name] > most for row in rows for name, most in MOST_APART.items()):
        raise SystemExit("results differ")


def layouts(workers: list[int]) -> list[tuple[str, int, int]]:
    """Return (where, workers, rows a block) of every run; the first is the reference."""
    clusters = [("cluster", count, block_rows) for count in workers for block_rows in (2048, 5120)]
    return [("threads", 2, 4096), ("threads", 1, 2048), ("processes", 2, 8192), *clusters]


def same_bits(one: Run, other: Run, stage: str, names: tuple[str, ...]) -> bool:
    """Return whether arrays of a stage are equal to the last bit."""
    groups = [run.group(stage) for run in (one, other)]
    step = f"{StoredNeighbors(groups[0]).final_step}/" if stage == StoredNeighbors.STAGE else ""
    return all(np.array_equal(groups[0].read(step + name), groups[1].read(step + name)) for name in names)


def reduced_difference(one: Run, other: Run) -> float:
    """Return the largest difference of the reduced matrices, relative to their largest entry."""
    worst = 0.0
    for name in ("laplacian_triangle_values", "mass_triangle_values"):
        first, second = (run.group("reduced").read(name) for run in (one, other))
        worst = max(worst, float(np.abs(first - second).max() / np.abs(first).max()))
    return worst


def overhead(points: Path, folder: Path, workers: list[int], solver: str) -> None:
    """Show how much of the time of the workers goes between tasks while blocks are waiting, and how many tasks.

    Then the seconds of every stage in which the driver is alone: no task is at work. The kernels are compiled before.
    """
    whole_run(million_digits(folder, WARMING_POINTS), folder, workers[0], solver)
    run, ledger, rows = fresh(folder / "overhead"), fresh(folder / "overhead.ledger"), []
    with running_cluster(workers[0], {"SCALEMANI_LEDGER": str(ledger)}) as cluster:
        seconds = succeeded(command(points, run, "--scheduler", cluster.address, f"--set=embedding.solver={solver}"))
    tasks, lost_in_all = read_ledger(ledger), 0.0
    for step, members in spans(tasks).items():
        lost = idle_seconds(members)
        lost_in_all += lost
        busy = sum(task.seconds for task in members)
        rows.append({"step": step, "tasks": len(members), "seconds at work": busy, "seconds between": lost})
    share = lost_in_all / workers[0] / seconds
    rows.append({"step": "whole", "tasks": len(tasks), "seconds between": lost_in_all, "share of wall": share})
    show(rows)
    show(driver_rows(tasks + read_ledger(ledger.with_name(ledger.name + ".parts")), run, seconds))
    if share > 0.05 or len(tasks) > MOST_TASKS:
        raise SystemExit("scheduling costs too much")


def driver_rows(tasks: list[Task], run: Path, seconds: float) -> list[dict[str, Any]]:
    """Return the seconds of each stage, and of the whole command, in which no task was at work."""
    rows = []
    for stage, record in records(run)["stages"].items():
        alone = record["seconds"] - seconds_at_work([task for task in tasks if task.stage == stage])
        rows.append({"stage": stage, "seconds": record["seconds"], "driver alone": max(0.0, alone)})
    stages, alone = sum(row["seconds"] for row in rows), sum(row["driver alone"] for row in rows)
    rows.append({"stage": "start, survey and end", "seconds": seconds - stages, "driver alone": seconds - stages})
    rows.append({"stage": "whole", "seconds": seconds, "driver alone": alone + seconds - stages})
    return [{**row, "share of wall": row["driver alone"] / seconds} for row in rows]


def seconds_at_work(tasks: list[Task]) -> float:
    """Return the seconds in which at least one of the tasks was at work."""
    seconds = end = 0.0
    for task in sorted(tasks, key=lambda task: task.begin):
        seconds += max(0.0, task.end - max(task.begin, end))
        end = max(end, task.end)
    return seconds


def idle_seconds(tasks: list[Task]) -> float:
    """Return the seconds between one task and the next of the same process, within a step."""
    lost = 0.0
    for process in {task.process for task in tasks}:
        own = sorted((task for task in tasks if task.process == process), key=lambda task: task.begin)
        lost += sum(max(0.0, after.begin - before.end) for before, after in itertools.pairwise(own))
    return lost


def speed(points: Path, folder: Path, workers: list[int], solver: str) -> None:
    """Show the seconds of every stage on one worker process of one thread and on two, and their ratio.

    Beside them, what the machine has to give: how much more is done by two runs of one worker each, side by side, that
    know nothing of each other, than by one.
    """
    warm = million_digits(folder, WARMING_POINTS)
    timed_runs(warm, [(fresh(folder / "warm"), 1)])  # compiles kernels
    few, many = workers[0], workers[-1]
    for _ in range(REPEATS):
        one, *_ = timed_runs(points, [(folder / f"speed-{few}", few)])
        more, *_ = timed_runs(points, [(folder / f"speed-{many}", many)])
        both = timed_runs(points, [(folder / f"side-{number}", few) for number in range(many // few)])
        rows = []
        for stage in [*one, "compute-bound"]:
            alone, beside = seconds_of(one, stage), sum(seconds_of(found, stage) for found in both) / len(both)
            rows.append({"stage": stage, f"{few} workers": alone, f"{many} workers": seconds_of(more, stage)})
            rows[-1] |= {"times faster": alone / seconds_of(more, stage)}
            rows[-1] |= {"runs side by side": len(both) * alone / beside}
        show(rows)


def timed_runs(points: Path, runs: list[tuple[Path, int]]) -> list[dict[str, float]]:
    """Return the seconds of every stage of runs that start at one moment, each on a cluster of so many workers."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(runs)) as pool:
        ledgers, commands = [fresh(run.with_suffix(".ledger")) for run, _ in runs], []
        for ledger in ledgers:
            fresh(ledger.with_name(ledger.name + ".parts"))
        for (run, count), ledger in zip(runs, ledgers, strict=True):
            cluster = stack.enter_context(running_cluster(count, {"SCALEMANI_LEDGER": str(ledger)}))
            size = ["--workers", "1", "--block-rows", "4096", "--set=neighbors.method=partition", EVERY_STAGE]
            commands.append(command(points, fresh(run), "--scheduler", cluster.address, *size))
        list(pool.map(succeeded, commands))
    return [stage_seconds(ledger) for ledger in ledgers]


def stage_seconds(ledger: Path) -> dict[str, float]:
    """Return the seconds in which tasks of each stage were at work."""
    found: dict[str, float] = {}
    for step, members in spans(read_ledger(ledger)).items():
        stage = step.partition(" ")[0]
        span = max(task.end for task in members) - min(task.begin for task in members)
        found[stage] = found.get(stage, 0.0) + span
    return found


def seconds_of(found: dict[str, float], stage: str) -> float:
    """Return the seconds of a stage, or of all that are compute-bound."""
    return sum(found[name] for name in (COMPUTE_BOUND if stage == "compute-bound" else [stage]))


def scaling(points: Path, folder: Path, workers: list[int], solver: str) -> None:
    """Show how much of further workers a whole run makes use of.

    The seconds of every stage are written beside this file, those of other solvers than refinement into the folder.

    Strong scaling takes all points on each number of worker processes of one thread; weak scaling half of the points on
    one worker, all of them on two. What the driver does itself it does on as many threads as there are workers.
    """
    n_points = len(np.load(points, mmap_mode="r"))
    half = million_digits(folder, n_points // 2)
    with_kernels_compiled = million_digits(folder, WARMING_POINTS)
    whole_run(with_kernels_compiled, folder, 1, solver)
    rows = []
    for kind, file, count in [
        *(("strong", points, count) for count in workers),
        ("weak", half, 1),
        ("weak", points, 2),
    ]:
        n_rows = len(np.load(file, mmap_mode="r"))
        found = whole_run(file, folder, count, solver)
        rows += [(kind, n_rows, count, stage, round(seconds, 2)) for stage, seconds in found.items()]
    written_to = SCALING if solver == "refine" else folder / f"{SCALING.stem}_{solver}.csv"
    with written_to.open("w", newline="") as written:
        csv.writer(written).writerows([("scaling", "points", "workers", "stage", "seconds"), *rows])
    took = {(kind, count): seconds for kind, _, count, stage, seconds in rows if stage == WHOLE}
    strong = [{"workers": count, "strong: seconds": took["strong", count]} for count in workers]
    for row in strong:
        row["strong: efficiency"] = (
            took["strong", workers[0]] * workers[0] / took["strong", row["workers"]] / row["workers"]
        )
    show(strong)
    show(
        [
            {
                "weak: seconds on one, on two": f"{took['weak', 1]}, {took['weak', 2]}",
                "efficiency": took["weak", 1] / took["weak", 2],
            }
        ]
    )


def whole_run(points: Path, folder: Path, count: int, solver: str) -> dict[str, float]:
    """Return the seconds of a run on so many workers, as a whole and of each stage."""
    run = fresh(folder / f"scaling-{count}")
    with running_cluster(count) as cluster:
        size = ["--workers", str(count), f"--set=embedding.solver={solver}"]
        seconds = succeeded(command(points, run, "--scheduler", cluster.address, *size))
    stages = {stage: float(record["seconds"]) for stage, record in records(run)["stages"].items()}
    return {WHOLE: seconds, **stages}


COMMANDS: dict[str, Callable[[Path, Path, list[int], str], None]] = {
    "same": same,
    "overhead": overhead,
    "speed": speed,
    "scaling": scaling,
}
WORKERS = {"same": [1, 2, 4], "overhead": [2], "speed": [1, 2], "scaling": [1, 2, 4]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--workers", type=int, nargs="+")
    parser.add_argument("--solver", default="refine", choices=["refine", "lll"])
    arguments = parser.parse_args()
    points = million_digits(arguments.folder, arguments.points)
    COMMANDS[arguments.what](points, arguments.folder, arguments.workers or WORKERS[arguments.what], arguments.solver)


if __name__ == "__main__":
    main()
