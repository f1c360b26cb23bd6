"""Points of four times what a process may take: under the memory limit of Dask's workers, and within a budget.

python pipelines/benchmarks/limits.py workers WORK_FOLDER [--points 1800000] [--workers 2] [--limit BYTES]
python pipelines/benchmarks/limits.py budget WORK_FOLDER [--points 1800000] [--limit BYTES] [--repeats 20]

Points are (N, 784) float32 on a curved surface, written by blocks; `--features` sets another number of columns. The
limit is a quarter of their bytes by default. `workers` starts a scheduler and workers, each of which has the limit:
none may be killed by its nanny, be paused or spill. `budget` runs on threads with the limit as `--memory` and without
one, `--repeats` times each, in turn, and prints the content digest of every stage of every run. All digests of a stage
have to be equal. Both commands end with status 1 where something is amiss.

Few points take minutes; under little more than the least budget that the plan accepts, the points of the search are
mapped from a file and next to nothing is cached.

    limits.py budget WORK_FOLDER --points 80000 --features 300 --limit 600000000 --repeats 20
"""

import argparse
import collections
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
from commanding import command, digests, equal_digests, fresh, running_cluster, worker_processes
from measuring import show

from scalemani.runs.opened import open_run

FEATURES = 784
SHARE = 4  # times the limit are the bytes of the points
POINTS = 1_800_000
BYTES_AT_ONCE = 125_000_000  # of float64
BLOCKS = ["--block-rows", "2048"]  # as many in both runs of a comparison, whatever they may take
POLL_SECONDS = 0.5
AMISS = ("memory budget", "Restarting", "Pausing", "Unmanaged memory")  # what Dask says of it


def surface(folder: Path, n_points: int, n_features: int) -> Path:
    """Return the file of points on a surface of two dimensions, written where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"surface-{n_points}x{n_features}.npy"
    if path.exists():
        return path
    draws, partial = np.random.default_rng(0), path.with_suffix(".partial")
    directions = 2 * draws.normal(size=(2, n_features))
    file = np.lib.format.open_memmap(partial, "w+", np.float32, (n_points, n_features))
    at_once = max(1, BYTES_AT_ONCE // (8 * n_features))
    for start in range(0, n_points, at_once):
        rows = file[start : start + at_once]
        rows[...] = np.sin(draws.random((len(rows), 2)) @ directions)
    file.flush()
    return partial.rename(path)


def workers(points: Path, folder: Path, asked: argparse.Namespace, limit: int) -> dict[str, object]:
    """Run on workers of a limit; count those that there were, and what they said of their memory."""
    count = asked.workers
    log, run, seen, peak = fresh(folder / "log"), fresh(folder / "limited"), set(), 0
    started = time.perf_counter()
    with running_cluster(count, memory=f"{limit}B", log=log) as cluster:
        words = command(points, run, *BLOCKS, "--scheduler", cluster.address)
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as driver:
            while driver.poll() is None:
                for process in worker_processes(psutil.Process()):
                    seen.add(process.pid)
                    peak = max(peak, resident(process))
                time.sleep(POLL_SECONDS)
            said = driver.communicate()[1].strip().splitlines()[-1:]
    lines = [line for line in log.read_text().splitlines() if any(word in line for word in AMISS)]
    row: dict[str, object] = {"status": driver.returncode, "seconds": time.perf_counter() - started}
    row |= {"worker processes": f"{len(seen)} of {count}", "peak GB of a worker": peak / 1e9}
    row |= {"said of memory": lines[:3], "last line": "" if driver.returncode == 0 else said}
    return row | {"amiss": driver.returncode != 0 or len(seen) != count or bool(lines)}


def resident(process: psutil.Process) -> int:
    """Return the resident bytes of a process, none of one that has ended."""
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def budget(points: Path, folder: Path, asked: argparse.Namespace, limit: int) -> dict[str, object]:
    """Run within so much memory and without a budget, in turn; all runs have to store the same bits."""
    words, found = command(points, folder / "run", *BLOCKS, "--workers", str(asked.workers)), []
    row: dict[str, object] = {"seconds": 0.0, "seconds without": 0.0, "runs": 0}
    for repeat in range(asked.repeats):
        for name, more in (("seconds", ["--memory", f"{limit}B"]), ("seconds without", [])):
            fresh(folder / "run")  # a disk has to hold one run, not two
            started = time.perf_counter()
            done = subprocess.run([*words, *more], stderr=subprocess.PIPE, text=True, check=False)
            row[name] = max(float(str(row[name])), time.perf_counter() - started)
            if done.returncode:
                return row | {"status": done.returncode, "last line": done.stderr.splitlines()[-1:], "amiss": True}
            found.append(digests(open_run(folder / "run")))
            print(f"repeat {repeat + 1}, {'limited' if more else 'unlimited'}: {json.dumps(found[-1])}", flush=True)
    compared = collections.Counter(equal_digests(found[0], other) for other in found)
    return row | {"runs": len(found), "equal stages": dict(compared), "amiss": len(compared) != 1}


COMMANDS = {"workers": workers, "budget": budget}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--workers", type=int, default=2, help="processes, or threads")
    parser.add_argument("--limit", type=int, help="bytes; by default a quarter of those of the points")
    parser.add_argument("--repeats", type=int, default=1, help="of the two runs of `budget`")
    asked = parser.parse_args()
    points = surface(asked.folder, asked.points, asked.features)
    limit = asked.limit or points.stat().st_size // SHARE
    found = COMMANDS[asked.what](points, asked.folder, asked, limit)
    show([{"points GB": points.stat().st_size / 1e9, "limit GB": limit / 1e9, **found}])
    return 1 if found["amiss"] else 0


if __name__ == "__main__":
    sys.exit(main())
