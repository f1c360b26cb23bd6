"""Points of four times what a process may take: under the memory limit of Dask's workers, and of address space.

python pipelines/benchmarks/limits.py workers WORK_FOLDER [--points 1800000] [--workers 2] [--limit BYTES]
python pipelines/benchmarks/limits.py addresses WORK_FOLDER [--points 1800000] [--limit BYTES]

Points are (N, 784) float32 on a curved surface, written by blocks; `--features` gives them more or fewer columns. The
limit is a quarter of their bytes unless it is given. `workers` starts a scheduler and workers, each of which has the
limit: none may be killed by its nanny, be paused or spill. `addresses` runs on threads of a process with the limit
(`ulimit -v`), and compares with a run without one. Both end with status 1 where something is amiss.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
from commanding import command, digests, equal_digests, fresh, running_cluster, succeeded, worker_processes
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


def workers(points: Path, folder: Path, limit: int, count: int) -> dict[str, object]:
    """Run on workers of a limit; count those that there were, and what they said of their memory."""
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


def addresses(points: Path, folder: Path, limit: int, count: int) -> dict[str, object]:
    """Run in a process of so much address space, and in one without a limit, on so many threads."""
    run, reference = fresh(folder / "limited"), fresh(folder / "unlimited")
    words, started = command(points, run, *BLOCKS, "--workers", str(count)), time.perf_counter()
    done = subprocess.run(
        words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    row: dict[str, object] = {"status": done.returncode, "seconds": time.perf_counter() - started}
    if done.returncode:
        return row | {"last line": done.stderr.strip().splitlines()[-1:], "amiss": True}
    limited = digests(open_run(run))
    fresh(run)  # a disk has to hold one of the two
    row["seconds without"] = succeeded(command(points, reference, *BLOCKS, "--workers", str(count)))
    unlimited = digests(open_run(reference))
    return row | {"equal stages": equal_digests(unlimited, limited), "amiss": unlimited != limited}


COMMANDS = {"workers": workers, "addresses": addresses}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--workers", type=int, default=2, help="processes, or threads")
    parser.add_argument("--limit", type=int, help="bytes; by default a quarter of those of the points")
    asked = parser.parse_args()
    points = surface(asked.folder, asked.points, asked.features)
    limit = asked.limit or points.stat().st_size // SHARE
    found = COMMANDS[asked.what](points, asked.folder, limit, asked.workers)
    show([{"points GB": points.stat().st_size / 1e9, "limit GB": limit / 1e9, **found}])
    return 1 if found["amiss"] else 0


if __name__ == "__main__":
    sys.exit(main())
