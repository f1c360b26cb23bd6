"""Lists of a FAISS index beside the points: what is certified of them, the truth, and the maps made of them.

    PYTHONPATH=FOLDER_WITH_FAISS python pipelines/benchmarks/handed_lists.py WORK_FOLDER [--points N] [--recall 0.8]

Hard patches, k = 30. The index of cells is searched with the fewest cells that reach the recall on a sample; 2 % of its
entries are then -1. The truth is that of 1,000 rows drawn apart from those of the certificate, by FAISS's flat index.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from measuring import show
from patches import patches_file

import scalemani as sm

K, QUERIES, MISSING = 30, 1000, 0.02


def share_found(indices: np.ndarray, true: np.ndarray, rows: np.ndarray) -> float:
    """Return the share of true neighbours (q, k + 1) of rows (q,), these left out, that lists (q, w) hold."""
    hits = [len(np.setdiff1d(np.intersect1d(*pair), [row])) for *pair, row in zip(indices, true, rows, strict=True)]
    return sum(hits) / (K * len(rows))


def lists_of(points: np.ndarray, true: np.ndarray, rows: np.ndarray, recall: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (squared distances, indices) of an index of cells that reaches a recall, with -1 in some places."""
    index = faiss.index_factory(points.shape[1], f"IVF{round(4 * len(points) ** 0.5)},Flat")
    index.train(points)
    index.add(points)
    while share_found(index.search(points[rows], K + 1)[1], true, rows) < recall and index.nprobe < index.nlist:
        index.nprobe += max(1, index.nprobe // 8)
    squares, indices = index.search(points, K + 1)
    gone = np.random.default_rng(1).random(indices.shape) < MISSING
    return np.where(gone, np.finfo(np.float32).max, squares), np.where(gone, -1, indices)


def row_of(model: Any, points: np.ndarray, lists: Any, true: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """Return what a model certifies of lists, and the truth."""
    started = time.perf_counter()
    model.fit(points, graph=lists)
    seconds, found = time.perf_counter() - started, model.certificates_["neighbors"]
    certified = {name: found[name] for name in ("given_recall", "recall", "incomplete_lists")}
    completed = model.run_.graph.indices[...][rows]
    truth = {"true_given": share_found(lists[1][rows], true, rows), "true": share_found(completed, true, rows)}
    return {"map": type(model).__name__, **certified, **truth, **model.certificates_["given_lists"], "seconds": seconds}


def main() -> None:
    """Print a row for eigenmaps and one for t-SNE."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--recall", type=float, default=0.8)
    asked = parser.parse_args()
    points = np.load(patches_file(asked.folder, asked.points)).astype(np.float32)
    rows = np.sort(np.random.default_rng(2).choice(len(points), QUERIES, replace=False))
    flat = faiss.IndexFlatL2(points.shape[1])
    flat.add(points)
    true = flat.search(points[rows], K + 1)[1]
    lists = lists_of(points, true, rows, asked.recall)
    kinds = (sm.LaplacianEigenmaps, sm.TSNE)
    stores = [asked.folder / f"handed-{asked.points}-{kind.__name__}" for kind in kinds]
    show([row_of(kind(store=at), points, lists, true, rows) for kind, at in zip(kinds, stores, strict=True)])


if __name__ == "__main__":
    main()
