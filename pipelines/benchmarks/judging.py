"""The true recall of a neighbour graph: rows drawn apart from those of its certificate, compared with all points."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measuring import Measured, records, scalemani, settings
from scipy.spatial.distance import jaccard

from scalemani.runs.opened import open_run
from scalemani.stages.arrays.graph import StoredGraph

N_QUERIES = 1000
QUERY_SEED = 20_261  # not the seed of the certificate: its sample must be another
BYTES_AT_ONCE = 2**28
SPARE = 30  # candidates in float32 beyond the k that are wanted


@dataclass(frozen=True)
class Judged:
    """Points (N, D), dense or CSR, rows among them that are judged, and the squares of their true k-th distances.

    Of boolean points, which are sets, distances are Jaccard's, and not squared.
    """

    points: np.ndarray | sp.csr_matrix
    queries: np.ndarray
    truth: np.ndarray
    k: int


def judged(folder: Path, name: str, points: np.ndarray | sp.csr_matrix, k: int) -> Judged:
    """Return points of a name with the truth about 1,000 of them, which is kept in the folder."""
    n_points = points.shape[0]
    queries = np.sort(np.random.default_rng(QUERY_SEED).choice(n_points, min(N_QUERIES, n_points), replace=False))
    path = folder / f"true-squares-{name}-{k}.npy"
    if not path.exists():
        np.save(path, true_squares(points, queries, k))
    return Judged(points, queries, np.load(path), k)


def dense(rows: np.ndarray | sp.csr_matrix, dtype: type) -> np.ndarray:
    """Return rows as a dense array."""
    return rows.toarray().astype(dtype) if sp.issparse(rows) else np.asarray(rows).astype(dtype)


def true_squares(points: np.ndarray | sp.csr_matrix, queries: np.ndarray, k: int) -> np.ndarray:
    """Return the squared distance to the k-th nearest neighbour of each query: (Q,) float64, exact for integers."""
    n_points, features = points.shape
    at_once = max(1, BYTES_AT_ONCE // max(4 * features, 8 * len(queries)))
    wanted, kept = dense(points[queries], np.float32), min(k + SPARE, n_points - 1)
    candidates = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, n_points, at_once):
        rows = dense(points[start : start + at_once], np.float32)
        products = wanted @ rows.T
        if points.dtype == np.bool_:
            sizes = np.add.outer(wanted.sum(axis=1), rows.sum(axis=1))
            block = -products / np.maximum(sizes - products, 1)
        else:
            block = np.einsum("ij,ij->i", rows, rows) - 2 * products
        scores = np.hstack([scores, block])
        candidates = np.hstack([candidates, np.broadcast_to(np.arange(start, start + len(rows)), block.shape)])
        best = np.argpartition(scores, min(kept, scores.shape[1] - 1), axis=1)[:, : kept + 1]
        scores, candidates = np.take_along_axis(scores, best, 1), np.take_along_axis(candidates, best, 1)
    squares = squared(points, queries, candidates)
    squares[candidates == queries[:, None]] = np.inf
    return np.sort(squares, axis=1)[:, k - 1]


def squared(points: np.ndarray | sp.csr_matrix, queries: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return squared distances of each query to its neighbours: (Q, m) float64, exact for integers."""
    found = np.empty(neighbors.shape)
    for i, query in enumerate(queries):
        rows = dense(points[np.sort(neighbors[i])], np.float64)
        own = dense(points[query : query + 1], np.float64)
        squares = np.einsum("ij,ij->i", rows - own, rows - own)
        if points.dtype == np.bool_:
            squares = np.array([jaccard(row, own[0]) for row in rows.astype(bool)])
        found[i, np.argsort(neighbors[i], kind="stable")] = squares
    return found


def recall(graph: Judged, found: np.ndarray) -> float:
    """Return the share of the k true neighbours that are found (Q, k): the mean of `shares`."""
    return float(np.mean(shares(graph, found)))


def shares(graph: Judged, found: np.ndarray) -> np.ndarray:
    """Return the share (Q,) of each query's k true neighbours in its list: distinct rows no farther than the k-th.

    -1 stands for none; the query itself is none.
    """
    found = np.sort(np.asarray(found, dtype=np.int64), axis=1)
    counted = (found >= 0) & (found != graph.queries[:, None])
    counted[:, 1:] &= found[:, 1:] != found[:, :-1]
    squares = np.where(counted, squared(graph.points, graph.queries, found), np.inf)
    inexact = graph.points.dtype.kind in "bf"  # what is equally far in float32 ties
    rounding = 4 * np.finfo(np.float32).eps if inexact else 0.0
    return np.mean(squares <= graph.truth[:, None] * (1 + rounding), axis=1)


def asked_for(
    asked: float, points: str, graph: Judged, run: Path, options: Sequence[str]
) -> tuple[Measured, dict[str, Any], np.ndarray]:
    """Run the command of a graph of some recall anew; return what it took, its stages' records and its lists (N, k).

    `options` of the command come after its setting.
    """
    shutil.rmtree(run, ignore_errors=True)
    setting = settings(neighbors__n_neighbors=graph.k, affinities__perplexity=5, neighbors__recall=asked)
    command = scalemani("embed", points, str(run), "--method", "knn-graph", *setting, *options)
    return command, records(run)["stages"], StoredGraph(open_run(run).group("graph")).indices.zarr()[...]
