"""Neighbours of sparse points, kept sparse all the way: seconds, memory, disk and recall of one command.

    python pipelines/benchmarks/sparse_points.py WORK_FOLDER [--sets tfidf counts] [--points 1000000] [--memory 4GB]
                                          [--peer-python PYTHON [--peer-alone]]

`tfidf` is 20 Newsgroups (18,846 x 43,374, its empty documents left out) by the cosine; `counts` are draws of so many
points of 30,000 columns, one hundredth of them filled, around a thousand topics, in an .h5ad file that is written and
read by blocks. Each row is `scalemani embed --method knn-graph` with k = 15 and a recall of 0.95. The truth is taken
over rows drawn apart from those of the certificate, by plain products. PYTHON is an interpreter with h5py,
scikit-learn and pynndescent: its rows are PCA to 50 columns of the sparse rows (at unit length where the metric is the
cosine), then pynndescent; its recall is by the same truth, that of the points before the projection.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse as sp
from measuring import THREAD_VARIABLES, measured, records, scalemani, settings, show
from recall import tfidf_file

from scalemani.io.sources import map_points, open_points
from scalemani.io.sources.base import PointsSource
from scalemani.runs.opened import open_run
from scalemani.stages.arrays.graph import StoredGraph

NEIGHBORS, RECALL = 15, 0.95
COLUMNS, FILLED, TOPICS, TOPIC_WORDS = 30_000, 300, 1000, 600
JUDGED = 500
ROWS_AT_ONCE = 50_000
COLUMN_BYTES = 4  # of the column of a nonzero, and of where a row begins, as SciPy holds them
HDF5_CHUNK = 2**20  # values: of some blocks of rows
PARTS = ("data", "indices", "indptr")

PEER = """
import json, sys, time
import h5py, numpy as np, scipy.sparse as sp
from pynndescent import NNDescent
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize
path, metric, k, queries, found = sys.argv[1], sys.argv[2], int(sys.argv[3]), np.load(sys.argv[4]), sys.argv[5]
begun = time.perf_counter()
if path.endswith(".npz"):
    points = sp.csr_matrix(sp.load_npz(path), dtype=np.float32)
else:
    with h5py.File(path) as file:
        parts = tuple(file["X"][name][...] for name in ("data", "indices", "indptr"))
        points = sp.csr_matrix(parts, shape=tuple(file["X"].attrs["shape"]), dtype=np.float32)
if metric == "cosine":
    points = normalize(points)
