"""The recall that is asked for, the certificate, and the truth: digits, hard patches, COIL, TF-IDF of 20 Newsgroups.

    python pipelines/benchmarks/recall.py WORK_FOLDER [--sets digits coil tfidf patches-200000 patches-1000000]

Each row is one command, `scalemani embed --method knn-graph` with k = 15 and a recall. The truth is taken over 1,000
rows drawn apart from those of the certificate.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from judging import Judged, asked_for, judged
from measuring import show
from patches import patches_file
from sklearn.feature_extraction.text import TfidfTransformer

SETS = ("digits", "coil", "tfidf", "patches-200000", "patches-1000000")
ASKED = (0.90, 0.95, 0.99)


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
    path = patches_file(folder, int(name.removeprefix("patches-")))
    return str(path), np.load(path, mmap_mode="r")


def row_of(points: str, graph: Judged, asked: float, run: Path, options: Sequence[str]) -> dict[str, Any]:
    """Return what one command took and found."""
    command, stages, truth = asked_for(asked, points, graph, run, options)
    stage = stages["neighbors"]
    return {
        "asked": asked,
        "certificate": stage["certificates"]["recall"],
        "its standard error": stage["certificates"]["recall_error"],
        "truth": truth,
        "rounds": stage["certificates"]["rounds"],
        "method": stage["certificates"]["method"],
        "seconds": command.seconds,
        "of the search": stage["seconds"],
        "peak GB": command.peak_bytes / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--asked", type=float, nargs="+", default=ASKED)
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--set", action="append", default=[], help="further parameters of the runs")
    arguments = parser.parse_args()
    options = ["--memory", arguments.memory, *(f"--set={one}" for one in arguments.set)]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.sets:
        points, table = points_of(name, arguments.folder)
        graph = judged(arguments.folder, name, table, arguments.neighbors)
        for asked in arguments.asked:
            rows.append({"points": name, **row_of(points, graph, asked, arguments.folder / f"run-{name}", options)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
