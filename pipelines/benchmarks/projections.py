"""Memory and disk as projected beside what is measured, for every stage of runs on narrow and wide points.

    python pipelines/benchmarks/projections.py FOLDER DATA [CASE ...] [--set STAGE.PARAM=VALUE]

FOLDER is where points and runs lie, DATA has mnist.npz, coil20.npz and news20_counts.npz. CASE is the number of
features: 3, 50, 784, 16384 or 43374, by default all. Each run is a process of its own. `own` sets what a stage takes
above the process: projected less what is planned for the process, measured less what was there when the stage began.
The last row of a case is the whole run: its largest memory, and all that it stores.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measuring import settings, show

from scalemani.datasets import generator, write
from scalemani.engine.memory_model import process_bytes
from scalemani.engine.progress import Progress
from scalemani.interfaces.cli.options import Options
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run

MEGABYTE = 10**6
OWN_FROM = 50 * MEGABYTE  # below it a ratio of what stages take themselves says nothing
SWISS_ROLL_POINTS, NORMAL_POINTS, NORMAL_FEATURES = 500_000, 200_000, 50
BUDGETS = {16384: "4GB", 43374: "4GB"}


def points_of(features: int, folder: Path, data: Path) -> str:
    """Return the points of a case; what has to be made for it is made once."""
    made = folder / f"points-{features}.npy"
    if features == 3 and not made.exists():
        write(generator("swiss-roll", SWISS_ROLL_POINTS, 0, None), made)
    if features == NORMAL_FEATURES and not made.exists():
        np.save(made, np.random.default_rng(0).normal(size=(NORMAL_POINTS, features)).astype(np.float32))
    given = {784: "mnist.npz::X", 16384: "coil20.npz::X", 43374: "news20_counts.npz"}
    return str(data / given[features]) if features in given else str(made)


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes of its disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def rows_of(features: int, options: Options) -> list[dict[str, Any]]:
    """Run a case and return a row of the table for each stage."""
    shutil.rmtree(options.run, ignore_errors=True)
    plan = plan_run(
        options.source(options.parameters()),
        options.run,
        options.method,
        options.parameters(),
        options.executor(Progress()),
        None,
    )
    budget = [f"--memory={options.memory}"] if options.memory else []
    words = ["embed", options.points, options.run, f"--method={options.method}", *budget]
    subprocess.run([sys.executable, "-m", "scalemani", *words, *settings_of(options)], check=True, stdout=sys.stderr)
    finished, rows = open_run(options.run), []
    for name, record in finished.records().items():
        own = record["projected_memory"] - process_bytes(), record["peak_memory"] - record["memory_before"]
        written, said = on_disk(Path(finished.group(name).objects.root)), sum(plan.planned(name).disk.stored.values())
        rows.append(
            {
                "features": features,
                "stage": name,
                "projected MB": record["projected_memory"] // MEGABYTE,
                "measured MB": record["peak_memory"] // MEGABYTE,
                "ratio": record["projected_memory"] / record["peak_memory"],
                "own projected MB": own[0] // MEGABYTE,
                "own measured MB": own[1] // MEGABYTE,
                "own ratio": own[0] / max(own[1], 1) if max(own) >= OWN_FROM else "-",
                "disk projected MB": said / MEGABYTE,
                "disk written MB": written / MEGABYTE,
                "disk ratio": said / written,
            }
        )
    return [*rows, whole(features, rows)]


def whole(features: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of a run as a whole from those of its stages."""
    most = {name: max(row[name] for row in rows) for name in ("projected MB", "measured MB")}
    disk = {name: sum(row[name] for row in rows) for name in ("disk projected MB", "disk written MB")}
    ratios = {
        "ratio": most["projected MB"] / most["measured MB"],
        "disk ratio": disk["disk projected MB"] / disk["disk written MB"],
    }
    return {"features": features, "stage": "whole", **most, **disk, **ratios}


def settings_of(options: Options) -> list[str]:
    """Return the --set options of a run."""
    return [f"--set={assignment}" for assignment in options.assignments or []]


def main() -> None:
    """Run the cases asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("features", type=int, nargs="*", default=[3, 50, 784, 16384, 43374])
    parser.add_argument("--method", default="laplacian-eigenmaps")
    parser.add_argument("--memory", help="budget of all cases; by default 4GB from 16,384 features on")
    parser.add_argument("--set", action="append", default=[], help="further parameters of the runs")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for features in asked.features:
        points = points_of(features, asked.folder, asked.data)
        memory = asked.memory or BUDGETS.get(features)
        few = [
            word.removeprefix("--set=") for word in settings(affinities__perplexity=10, embedding__solver="lll+refine")
        ]
        run = str(asked.folder / f"run-{features}")
        show(rows_of(features, Options(points, run, asked.method, assignments=few + asked.set, memory=memory)))


if __name__ == "__main__":
    main()
