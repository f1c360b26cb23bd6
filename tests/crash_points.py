"""Kills, power cuts and failures at the writes of a small run: an error of ours or a clean death, then an equal run.

    python tests/crash_points.py FOLDER [--every N] [--first N] [--in-a-row N] [--method METHOD] [--seed N]

Each attempt is a forked process in which one call of the system, counted over `CALLS`, does not return as it should;
then the same run is started again. `--every 1` tries every call in every way: some thousand attempts, an hour or two.
`--in-a-row` kills one run so many times instead, each time after a further part of its calls.
"""

import argparse
import errno
import itertools
import os
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

N_POINTS = 700
VALUES = {
    "neighbors": {"n_neighbors": 8},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 30},
    "layout": {"max_iterations": 5},
}
CALLS = ("fsync", "replace", "mkdir", "unlink")
FAILURES = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EROFS": errno.EROFS, "EDQUOT": errno.EDQUOT}
WAYS = ("kill before", "kill after", "half written", "power cut", *FAILURES, *(f"{name} lasting" for name in FAILURES))
DONE, TYPED, FOREIGN, KILLED, DIFFERENT = 0, 10, 11, 137, 12


class Faults:
    """Counts calls of the system, and has the n-th go wrong in one way."""

    def __init__(self, way: str, at: int, seed: int) -> None:
        self.way, self.at, self.count = way, at, 0
        self.draws = random.Random(f"{seed} {way} {at}")
        self.renamed: list[tuple[str, bytes | None]] = []  # and what was there before

    def install(self) -> None:
        """Stand before the calls of this process."""
        for name in CALLS:
            setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            here = self.count == self.at  # other threads, and taking renames back, go on counting
            failing = self.way.removesuffix(" lasting")
            if failing in FAILURES and (here or (self.way != failing and self.count > self.at)):
                raise OSError(FAILURES[failing], os.strerror(FAILURES[failing]), str(arguments[0]))
            if here and self.way == "half written" and name == "replace":
                os.truncate(arguments[0], os.path.getsize(arguments[0]) // 2)
            if here and self.way in ("kill before", "half written"):
                os._exit(KILLED)
            if self.way == "power cut" and name == "replace":
                there = os.path.exists(arguments[1])
                self.renamed.append((arguments[1], Path(arguments[1]).read_bytes() if there else None))
            result = call(*arguments, **named)
            if name == "fsync":
                synced = os.path.realpath(f"/proc/self/fd/{arguments[0]}")
                self.renamed = [one for one in self.renamed if os.path.dirname(os.path.realpath(one[0])) != synced]
            if here and self.way == "power cut":
                self.lose_renames()
            if here and self.way in ("kill after", "power cut"):
                os._exit(KILLED)
            return result

        return counted

    def lose_renames(self) -> None:
        """Take some renames back: of those in folders that were not synced since, any may not have reached the disk."""
        for path, before in reversed(self.renamed):
            if self.draws.random() < 0.5:
                Path(path).unlink(missing_ok=True) if before is None else Path(path).write_bytes(before)


def embed(points: np.ndarray, folder: Path, method: str, values: Mapping[str, Any] = VALUES) -> dict[str, str]:
    """Run to the end and return the digest of every stage."""
    finished = run(open_points(points), folder, method, Parameters().with_values(values), Executor(workers=1), 1024)
    return {stage: finished.group(stage).content_digest for stage in finished.keys}


def forked(work: Callable[[], int]) -> int:
    """Return the exit status of work done in a forked process."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = FOREIGN
        try:
            status = work()
        except ScalemaniError:
            status = TYPED
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def attempt(points: np.ndarray, folder: Path, method: str, faults: Faults, reference: dict[str, str]) -> str:
    """Have a run go wrong and start it again; return what is amiss, nothing where all is well."""
    shutil.rmtree(folder, ignore_errors=True)

    def going_wrong() -> int:
        faults.install()
        embed(points, folder, method)
        return DONE

    status = forked(going_wrong)
    if status not in (DONE, TYPED, KILLED):
        return f"ended with {status}"
    again = forked(lambda: DONE if embed(points, folder, method) == reference else DIFFERENT)
    if again != DONE:
        return f"the next run ended with {again}"
    left = [str(path.relative_to(folder)) for path in folder.rglob("*.partial")]
    return f"left behind: {', '.join(left)}" if left else ""


def killed_in_a_row(
    points: np.ndarray, folder: Path, method: str, times: int, calls: int, reference: dict[str, str]
) -> str:
    """Kill a run, and those that go on with it; return what is amiss, nothing where all is well.

    `calls` are those of a whole run. All kills come before its end, since each has more than its part of them left.
    """
    shutil.rmtree(folder, ignore_errors=True)

    def going_wrong() -> int:
        Faults("kill before", calls // (times + 1), 0).install()
        embed(points, folder, method)
        return DONE

    for number in range(times):
        if (status := forked(going_wrong)) != KILLED:
            return f"the run that was to be killed after {number} others ended with {status}"
    again = forked(lambda: DONE if embed(points, folder, method) == reference else DIFFERENT)
    return "" if again == DONE else f"the run after {times} kills ended with {again}"


def main() -> int:
    """Try the points that are asked for; return 1 where one of them went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="try every N-th pair of a call and a way")
    parser.add_argument("--first", type=int, default=0, help="pairs to pass over")
    parser.add_argument("--in-a-row", type=int, default=0, metavar="N", help="kill one run N times")
    parser.add_argument("--method", default="laplacian-eigenmaps")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name in ("reference", "counted"):
        shutil.rmtree(asked.folder / name, ignore_errors=True)
    points = np.random.default_rng(0).random((N_POINTS, 3))
    reference = embed(points, asked.folder / "reference", asked.method)
    counting, counted = Faults("none", 0, asked.seed), asked.folder / "count"

    def count() -> int:
        counting.install()
        embed(points, asked.folder / "counted", asked.method)
        counted.write_text(str(counting.count))
        return DONE

    if forked(count) != DONE:
        raise RuntimeError("a run without faults has failed")
    calls = int(counted.read_text())
    if asked.in_a_row:
        found = killed_in_a_row(points, asked.folder / "run", asked.method, asked.in_a_row, calls, reference)
        print(found or f"{asked.in_a_row} kills of one run, 0 amiss")
        return 1 if found else 0
    pairs = list(itertools.product(range(1, calls + 1), WAYS))[asked.first :: asked.every]
    amiss = 0
    for at, way in pairs:
        found = attempt(points, asked.folder / "run", asked.method, Faults(way, at, asked.seed), reference)
        if found:
            amiss += 1
            print(f"{way} at call {at}: {found}", flush=True)
    print(f"{len(pairs)} attempts at {calls} calls, {amiss} amiss")
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
