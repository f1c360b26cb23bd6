"""Neighbours of sparse points, kept sparse all the way: seconds, memory, disk and recall of one command.

    python pipelines/benchmarks/sparse.py WORK_FOLDER [--sets tfidf counts] [--points 1000000] [--memory 4GB]

`tfidf` is 20 Newsgroups (18,846 x 43,374, its empty documents left out) by the cosine; `counts` are draws of so many
points of 30,000 columns, one hundredth of them filled, around a thousand topics. Each row is `scalemani embed --method
knn-graph` with k = 15 and a recall of 0.95. The truth is taken over rows drawn apart from those of the certificate, by
plain products.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measuring import records, scalemani, settings, show
from recall import tfidf_file
from sklearn.preprocessing import normalize

from scalemani.records.graph import StoredGraph
from scalemani.runs.opened import open_run

NEIGHBORS, RECALL = 15, 0.95
COLUMNS, FILLED, TOPICS, TOPIC_WORDS = 30_000, 300, 1000, 600
JUDGED = 500
ROWS_AT_ONCE = 50_000


def counts_file(folder: Path, n_points: int) -> Path:
    """Return the file of counts (n, 30,000) int32 CSR, made where it is not there yet.

    A point has a topic; four fifths of its words are among the topic's own, the others are anywhere.
    """
    path = folder / f"counts-{n_points}.npz"
    if path.exists():
        return path
    draws = np.random.default_rng(0)
    words = np.array([draws.choice(COLUMNS, TOPIC_WORDS, replace=False) for _ in range(TOPICS)], dtype=np.int32)
    own, parts = FILLED * 4 // 5, []
    for start in range(0, n_points, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, n_points - start)
        topics = draws.integers(0, TOPICS, n_rows)
        chosen = words[topics[:, np.newaxis], draws.integers(0, TOPIC_WORDS, (n_rows, own))]
        columns = np.concatenate([chosen, draws.integers(0, COLUMNS, (n_rows, FILLED - own), dtype=np.int32)], axis=1)
        bounds = np.arange(0, columns.size + 1, FILLED)
        part = sp.csr_matrix((np.ones(columns.size, np.int32), columns.ravel(), bounds), shape=(n_rows, COLUMNS))
        part.sum_duplicates()
        parts.append(part)
    sp.save_npz(path, sp.vstack(parts, format="csr"), compressed=False)
    return path


def filled_tfidf_file(folder: Path) -> Path:
    """Return the file of the TF-IDF rows that hold a word: the others have no direction."""
    path = folder / "tfidf-filled.npz"
    if not path.exists():
        table = sp.csr_matrix(sp.load_npz(tfidf_file(folder)))
        sp.save_npz(path, table[np.flatnonzero(np.diff(table.indptr))])
    return path


def true_recall(points: sp.csr_matrix, metric: str, run: Path) -> float:
    """Return the share of the true neighbours that a graph holds, over rows drawn here, ties counted as held."""
    stored = open_run(run).group(StoredGraph.STAGE)
    rows = np.sort(np.random.default_rng(1).choice(points.shape[0], JUDGED, replace=False))
    lists = StoredGraph(stored).indices.read()[rows]
    table = normalize(points.astype(np.float64)) if metric == "cosine" else points.astype(np.float64)
    lengths = np.asarray(table.multiply(table).sum(axis=1)).ravel()
    shares = []
    for row, found in zip(rows, lists, strict=True):
        squares = lengths + lengths[row] - 2 * (table @ table[[row]].T).toarray().ravel()
        squares[row] = np.inf
        last = np.partition(squares, NEIGHBORS - 1)[NEIGHBORS - 1]
        shares.append(np.mean(squares[found] <= last * (1 + 1e-5) + 1e-9))
    return float(np.mean(shares))


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files of a run."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def one_row(name: str, path: Path, metric: str, folder: Path, memory: str) -> dict[str, Any]:
    """Return what the graph of a set takes."""
    run = folder / f"run-{path.stem}"
    shutil.rmtree(run, ignore_errors=True)
    asked = settings(neighbors__n_neighbors=NEIGHBORS, neighbors__recall=RECALL)
    total = scalemani(
        "embed", str(path), str(run), "--method", "knn-graph", "--metric", metric, "--memory", memory, *asked
    )
    points = sp.csr_matrix(sp.load_npz(path))
    found = records(run)["stages"]["neighbors"]["certificates"]
    given = points.data.nbytes + points.indices.nbytes + points.indptr.nbytes
    row = {"points": name, "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}
    row |= {"certificate": found["recall"], "recall": true_recall(points, metric, run)}
    return {**row, "disk GB": bytes_below(run) / 1e9, "of the input": bytes_below(run) / given}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=["tfidf", "counts"], default=["tfidf", "counts"])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--memory", default="4GB")
    arguments = parser.parse_args()
    rows = []
    if "tfidf" in arguments.sets:
        rows.append(one_row("tfidf", filled_tfidf_file(arguments.folder), "cosine", arguments.folder, arguments.memory))
    if "counts" in arguments.sets:
        path = counts_file(arguments.folder, arguments.points)
        rows.append(one_row("counts", path, "euclidean", arguments.folder, arguments.memory))
    show(rows)


if __name__ == "__main__":
    main()
