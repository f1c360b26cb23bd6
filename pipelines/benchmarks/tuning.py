"""What a grid takes beside its eigenproblems and products alone, and what of it is computed once.

    python pipelines/benchmarks/tuning.py WORK_FOLDER --points 70000

A grid of perplexities and numbers of neighbours on MNIST digits, by landmarks, scored by the labels of nearest
neighbours. "ratio" divides the whole command, from reading the digits to the picture, by the seconds of what every
cell solves alone: the products of W with Z, the reduced eigenproblem, and Z times its vectors. "beside affinities"
counts the affinities and W of every cell to these as well, which are a cell's own. The command is then given again,
which has nothing left to compute.
"""

import argparse
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from digits import mnist_file
from measuring import Measured, scalemani, settings, show

ALONE = ("reduced", "landmark_embedding", "embedding")
OWN_AFFINITIES = ("affinities", "components", "symmetric_affinities")
PERPLEXITIES = (5, 10, 15, 20, 30)
NEIGHBORS = (40, 60, 80, 100, 120)
ONCE = ("neighbors", "landmarks", "landmark_weights")


def first_digits(folder: Path, n_points: int) -> tuple[Path, Path]:
    """Return the files of the first digits and of their labels."""
    folder.mkdir(parents=True, exist_ok=True)
    points, labels = folder / f"tuned-{n_points}.npy", folder / f"tuned-{n_points}.labels.npy"
    with np.load(mnist_file(), allow_pickle=False) as file:
        np.save(points, file["X"][:n_points])
        np.save(labels, file["y"][:n_points])
    return points, labels


def row_of(command: str, found: Measured, run: Path) -> dict[str, Any]:
    """Return what a command took, beside the seconds of the stages as they were recorded."""
    kept = json.loads((run / "tuning" / "tuning.json").read_text())
    seconds: Counter[str] = Counter()
    for cell in kept["cells"]:
        seconds.update(cell["seconds"])
    alone = sum(seconds[name] for name in ALONE)
    own = alone + sum(seconds[name] for name in OWN_AFFINITIES)
    groups = {name: len(list((run / "stages" / name).iterdir())) for name in ONCE}
    return {
        "command": command,
        "cells": len(kept["cells"]),
        "seconds": found.seconds,
        "peak GB": found.peak_bytes / 1e9,
        "alone": alone,
        "ratio": found.seconds / alone,
        "beside affinities": found.seconds / own,
        "computed once": sum(kept["shared_seconds"].values()),
        "graphs": groups["neighbors"],
        "Z": groups["landmark_weights"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--components", type=int, default=2)
    parser.add_argument("--perplexities", type=int, nargs="+", default=PERPLEXITIES)
    parser.add_argument("--neighbors", type=int, nargs="+", default=NEIGHBORS)
    parser.add_argument("--memory", default="8GB")
    given = parser.parse_args()
    points, labels = first_digits(given.folder, given.points)
    run = given.folder / f"tuned-{given.points}"
    shutil.rmtree(run, ignore_errors=True)
    lists = settings(
        affinities__perplexity=",".join(map(str, given.perplexities)),
        neighbors__n_neighbors=",".join(map(str, given.neighbors)),
        landmarks__n_landmarks=given.landmarks,
        landmark_embedding__n_components=given.components,
        embedding__solver="lll",
    )
    command = ["tune", str(points), str(run), "--labels", str(labels), "--memory", given.memory, *lists]
    rows = []
    for name in ("tune", "tune again"):
        found = scalemani(*command)
        print(found.output)
        rows.append(row_of(name, found, run))
    show(rows)


if __name__ == "__main__":
    main()
