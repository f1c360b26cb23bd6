"""How well the time that a run still takes is told: after a fifth of it, versus what it took, over runs cold and warm.

    python pipelines/benchmarks/remaining_time.py FOLDER [--points 2000 5000 20000] [--clock wall|processor]

Every run is a process of its own over the first digits of `mnist.npz` in SCALEMANI_DATA as float32 (N, 784): t-SNE and
Laplacian eigenmaps, each with the machine code in the cache and with an empty one. It looks ten times a second at what
its progress would show. On a machine that others use, `--clock processor` has the run and what is told of it in seconds
of its processors. The last line counts the runs in which told and true differ by a factor of 1.5 or less.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from digits import mnist_file
from measuring import show

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

CLOCKS = {"wall": time.monotonic, "processor": time.process_time}
METHODS = ("t-sne", "laplacian-eigenmaps")
SHARE, FACTOR, SECONDS_BETWEEN = 0.2, 1.5, 0.1


class Looks(Progress):
    """Keeps what is told of the remaining time, and what stages have taken."""

    def __init__(self, now):
        self.now, self.looks, self.stages = now, [], {}
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def end(self, stage, compiling=0.0):
        """Keep what a stage has taken."""
        super().end(stage, compiling)
        self.stages[stage] = round(self.now() - self._began, 2)

    def _look(self):
        while not self._ended.wait(SECONDS_BETWEEN):
            if self._expected:
                self.looks.append((self.now(), self.remaining()))

    def __enter__(self):
        self._watch.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._watch.join()


def one(points, method, store, clock):
    """Run a method and print what was told after a fifth of the run, and what was true."""
    now = CLOCKS[clock]
    started = now()
    with Looks(now) as progress:
        run(open_points(np.load(points)), store, method, Parameters(), Executor(progress=progress))
    ended = now()
    due = started + SHARE * (ended - started)
    at, told = next(look for look in progress.looks if look[0] >= due)
    print(json.dumps({"seconds": ended - started, "told": told, "true": ended - at, "stages": progress.stages}))


def row(points, n_points, method, code, folder, clock):
    """Run a method in a process of its own; return what it printed as a row."""
    environment, store = {**os.environ, "SCALEMANI_CACHE": str(folder / "cache")}, folder / "run"
    shutil.rmtree(store, ignore_errors=True)
    if code == "compiled":
        shutil.rmtree(folder / "cache", ignore_errors=True)
    command = [sys.executable, __file__, str(folder), "--one", str(points), method, str(store), clock]
    found = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout)
    print(method, n_points, code, json.dumps(found), file=sys.stderr, flush=True)
    del found["stages"]
    return {"method": method, "points": n_points, "code": code, **found, "told / true": found["told"] / found["true"]}


def main():
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, nargs="+", default=[2000, 5000, 20000])
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(*asked.one)
        return
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(mnist_file(), allow_pickle=False) as file:
        digits = file["X"]
    rows = []
    for n_points in asked.points:
        points = folder / f"points-{n_points}.npy"
        np.save(points, digits[:n_points].astype(np.float32))
        for method in METHODS:
            rows += [row(points, n_points, method, code, folder, asked.clock) for code in ("compiled", "cached")]
    show(rows)
    within = sum(1 / FACTOR <= one["told / true"] <= FACTOR for one in rows)
    print(f"{within} of {len(rows)} within a factor of {FACTOR}")


if __name__ == "__main__":
    main()
