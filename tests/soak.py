"""A soak of one store: runs, appends, other points and parameters; kills, power cuts, failing calls, damage at random.

    python tests/soak.py FOLDER [--seconds N] [--rounds N] [--seed N] [--method METHOD]

A round is trouble, a look at what is left, and the same work again in this process, which must end with the digests of
an undisturbed store. What the rounds do follows from the seed alone. At the end nothing may be left of them:
descriptors, threads, scratch, memory. An hour is a soak; the tests do a few rounds.
"""

import argparse
import collections
import gc
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from crash_points import DONE, KILLED, N_POINTS, TYPED, VALUES, WAYS, Faults, embed, forked

from scalemani.engine.memory.process import return_freed_memory
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniError
from scalemani.runs.appending import append_points
from scalemani.runs.opened import Run, open_run

N_APPENDED = 150
WORK = ("embed", "append", "other points", "other parameters")
OTHER_VALUES = {**VALUES, "affinities": {"perplexity": 2.5}}
DAMAGE = ("flipped", "cut", "emptied", "removed")
MOST_CALLS = 300  # of the system, among which the one is drawn that goes wrong; some work makes fewer, and is done
MORE_DESCRIPTORS, MORE_THREADS = 3, 2  # what may be about to end
WARM_UP, MEMORY_ROUNDS, GROWTH = 10, 40, 1.1  # fewer rounds say nothing of memory


class Soak:
    """One store in which runs and appends are disturbed.

    `expected` and `keys` are the digests and keys of every stage by the work done, where nothing disturbs it.
    """

    def __init__(self, folder: Path, seed: int, method: str) -> None:
        self.store, self.draws, self.method = folder / "run", random.Random(seed), method
        rows = np.random.default_rng(0).random((N_POINTS + N_APPENDED, 3))
        self.points, self.appended, self.changed = rows[:N_POINTS], rows[N_POINTS:], rows[:N_POINTS].copy()
        self.changed[17, 1] += 0.5
        for name in ("run", "reference"):
            shutil.rmtree(folder / name, ignore_errors=True)
        self.expected: dict[str, dict[str, str]] = {}
        self.keys: dict[str, dict[str, str]] = {}
        for work in WORK:
            self.expected[work] = self.do(work, folder / "reference")
            self.keys[work] = open_run(folder / "reference").keys
        self.counts: collections.Counter[str] = collections.Counter()

    def do(self, work: str, folder: Path) -> dict[str, str]:
        """Embed some points with some parameters, or embed and append, and return the digest of every stage."""
        points = self.changed if work == "other points" else self.points
        found = embed(points, folder, self.method, OTHER_VALUES if work == "other parameters" else VALUES)
        if work == "append":
            found = digests(append_points(open_run(folder), self.appended, Executor(workers=1)).run)
        return found

    def round(self) -> str:
        """Do one round; return what is amiss, nothing where all is well."""
        trouble, work = self.draws.choice((self.fail, self.damage)), self.draws.choice(WORK)
        amiss = trouble(work) or self.look()
        if amiss:
            return amiss
        try:
            found = self.do(work, self.store)
        except ScalemaniError as error:
            return f"{work} ended with {type(error).__name__}: {error}"
        differing = [stage for stage, digest in self.expected[work].items() if found[stage] != digest]
        left = [str(path) for path in self.store.rglob("*.partial")]
        return f"{work} differs in {differing}, left behind {left}" if differing or left else ""

    def fail(self, work: str) -> str:
        """Have a call of the system go wrong in a process that does some work."""
        way, at, seed = self.draws.choice(WAYS), self.draws.randint(1, MOST_CALLS), self.draws.randrange(2**32)
        self.counts[f"{work}, {way}"] += 1

        def going_wrong() -> int:
            Faults(way, at, seed).install()
            self.do(work, self.store)
            return DONE

        status = forked(going_wrong)
        return "" if status in (DONE, TYPED, KILLED) else f"{way} at call {at} of {work} ended with {status}"

    def damage(self, work: str) -> str:
        """Damage some objects of the store, between runs."""
        way = self.draws.choice(DAMAGE)
        self.counts[f"{work}, {way}"] += 1
        there = sorted(path for path in self.store.glob("stages/*/*/arrays/**/c/**/*") if path.is_file())
        for path in self.draws.sample(there, min(len(there), self.draws.randint(1, 3))):
            content = bytearray(path.read_bytes())
            place = self.draws.randrange(len(content)) if content else 0
            if way == "removed":
                path.unlink()
            elif way == "flipped" and content:
                content[place] ^= 1 << self.draws.randrange(8)
                path.write_bytes(content)
            else:
                path.write_bytes(content[:place] if way == "cut" else b"")
        return ""

    def look(self) -> str:
        """Read what is there as any reader does: it is right, or an error of ours says that it is not."""
        try:
            found = open_run(self.store)
            found.embedding[...]
            work = next(work for work, keys in self.keys.items() if keys == found.keys)
            name = "embedding" if "layout" not in found.keys else "layout"
            right = found.group(name).content_digest == self.expected[work][name]
        except ScalemaniError:
            return ""
        return "" if right else "a reader was given another embedding"


def digests(run: Run) -> dict[str, str]:
    """Return the digest of every stage of a run."""
    return {stage: run.group(stage).content_digest for stage in run.keys}


def held() -> dict[str, int]:
    """Return the descriptors, threads and resident bytes of this process."""
    gc.collect()
    return_freed_memory()
    process = psutil.Process()
    return {"descriptors": process.num_fds(), "threads": process.num_threads(), "bytes": process.memory_info().rss}


def leaks(begin: dict[str, int], end: dict[str, int], memory: list[int], scratch: Path) -> list[str]:
    """Return what is held at the end and was not at the beginning."""
    found = [f"scratch {path.name}" for path in scratch.iterdir()]
    for name, more in (("descriptors", MORE_DESCRIPTORS), ("threads", MORE_THREADS)):
        if end[name] > begin[name] + more:
            found.append(f"{name} {begin[name]} to {end[name]}")
    if len(memory) >= MEMORY_ROUNDS:
        third = len(memory[WARM_UP:]) // 3
        early, late = statistics.median(memory[WARM_UP:][:third]), statistics.median(memory[-third:])
        if late > GROWTH * early:
            found.append(f"memory {early} to {late} bytes")
    return found


def main() -> int:
    """Soak; return 1 where something was amiss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--rounds", type=int, default=2**31, help="end after so many, if time is left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", default="laplacian-eigenmaps")
    asked = parser.parse_args()
    scratch = asked.folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    tempfile.tempdir = str(scratch)
    soak, amiss, memory = Soak(asked.folder, asked.seed, asked.method), [], []
    begin, started, done = held(), time.monotonic(), 0
    while done < asked.rounds and time.monotonic() - started < asked.seconds and not amiss:
        amiss += filter(None, [soak.round()])
        memory.append(held()["bytes"])
        done += 1
    amiss += leaks(begin, held(), memory, scratch)
    said = {"rounds": done, "seed": asked.seed, "amiss": amiss, "begin": begin, "end": held(), **soak.counts}
    print(json.dumps(said, indent=1))
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
