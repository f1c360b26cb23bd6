"""What a run outlives: lost workers and schedulers, too little memory, a failing object store, a full disk.

python pipelines/benchmarks/cluster_losses.py kills WORK_FOLDER --points 200000 --seeds 10 [--solver lll]
python pipelines/benchmarks/cluster_losses.py gone WORK_FOLDER --points 20000 [--solver lll]
python pipelines/benchmarks/cluster_losses.py memory WORK_FOLDER --points 60000 [--solver lll]
python pipelines/benchmarks/cluster_losses.py faults WORK_FOLDER --points 20000
python pipelines/benchmarks/cluster_losses.py full WORK_FOLDER --points 20000       (as root: mounts a small disk)
python pipelines/benchmarks/cluster_losses.py twice WORK_FOLDER --points 20000
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
from commanding import (
    Cluster,
    command,
    digests,
    end_tree,
    ended,
    equal_stages,
    fresh,
    object_store,
    recomputed,
    running_cluster,
    succeeded,
    worker_processes,
)
from digits import million_digits
from measuring import show

from scalemani.runs.opened import open_run

KILLS = 10  # at random moments of the time that an undisturbed run takes
WORKERS = 4
UNDISTURBED = 3  # runs without kills, whose median the others are compared with
BLOCKS = ["--block-rows", "2048"]
POINTS, RUN = "s3://benchmark/points.zarr", "s3://benchmark/run"
DIGESTS = """import json; from commanding import digests; from scalemani.runs.opened import open_run
print(json.dumps(digests(open_run(sys.argv[1]))))"""
FOLDER = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
ROOM = 4  # times what a run leaves: its plan asks for that much
WORKER_MEMORY = ("2GB", "500MB", "350MB", "250MB")  # a worker of Dask alone takes 200 MB; its nanny kills it above
SLOWEST = 20  # times as long as undisturbed counts as a hang


def kills(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """Kill a worker of four at ten random moments."""
    size, rows = (
        [*BLOCKS, f"--set=embedding.solver={solver}", "--scheduler", "processes", "--workers", str(WORKERS)],
        [],
    )
    reference = folder / f"undisturbed-{points.stem}-{solver}"
    taken = reference.with_suffix(".seconds")  # left by a call with other seeds
    if not taken.exists():
        undisturbed = [succeeded(command(points, fresh(reference), *size)) for _ in range(UNDISTURBED)]
        taken.write_text(str(statistics.median(undisturbed)))
    whole = float(taken.read_text())
    for seed in seeds:
        run, ledger, draws, count = fresh(folder / "killed"), fresh(folder / "ledger"), random.Random(seed), 0
        environment, started = {**os.environ, "SCALEMANI_LEDGER": str(ledger)}, time.perf_counter()
        errors = (folder / "errors").open("w")
        with errors, subprocess.Popen(command(points, run, *size), env=environment, stderr=errors) as driver:
            moments = iter(sorted(draws.uniform(0, whole) for _ in range(KILLS)))
            while driver.poll() is None and time.perf_counter() - started < SLOWEST * whole:
                until = next(moments, SLOWEST * whole)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    driver.wait(max(0.0, until - (time.perf_counter() - started)))
                    break
                victims = worker_processes(psutil.Process(driver.pid))
                if victims:
                    with contextlib.suppress(psutil.Error):
                        draws.choice(victims).kill()
                        count += 1
            end_tree(driver)
        seconds = time.perf_counter() - started
        row = {"seed": seed, "kills": count, "status": driver.returncode, "seconds": seconds}
        row |= {"times as long": seconds / whole, "computed again": recomputed(ledger)}
        row |= {"equal stages": equal_stages(reference, run) if driver.returncode == 0 else "-"}
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def gone(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """End half of the workers, all, the scheduler, the driver, and all of them, half-way; then give the command again.

    Half of them are lost for good, as spot workers are: the others finish.
    """
    reference, ledger = fresh(folder / "undisturbed"), fresh(folder / "ledger")
    environment, size = {"SCALEMANI_LEDGER": str(ledger)}, [*BLOCKS, f"--set=embedding.solver={solver}"]
    with running_cluster(2, environment) as cluster:
        succeeded(command(points, reference, *size, "--scheduler", cluster.address), environment)
    whole = finished(ledger)
    victims: dict[str, Callable[[Cluster, subprocess.Popen], None]] = {
        "half of the workers": lambda cluster, driver: end_tree(cluster.processes[-1]),
        "all workers": lambda cluster, driver: [end_tree(process) for process in cluster.processes[1:]],  # type: ignore
        "scheduler": lambda cluster, driver: cluster.scheduler.kill(),
        "driver": lambda cluster, driver: driver.kill(),
        "everything": lambda cluster, driver: [driver.kill(), cluster.end()],  # type: ignore[func-returns-value]
    }
    rows = []
    for name, end in victims.items():
        run, ledger = fresh(folder / "gone"), fresh(ledger)
        with running_cluster(1, environment) as cluster:
            words = command(points, run, *size, "--scheduler", cluster.add_workers(1).address)
            with subprocess.Popen(
                words, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
            ) as driver:
                while driver.poll() is None and finished(ledger) < whole / 2:
                    time.sleep(0.02)
                end(cluster, driver)
                there = finished(ledger)
                started = time.perf_counter()
                said = driver.communicate(timeout=SLOWEST * 60)[1].strip().splitlines()[-1:]
                seconds = time.perf_counter() - started
        with running_cluster(2, environment) as cluster:
            succeeded(command(points, run, *size, "--scheduler", cluster.address), environment)
        rows.append({"gone": name, "blocks by then": f"{there} of {whole}", "status": driver.returncode})
        rows[-1] |= {"seconds until": seconds, "blocks after": finished(ledger) - there}
        rows[-1] |= {"computed again": recomputed(ledger), "equal stages": equal_stages(reference, run), "said": said}
        print(json.dumps(rows[-1]), flush=True)
    return rows


def memory(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """Give workers less and less memory: a run ends with the same bits, or with a message before or at its stage."""
    reference, size, rows = fresh(folder / "undisturbed"), [*BLOCKS, f"--set=embedding.solver={solver}"], []
    succeeded(command(points, reference, *size))
    for limit in WORKER_MEMORY:
        run = fresh(folder / "memory")
        with running_cluster(2, memory=limit) as cluster:
            done = ended(command(points, run, *size, "--scheduler", cluster.address))
        row = {"a worker may take": limit, "status": done.status, "seconds": done.seconds}
        row["equal stages"] = equal_stages(reference, run) if done.status == 0 else "-"
        rows.append({**row, "said": done.errors.strip().splitlines()[-1:]})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def finished(ledger: Path) -> int:
    """Return how many blocks were finished by the workers so far."""
    return ledger.read_text().count("\n") if ledger.exists() else 0


def python(program: str, environment: Mapping[str, str], *arguments: object) -> str:
    """Return what a program prints: the environment of an object store is that of its process."""
    words = [sys.executable, "-c", f"import sys; {program}", *map(str, arguments)]
    return subprocess.run(
        words, env={**os.environ, **environment, **FOLDER}, check=True, capture_output=True, text=True
    ).stdout


def faults(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """Points and run in an object store that fails one request in ten, and one that stops for twenty seconds."""
    reference = fresh(folder / "undisturbed")
    succeeded(command(points, reference, *BLOCKS))
    rows = []
    cases = {
        "none": ["--failing", "0"],
        "one request in ten": ["--failing", "0.1"],
        "stops for 20 s": ["--failing", "0", "--outage-after", "8", "--outage", "20"],
    }
    for name, options in cases.items():
        with object_store(*options) as environment:
            python("from scalemani.io.export import export; export(*sys.argv[1:])", environment, points, POINTS)
            seconds = succeeded(command(POINTS, RUN, *BLOCKS), environment)
            found, expected = json.loads(python(DIGESTS, environment, RUN)), digests(open_run(reference))
            same = sum(found[stage] == expected[stage] for stage in expected)
            rows.append({"fault": name, "seconds": seconds, "equal stages": f"{same} of {len(expected)}"})
    return rows


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a disk of so many bytes."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def full(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """Take the rest of a disk away when a run has written a share of its bytes; make space; give the command again."""
    reference = fresh(folder / "undisturbed")
    succeeded(command(points, reference, *BLOCKS))
    whole = sum(path.stat().st_size for path in reference.rglob("*") if path.is_file())
    rows = []
    for share in (0.2, 0.5, 0.8):
        with small_disk(folder / "disk", ROOM * whole) as disk:
            words = command(points, disk / "run", *BLOCKS)
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as driver:
                while driver.poll() is None and not (shutil.disk_usage(disk).used > share * whole and fill(disk)):
                    time.sleep(0.02)
                said = driver.communicate(timeout=300)[1].strip().splitlines()[-1]
            run = open_run(disk / "run")
            damaged = [run.group(stage).damaged_units() for stage in run.keys]
            resize(disk, ROOM * whole)
            again = succeeded(words)
            equal = equal_stages(reference, disk / "run")
        rows.append({"written by then": share, "status": driver.returncode, "said": said})
        rows[-1] |= {"damaged units": sum(map(len, damaged)), "seconds after": again, "equal stages": equal}
    return rows


def fill(disk: Path) -> bool:
    """Let a disk be as large as what is on it; return whether it is: what is written meanwhile may not fit."""
    return resize(disk, shutil.disk_usage(disk).used) == 0


def resize(disk: Path, size: int) -> int:
    """Give a disk so many bytes and return the status of that."""
    return subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], stderr=subprocess.DEVNULL).returncode


def twice(points: Path, folder: Path, seeds: range, solver: str) -> list[dict]:
    """Start two runs on one store at one moment, in a folder and in an object store."""
    rows = []
    with object_store("--failing", "0") as environment:
        for place in (str(fresh(folder / "twice")), "s3://benchmark/twice"):
            words, quiet = command(points, place, *BLOCKS), subprocess.DEVNULL
            both = [subprocess.Popen(words, env={**os.environ, **environment}, stderr=quiet) for _ in range(2)]
            statuses = sorted(process.wait(3600) for process in both)
            rows.append({"place": place.partition("://")[0] if "://" in place else "folder", "statuses": statuses})
    return rows


COMMANDS: dict[str, Callable[[Path, Path, range, str], list[dict]]] = {
    "kills": kills,
    "gone": gone,
    "memory": memory,
    "faults": faults,
    "full": full,
    "twice": twice,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--solver", default="refine", help="of runs that lose workers, or have little memory")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    points = million_digits(arguments.folder, arguments.points)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    show(COMMANDS[arguments.what](points, arguments.folder, seeds, arguments.solver))


if __name__ == "__main__":
    main()
