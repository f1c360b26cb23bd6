"""Maps of 20 Newsgroups by TF-IDF and the cosine beside openTSNE and umap: seconds, memory, label accuracy.

    python pipelines/benchmarks/tfidf_maps.py WORK_FOLDER --peer-python PYTHON [--seeds 0 1 2]

PYTHON is an interpreter of an environment with openTSNE and umap-learn. Every side has the same sparse rows (documents
that hold a word, 43,374 columns), the cosine and two threads; each is a command of its own that reads the rows and
writes the map. Accuracy is the share of documents that most of their 15 nearest in the map agree with, of 20 groups;
preservation the share of the true 15 neighbours by the cosine that are among the 15 nearest of the map.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measuring import THREAD_VARIABLES, Measured, measured, scalemani, settings, show
from recall import data_file
from sparse import filled_tfidf_file

from scalemani.kernels.measures import label_hits, nearest_others
from scalemani.runs.opened import open_run

NEIGHBORS, PERPLEXITY, THREADS = 15, 30, 2
JUDGED = 5000
ROWS_AT_ONCE = 1000

PEER = """
import sys
import numpy as np, scipy.sparse as sp
name, path, target = sys.argv[1:4]
points, seed, n_jobs = sp.csr_matrix(sp.load_npz(path)), int(sys.argv[4]), int(sys.argv[5])
if name == "openTSNE":
    from openTSNE import TSNE
    found = TSNE(metric="cosine", random_state=seed, n_jobs=n_jobs).fit(points)
else:
    import umap
    found = umap.UMAP(metric="cosine", n_jobs=n_jobs).fit_transform(points)  # a seed would take its threads
np.save(target, np.asarray(found))
"""


def labels_of() -> np.ndarray:
    """Return the group of each document that holds a word: (n,) uint8."""
    with np.load(data_file("news20_labels.npz")) as file:
        labels = file["y"]
    counts = sp.csr_matrix(sp.load_npz(data_file("news20_counts.npz")))
    return labels[np.flatnonzero(np.diff(counts.indptr))]


def true_neighbors(points: sp.csr_matrix, queries: np.ndarray) -> np.ndarray:
    """Return the 15 rows nearest to each query by the cosine: (Q, 15)."""
    found = []
    for start in range(0, len(queries), ROWS_AT_ONCE):
        own = queries[start : start + ROWS_AT_ONCE]
        products = (points[own] @ points.T).toarray()
        products[np.arange(len(own)), own] = -np.inf
        found.append(np.argpartition(-products, NEIGHBORS, axis=1)[:, :NEIGHBORS])
    return np.concatenate(found)


def judged(measure: Measured, embedding: np.ndarray, labels: np.ndarray, queries: np.ndarray, true: np.ndarray) -> Any:
    """Return what a command took and how good its map is."""
    everyone = np.arange(len(labels))
    found = nearest_others(embedding, queries, NEIGHBORS)
    kept = [np.intersect1d(one, other).size for one, other in zip(found, true, strict=True)]
    return {
        "seconds": measure.seconds,
        "peak GB": measure.peak_bytes / 1e9,
        "accuracy": float(label_hits(embedding, labels, NEIGHBORS, everyone).mean()),
        "preservation": float(np.mean(kept)) / NEIGHBORS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], help="further parameters of our runs")
    parser.add_argument("--peers", nargs="*", choices=["openTSNE", "umap"], default=["openTSNE", "umap"])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path, run, target = filled_tfidf_file(arguments.folder), arguments.folder / "run-maps", arguments.folder / "map.npy"
    points, labels = sp.csr_matrix(sp.load_npz(path)), labels_of()
    queries = np.sort(np.random.default_rng(1).choice(len(labels), JUDGED, replace=False))
    true, rows = true_neighbors(points, queries), []
    for seed in arguments.seeds:
        shutil.rmtree(run, ignore_errors=True)
        asked = settings(affinities__perplexity=PERPLEXITY, seed=seed) + [f"--set={one}" for one in arguments.set]
        own = ("embed", str(path), str(run), "--method", "t-sne", "--metric", "cosine", *asked)
        taken = scalemani(*own)
        found = np.asarray(open_run(run).embedding[...], dtype=np.float64)
        rows.append({"map": "scalemani", "seed": seed, **judged(taken, found, labels, queries, true)})
        for name in arguments.peers:
            command = [arguments.peer_python, "-c", PEER, name, str(path), str(target), str(seed), str(THREADS)]
            taken = measured(command, dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
            found = np.load(target).astype(np.float64)
            rows.append({"map": name, "seed": seed, **judged(taken, found, labels, queries, true)})
    show(rows)


if __name__ == "__main__":
    main()
