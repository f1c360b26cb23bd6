"""Infinite digits of which the last tenth is appended in ten goes, beside a fresh run of all; and goes that are killed.

    python pipelines/benchmarks/appending.py WORK_FOLDER [--points 1000000] [--method laplacian-eigenmaps] [--kills 10]

A row a go: seconds, peak memory, certificates, and the seconds as a share of those of the fresh run, which has all
points. Then both graphs against the truth (1,000 rows), both residuals, and of both maps the 15-NN accuracy of labels.
Kills: from a copy of the run before the first go, `append` is ended by `kill -9` at a random moment and given again;
every stage has to hold the bits of the undisturbed go. What earlier goes have left is removed between goes.
"""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from commanding import digests, fresh
from digits import million_digits, training_labels
from judging import Judged, judged, recall
from measuring import Measured, records, scalemani, settings, show

import scalemani as sm
from scalemani.runs.opened import open_run

NEIGHBORS = 15
JUDGED_LABELS = 20_000
KILLED_FROM, KILLED_UNTIL = 0.05, 0.95  # of the seconds of an undisturbed go


def cut(path: Path, share: float, goes: int) -> list[Path]:
    """Return the files of the first points and of those of each go, made where they are not there yet."""
    points = np.load(path, mmap_mode="r")
    bounds = [0, *np.linspace(round(len(points) * (1 - share)), len(points), goes + 1).astype(int)]
    files = []
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        files.append(path.with_name(f"{path.stem}-part-{number}-of-{goes}.npy"))
        if not files[-1].exists():
            np.save(files[-1], points[start:stop])
    return files


def embedded(path: Path, run: Path, method: str, options: list[str]) -> Measured:
    """Run a fresh embedding."""
    asked = settings(affinities__perplexity=5, neighbors__n_neighbors=NEIGHBORS)
    return scalemani("embed", str(path), str(fresh(run)), "--method", method, *asked, *options)


def row_of(name: str, run: Path, took: Measured) -> dict[str, Any]:
    """Return the row of a command and of what it has certified."""
    stages = records(run)["stages"]
    row = {
        "run": name,
        "points": open_run(run).n_input_points,
        "seconds": took.seconds,
        "peak GB": took.peak_bytes / 1e9,
    }
    row["certificate"] = stages["neighbors"]["certificates"]["recall"]
    found = stages.get("embedding", {"certificates": {}})["certificates"]
    return row | {"residual": found["residual"]} if "residual" in found else row


def judged_row(run: Path, graph: Judged, labels: np.ndarray) -> dict[str, float]:
    """Return the true recall of the graph of a run, and how well its map tells the labels apart."""
    opened = open_run(run)
    lists = np.asarray(opened.graph.indices[...])[graph.queries]
    found = sm.measures.knn_accuracy(np.asarray(opened.embedding[...]), labels, NEIGHBORS, n_sampled=JUDGED_LABELS)
    return {"recall": recall(graph, lists), "accuracy": found.value, "error": found.error}


def killed_goes(before: Path, part: Path, expected: dict[str, str], seconds: float, kills: int, seed: int) -> int:
    """Return how many of so many goes that were killed and given again hold the bits of the undisturbed one.

    Parameters
    ----------
    before : the run before the go
    part : the points that are appended
    expected : digests of all stages after the undisturbed go
    seconds : of the undisturbed go
    kills : how many
    seed : of the moments
    """
    draws, same, done = np.random.default_rng(seed), 0, 0
    target = before.with_name("killed")
    words = [sys.executable, "-m", "scalemani", "append", str(target), str(part)]
    while done < kills:
        shutil.copytree(before, fresh(target))
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ) as process:
            try:
                process.wait(draws.uniform(KILLED_FROM, KILLED_UNTIL) * seconds)
                continue  # it was through before its moment came
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        done += 1
        scalemani(*words[3:])
        same += digests(open_run(target)) == expected
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.1, help="of the points, which is appended")
    parser.add_argument("--goes", type=int, default=10)
    parser.add_argument("--method", default="laplacian-eigenmaps", help="t-sne for its accuracy")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="further parameters of both runs")
    asked = parser.parse_args()
    path = million_digits(asked.folder, asked.points)
    first, *parts = cut(path, asked.share, asked.goes)
    grown, before, whole = (asked.folder / name for name in ("grown", "before", "fresh"))
    budget = ["--memory", asked.memory]
    options = [*budget, *(f"--set={value}" for value in asked.set)]
    took = embedded(path, whole, asked.method, options)
    rows, limit = [row_of("fresh", whole, took)], took.seconds
    rows.append(row_of("before", grown, embedded(first, grown, asked.method, options)))
    shutil.copytree(grown, fresh(before))
    after, undisturbed = {}, 0.0
    for number, part in enumerate(parts, 1):
        took = scalemani("append", str(grown), str(part), *budget)
        rows.append({**row_of(f"go {number}", grown, took), "share": took.seconds / limit})
        if number == 1:
            after, undisturbed = digests(open_run(grown)), took.seconds
        scalemani("runs", str(grown), "--prune")
    labels, graph = training_labels(asked.points), judged(asked.folder, path.stem, np.load(path, "r"), NEIGHBORS)
    rows[0] |= judged_row(whole, graph, labels)
    rows[-1] |= judged_row(grown, graph, labels)
    same = killed_goes(before, parts[0], after, undisturbed, asked.kills, asked.seed)
    rows.append({"run": "killed and repeated", "same bits": f"{same} of {asked.kills}"})
    show(rows)
    if same < asked.kills:
        sys.exit(1)


if __name__ == "__main__":
    main()
