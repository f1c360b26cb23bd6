"""Two checkouts of the project timed in turn on whole commands: medians, ratios of pairs, peak memory of each.

    python pipelines/benchmarks/before_after.py BEFORE AFTER WORK [--only graph plan] [--repeats 5] [--points 1020000]

BEFORE and AFTER are folders that hold `scalemani/`. Each runs with its own `.venv/bin/python` where it has one, else
with the Python of this script, with a cache of compiled code of its own, on the same points. A round runs every command
once in each checkout, and the next round in the other order; the first round compiles and is not counted. A ratio is
after over before of one round; the table has their median and range.

The points are digits of `mnist.npz` in SCALEMANI_DATA, beyond 70,000 with deformations; without that file, deformed
digits of scikit-learn. `graph` takes those of a file instead: --file patches.npy, as `patches.py` writes it.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from digits import MILLION, million_digits, mnist_file
from measuring import Measured, measured, scalemani, settings, show

MNIST_POINTS = 70_000
POINTS_PER_LANDMARK, MOST_LANDMARKS = 100, 10_000
EMBEDS = {
    "t-sne": "t-sne",
    "t-sne-3d": "t-sne",
    "spectral": "laplacian-eigenmaps",
    "graph": "knn-graph",
}  # by command: the method
COMMANDS = (*EMBEDS, "plan", "info", "report")  # the last two read the run of `spectral`


@dataclass(frozen=True)
class Checkout:
    """One version of the code: its name in the table, its folder, and the folder that its runs and cache go to."""

    name: str
    source: Path
    folder: Path

    @property
    def python(self) -> str:
        """The interpreter that runs it."""
        own = self.source / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def environment(self) -> dict[str, str]:
        """What makes an interpreter import this checkout, wherever it was started, and compile into its own cache."""
        return {
            "PYTHONPATH": str(self.source),
            "PYTHONSAFEPATH": "1",
            "SCALEMANI_CACHE": str(self.folder / "cache"),
        }

    def check(self) -> None:
        """Refuse a folder from which `scalemani` is not imported."""
        code = "import scalemani; print(scalemani.__file__)"
        found = measured([self.python, "-c", code], self.environment).output.strip()
        if not Path(found).is_relative_to(self.source):
            raise SystemExit(f"{self.source} holds no scalemani: {self.python} imports {found}")

    def run(self, words: Sequence[object]) -> Measured:
        """Run the command line of this checkout."""
        return measured([self.python, "-m", "scalemani", *map(str, words)], self.environment)

    def commit(self) -> str:
        """Return its commit, where it is a repository."""
        asked = ["git", "-C", str(self.source), "describe", "--always", "--dirty"]
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or "no repository"


def points_file(folder: Path, n_points: int) -> Path:
    """Return the file of so many digits, made where it is not there yet."""
    mnist = Path(os.environ.get("SCALEMANI_DATA", ".")) / "mnist.npz"
    if mnist.exists() and n_points > MNIST_POINTS:
        return million_digits(folder, n_points)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'mnist' if mnist.exists() else 'deformed'}-{n_points}.npy"
    if not path.exists() and mnist.exists():
        with np.load(mnist_file(), allow_pickle=False) as file:
            np.save(path, file["X"][:n_points])
    elif not path.exists():
        scalemani("generate", "deformed-digits", str(path), "--n-points", str(n_points))
    return path


def words_of(command: str, run: Path, points: dict[str, Path], n_landmarks: int, memory: str) -> list[object]:
    """Return the arguments of a command; `run` is that of its method, and of `spectral` for all others."""
    if command == "info":
        return ["info", run, "--json"]
    if command == "report":
        return ["report", run, run.with_suffix(".html")]
    chosen = settings(affinities__perplexity=5, neighbors__n_neighbors=15, embedding__residual=1e-3)
    chosen += settings(landmarks__n_landmarks=n_landmarks)
    t_sne = ["embed", points["t-sne"], run, "--method", EMBEDS["t-sne"]]
    by_command = {
        "t-sne": t_sne,
        "t-sne-3d": [*t_sne, *settings(landmark_embedding__n_components=3)],
        "spectral": ["embed", points["spectral"], run, "--method", EMBEDS["spectral"], *chosen],
        "graph": ["embed", points["graph"], run, "--method", EMBEDS["graph"], *settings(neighbors__n_neighbors=15)],
        "plan": ["plan", points["spectral"], run.with_name("planned"), "--method", EMBEDS["spectral"], *chosen],
    }
    return [*by_command[command], "--memory", memory]


def table(name: str, sides: Sequence[Checkout], rounds: Sequence[dict[str, Measured]]) -> dict[str, Any]:
    """Return the row of a command: each round has what both sides took."""
    seconds = {side.name: [one[side.name].seconds for one in rounds] for side in sides}
    peaks = {side.name: max(one[side.name].peak_bytes for one in rounds) for side in sides}
    before, after = (side.name for side in sides)
    ratios = [new / old for old, new in zip(seconds[before], seconds[after], strict=True)]
    return {
        "command": name,
        f"{before} s": median(seconds[before]),
        f"{after} s": median(seconds[after]),
        "ratio": median(ratios),
        "least": min(ratios),
        "largest": max(ratios),
        f"{before} GB": peaks[before] / 1e9,
        f"{after} GB": peaks[after] / 1e9,
        "ratio of GB": peaks[after] / peaks[before],
        "rounds": len(rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--repeats", type=int, default=5, help="rounds that are counted")
    parser.add_argument("--points", type=int, default=MILLION, help="of spectral, graph and plan")
    parser.add_argument("--file", type=Path, help="points of graph, in place of digits")
    parser.add_argument("--t-sne-points", type=int, default=MNIST_POINTS)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    digits = points_file(folder, arguments.points)
    points = {
        "graph": arguments.file or digits,
        "spectral": digits,
        "t-sne": points_file(folder, arguments.t_sne_points),
    }
    n_landmarks = min(MOST_LANDMARKS, max(50, arguments.points // POINTS_PER_LANDMARK))
    sides = [
        Checkout(name, source.resolve(), folder / name)
        for name, source in (("before", arguments.before), ("after", arguments.after))
    ]
    for side in sides:
        side.check()
        print(f"{side.name}: {side.source}, {side.commit()}, {side.python}")
    measured_by_name: dict[str, list[dict[str, Measured]]] = {name: [] for name in arguments.only}
    reads_spectral = {"info", "report"} & set(arguments.only)
    for number in range(arguments.repeats + 1):
        warm_up = ["spectral"] if number == 0 and reads_spectral and "spectral" not in arguments.only else []
        for name in [*warm_up, *(name for name in COMMANDS if name in arguments.only)]:
            found = {}
            for side in sides if number % 2 == 0 else sides[::-1]:
                run = side.folder / (name if name in EMBEDS else "spectral")
                if name in EMBEDS:
                    shutil.rmtree(run, ignore_errors=True)
                found[side.name] = side.run(words_of(name, run, points, n_landmarks, arguments.memory))
            if number:
                measured_by_name[name].append(found)
    show([table(name, sides, rounds) for name, rounds in measured_by_name.items()])


if __name__ == "__main__":
    main()
