"""Landmarks of the million digits by every method, at equal numbers: seconds, peak memory, what is said of them.

Uses the run that million.py leaves in the folder: points and cells are shared. Each method is a stage of its own.

    python pipelines/benchmarks/landmark_methods.py WORK_FOLDER [--landmarks 1000] [--methods random dpp ...]
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from digits import million_digits
from measuring import records, scalemani, settings, show
from million import PAPER_SETTING

METHODS = ("random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax", "dpp", "gp-active", "gp")
GRAPH = ("partition", "work_points", "neighbors")


def landmarks_by(method: str, points: Path, run: Path, memory: str, n_landmarks: int) -> dict[str, Any]:
    """Return what a method took and found, and what its command said where it failed."""
    asked = [*PAPER_SETTING, *settings(landmarks__method=method, landmarks__n_landmarks=n_landmarks)]
    shutil.rmtree(run / "stages" / "landmarks", ignore_errors=True)  # else those of an earlier command are taken over
    try:
        command = scalemani("stage", "landmarks", str(points), str(run), "--memory", memory, *asked)
    except subprocess.CalledProcessError as error:
        return {"method": method, "seconds": f"failed ({error.returncode})"}
    stages = records(run)["stages"]
    found = stages["landmarks"]
    return {
        "method": method,
        "seconds": found["seconds"],
        "of random and the graph": "",
        "peak GB": found["peak_memory"] / 1e9,
        "projected GB": found["projected_memory"] / 1e9,
        "whole command, seconds": command.seconds,
        "found": found["certificates"],
        "graph": sum(stages[name]["seconds"] for name in GRAPH),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder), arguments.folder / "million"
    rows = []
    for method in arguments.methods:
        rows.append(landmarks_by(method, points, run, arguments.memory, arguments.landmarks))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    first = rows[0]
    for row in rows:
        graph = row.pop("graph", None)
        if graph is not None and first["method"] == "random":
            row["of random and the graph"] = row["seconds"] / (first["seconds"] + graph)
    show(rows)


if __name__ == "__main__":
    main()
