"""kill -9 at random moments, then the same command again: the same bits, and no finished block computed twice.

python pipelines/benchmarks/kills.py WORK_FOLDER --points 200000 --kills 20 [--method t-sne] [--solver lll]
"""

import argparse
import collections
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from digits import million_digits
from measuring import settings, show

from scalemani.runs.opened import open_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", default="laplacian-eigenmaps")
    parser.add_argument("--solver", default="refine")
    arguments = parser.parse_args()
    points = million_digits(arguments.folder, arguments.points)
    undisturbed, killed = arguments.folder / "undisturbed", arguments.folder / "killed"
    ledger = arguments.folder / "ledger"
    for path in (undisturbed, killed):
        shutil.rmtree(path, ignore_errors=True)
    ledger.unlink(missing_ok=True)

    started = time.perf_counter()
    subprocess.run(
        command(points, undisturbed, arguments.method, arguments.solver), check=True, stderr=subprocess.DEVNULL
    )
    whole = time.perf_counter() - started
    draws = np.random.default_rng(arguments.seed)
    environment = {**os.environ, "SCALEMANI_LEDGER": str(ledger)}
    kills = starts = 0
    again = command(points, killed, arguments.method, arguments.solver)
    while kills < arguments.kills:
        starts += 1
        with subprocess.Popen(again, env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(draws.uniform(0.02, 0.3) * whole)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
                continue
        shutil.rmtree(killed)
        ledger.rename(ledger.with_suffix(f".{starts}"))
    subprocess.run(again, env=environment, check=True, stderr=subprocess.DEVNULL)

    one, other = open_run(undisturbed), open_run(killed)
    equal = {stage: one.group(stage).content_digest == other.group(stage).content_digest for stage in one.keys}
    times = [counted(path) for path in arguments.folder.glob("ledger*")]
    blocks = sum(len(done) for done in times)
    again = sum(count - 1 for done in times for count in done.values())
    show(
        [
            {
                "points": arguments.points,
                "seconds undisturbed": whole,
                "kills": kills,
                "blocks": blocks,
                "finished blocks computed again": again,
                "stages equal to the last bit": f"{sum(equal.values())} of {len(equal)}",
            }
        ]
    )
    if again or not all(equal.values()):
        sys.exit(1)


def command(points: Path, run: Path, method: str, solver: str) -> list[str]:
    """Return the command that is killed and given again."""
    graph = {"affinities__perplexity": 5, "neighbors__n_neighbors": 15}
    setting = settings(**graph, landmarks__n_landmarks=2000, embedding__solver=solver)
    return [sys.executable, "-m", "scalemani", "embed", str(points), str(run), "--method", method, *setting]


def counted(ledger: Path) -> collections.Counter[str]:
    """Return how often each unit was finished, whatever the process."""
    return collections.Counter(line.rpartition(" ")[0] for line in ledger.read_text().splitlines())


if __name__ == "__main__":
    main()