read = time.perf_counter()
reduced = PCA(50, svd_solver="arpack", random_state=0).fit_transform(points).astype(np.float32)
projected = time.perf_counter()
indices, _ = NNDescent(reduced, n_neighbors=k + 1, random_state=0).neighbor_graph
ended = time.perf_counter()
np.save(found, np.array([[j for j in indices[q] if j != q][:k] for q in queries]))
print(json.dumps({"read": read - begun, "PCA": projected - read, "search": ended - projected}))
"""


def counts_file(folder: Path, n_points: int) -> Path:
    """Return the file of counts (n, 30,000) int32 by compressed rows, made block by block where it is not there yet.

    A point has a topic; four fifths of its words are among the topic's own, the others are anywhere.
    """
    path = folder / f"counts-{n_points}.h5ad"
    if path.exists():
        return path
    partial = path.with_suffix(".partial")
    with h5py.File(partial, "w") as file:
        table = file.create_group("X")
        table.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (n_points, COLUMNS)})
        for name, dtype in zip(PARTS, ("int32", "int32", "int64"), strict=True):
            table.create_dataset(name, (0,), dtype, chunks=(HDF5_CHUNK,), maxshape=(None,))
        append(table["indptr"], np.zeros(1, np.int64))
        for part in counted_blocks(n_points):
            append(table["indptr"], len(table["data"]) + part.indptr[1:].astype(np.int64))
            append(table["data"], part.data)
            append(table["indices"], part.indices)
    partial.rename(path)
    return path


def append(values: h5py.Dataset, more: np.ndarray) -> None:
    """Write more values behind those of a data set."""
    before = len(values)
    values.resize(before + len(more), axis=0)
    values[before:] = more


def counted_blocks(n_points: int) -> Iterator[sp.csr_matrix]:
    """Yield the rows of the counts, so many at a time."""
    draws = np.random.default_rng(0)
    words = np.array([draws.choice(COLUMNS, TOPIC_WORDS, replace=False) for _ in range(TOPICS)], dtype=np.int32)
    own = FILLED * 4 // 5
    for start in range(0, n_points, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, n_points - start)
        topics = draws.integers(0, TOPICS, n_rows)
        chosen = words[topics[:, np.newaxis], draws.integers(0, TOPIC_WORDS, (n_rows, own))]
        columns = np.concatenate([chosen, draws.integers(0, COLUMNS, (n_rows, FILLED - own), dtype=np.int32)], axis=1)
        bounds = np.arange(0, columns.size + 1, FILLED)
        part = sp.csr_matrix((np.ones(columns.size, np.int32), columns.ravel(), bounds), shape=(n_rows, COLUMNS))
        part.sum_duplicates()
        yield part


def filled_tfidf_file(folder: Path) -> Path:
    """Return the file of the TF-IDF rows that hold a word: the others have no direction."""
    path = folder / "tfidf-filled.npz"
    if not path.exists():
        table = sp.csr_matrix(sp.load_npz(tfidf_file(folder)))
        sp.save_npz(path, table[np.flatnonzero(np.diff(table.indptr))])
    return path


@dataclass(frozen=True)
class Truth:
    """Points, rows (Q,) among them that are judged, and the squared distance of each to its true k-th neighbour."""

    points: PointsSource
    queries: np.ndarray
    farthest: np.ndarray

    def recall(self, found: np.ndarray) -> float:
        """Return the share of the true neighbours that are found (Q, k): distinct rows no farther than the k-th."""
        found = np.sort(found, axis=1)
        squares = np.full(found.shape, np.inf)
        for start, block in squared_blocks(self.points, self.queries):
            inside = (found >= start) & (found < start + len(block))
            query = np.nonzero(inside)[0]
            squares[inside] = block[found[inside] - start, query]
        squares[:, 1:][found[:, 1:] == found[:, :-1]] = np.inf
        return float(np.mean(squares <= self.farthest[:, np.newaxis] * (1 + 1e-5) + 1e-9))


def truth_of(path: Path, metric: str) -> Truth:
    """Return the truth about some rows of the points in a file, by plain products, block by block."""
    points = map_points(metric, open_points(path))
    assert isinstance(points, PointsSource)
    queries = np.sort(np.random.default_rng(1).choice(points.shape[0], JUDGED, replace=False))
    nearest = np.full((NEIGHBORS, JUDGED), np.inf)
    for start, squares in squared_blocks(points, queries):
        inside = np.flatnonzero((queries >= start) & (queries < start + len(squares)))
        squares[queries[inside] - start, inside] = np.inf
        nearest = np.partition(np.concatenate([nearest, squares]), NEIGHBORS - 1, axis=0)[:NEIGHBORS]
    return Truth(points, queries, nearest.max(axis=0))


def squared_blocks(points: PointsSource, queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each block of points, and the squared distances (n, Q) of its rows to the queries."""
    wanted = sp.vstack([points.read_sparse(row, row + 1) for row in queries.tolist()], format="csr").astype(np.float64)
    for start in range(0, points.shape[0], ROWS_AT_ONCE):
        rows = points.read_sparse(start, min(start + ROWS_AT_ONCE, points.shape[0])).astype(np.float64)
        products = (rows @ wanted.T).toarray()
        lengths = [np.asarray(table.multiply(table).sum(axis=1)).ravel() for table in (rows, wanted)]
        yield start, lengths[0][:, np.newaxis] + lengths[1] - 2 * products


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files of a run."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def one_row(name: str, path: Path, metric: str, truth: Truth, memory: str) -> dict[str, Any]:
    """Return what the graph of a set takes."""
    run = path.parent / f"run-{path.stem}"
    shutil.rmtree(run, ignore_errors=True)
    asked = settings(neighbors__n_neighbors=NEIGHBORS, neighbors__recall=RECALL)
    total = scalemani(
        "embed", str(path), str(run), "--method", "knn-graph", "--metric", metric, "--memory", memory, *asked
    )
    found = records(run)["stages"]["neighbors"]["certificates"]
    lists = StoredGraph(open_run(run).group(StoredGraph.STAGE)).indices.gather(truth.queries)
    row = {"points": name, "method": "scalemani", "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}
    row |= {"certificate": found["recall"], "recall": truth.recall(lists)}
    entry, n_points = truth.points.dtype.itemsize + COLUMN_BYTES, truth.points.shape[0]
    given = (truth.points.nonzeros or 0) * entry + n_points * COLUMN_BYTES
    return {**row, "disk GB": bytes_below(run) / 1e9, "of the input": bytes_below(run) / given}


def peer_row(name: str, path: Path, metric: str, truth: Truth, python: str) -> dict[str, Any]:
    """Return what PCA to 50 columns and pynndescent take, on two threads."""
    queries, found = path.parent / "queries.npy", path.parent / "found.npy"
    np.save(queries, truth.queries)
    command = [python, "-c", PEER, str(path), metric, str(NEIGHBORS), str(queries), str(found)]
    total = measured(command, dict.fromkeys(THREAD_VARIABLES, "2"))
    row = {"points": name, "method": "PCA-50, pynndescent", "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}
    return {**row, "recall": truth.recall(np.load(found)), **json.loads(total.output.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=["tfidf", "counts"], default=["tfidf", "counts"])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--peer-python", help="an interpreter with h5py, scikit-learn and pynndescent")
    parser.add_argument("--peer-alone", action="store_true", help="leave our side out")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.sets:
        if name == "tfidf":
            path, metric = filled_tfidf_file(arguments.folder), "cosine"
        else:
            path, metric = counts_file(arguments.folder, arguments.points), "euclidean"
        truth = truth_of(path, metric)
        if not arguments.peer_alone:
            rows.append(one_row(name, path, metric, truth, arguments.memory))
        if arguments.peer_python:
            rows.append(peer_row(name, path, metric, truth, arguments.peer_python))
    show(rows)


if __name__ == "__main__":
    main()
