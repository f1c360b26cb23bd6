"""The recall that is asked for, the certificate, and the truth, of each search and of what the set is hard by.

    python pipelines/benchmarks/recall.py WORK_FOLDER [--sets digits coil tfidf cells tokens sums-60000 normal-400 ...]
        [--neighbors 15 50 90] [--methods auto leaves exact] [--asked 0.95]

Each row is one command, `scalemani embed --method knn-graph`. The truth is taken over 1,000 rows drawn apart from those
of the certificate, and counts the distinct rows of a list. `sums-N` are N sums of two token vectors, `normal-D` 20,000
points without leading axes in D dimensions, `patches-N` hard patches of images, `cells` log(1 + counts).
"""

import argparse
import itertools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from judging import Judged, asked_for, judged, shares
from measuring import settings, show
from model_vectors import vectors
from patches import patches_file
from sklearn.feature_extraction.text import TfidfTransformer

SETS = ("digits", "coil", "tfidf", "patches-200000", "patches-1000000")
ASKED = (0.90, 0.95, 0.99)
NORMAL_POINTS = 20_000


def data_file(name: str) -> Path:
    """Return a file of SCALEMANI_DATA."""
    path = Path(os.environ.get("SCALEMANI_DATA", ".")) / name
    if not path.exists():
        raise SystemExit(f"set SCALEMANI_DATA to the folder that holds {name}")
    return path


def tfidf_file(folder: Path) -> Path:
    """Return the file of the TF-IDF rows (18846, 43374) float32 CSR at unit length, made where it is not there yet."""
    path = folder / "tfidf.npz"
    if not path.exists():
        counts = sp.load_npz(data_file("news20_counts.npz"))
        sp.save_npz(path, sp.csr_matrix(TfidfTransformer().fit_transform(counts), dtype=np.float32))
    return path


def points_of(name: str, folder: Path) -> tuple[str, np.ndarray | sp.csr_matrix]:
    """Return what the command line takes as the points of a set, and the points."""
    if name == "digits":
        with np.load(mnist_file(), allow_pickle=False) as file:
            return f"{mnist_file()}::X", file["X"]
    if name == "coil":
        with np.load(data_file("coil20.npz"), allow_pickle=False) as file:
            return f"{data_file('coil20.npz')}::X", file["X"].reshape(len(file["X"]), -1)
    if name == "tfidf":
        return str(tfidf_file(folder)), sp.csr_matrix(sp.load_npz(tfidf_file(folder)))
    if name.startswith("patches-"):
        path = patches_file(folder, int(name.removeprefix("patches-")))
    else:
        path = folder / f"{name}.npy"
        if not path.exists():
            np.save(path, made_points(name))
    return str(path), np.load(path, mmap_mode="r")


def made_points(name: str) -> np.ndarray:
    """Return the rows (N, D) float32 of a set that is kept in no file of its own."""
    if name == "cells":
        with np.load(data_file("sc_paul15.npz"), allow_pickle=False) as file:
            counts = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), file["shape"])
        return np.log1p(counts.toarray().astype(np.float32))
    if name.startswith("normal-"):
        columns = int(name.removeprefix("normal-"))
        return np.random.default_rng(columns).normal(size=(NORMAL_POINTS, columns)).astype(np.float32)
    return vectors(data_file("tokens384.npz"), name.removeprefix("sums-"))


def row_of(points: str, graph: Judged, asked: float, run: Path, options: Sequence[str]) -> dict[str, Any]:
    """Return what one command took and found."""
    command, stages, lists = asked_for(asked, points, graph, run, options)
    stage, found = stages["neighbors"], shares(graph, lists[graph.queries])
    said, truth, error = stage["certificates"], float(found.mean()), float(found.std(ddof=1) / len(found) ** 0.5)
    ordered = np.sort(lists, axis=1)
    both = max(float(np.hypot(error, said.get("recall_error", 0.0))), 1e-9)
    return {
        "k": graph.k,
        "method": said["method"],
        "asked": asked,
        "certificate": said["recall"],
        "truth": truth,
        "standard errors above": (said["recall"] - truth) / both,
        "rows with repeats": int((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).sum()),
        "rounds": said.get("rounds", 0),
        "seconds": command.seconds,
        "processor seconds": command.processor_seconds,
        "of the search": stage["seconds"],
        "peak GB": command.peak_bytes / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--asked", type=float, nargs="+", default=ASKED)
    parser.add_argument("--neighbors", type=int, nargs="+", default=[15])
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--set", action="append", default=[], help="further parameters of the runs")
    arguments = parser.parse_args()
    options = ["--memory", arguments.memory, *(f"--set={one}" for one in arguments.set)]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.sets:
        points, table = points_of(name, arguments.folder)
        for k, method, asked in itertools.product(arguments.neighbors, arguments.methods, arguments.asked):
            graph, run = judged(arguments.folder, name, table, k), arguments.folder / f"run-{name}"
            chosen = [*options, *settings(neighbors__method=method)]
            rows.append({"points": name, **row_of(points, graph, asked, run, chosen)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
