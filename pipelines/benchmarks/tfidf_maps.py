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
from sparse_points import filled_tfidf_file

from scalemani.interfaces.functions.measures import neighbor_preservation
from scalemani.kernels.measures import label_hits
from scalemani.runs.opened import open_run

NEIGHBORS, PERPLEXITY, THREADS = 15, 30, 2
JUDGED = 5000

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


def judged(measure: Measured, embedding: np.ndarray, labels: np.ndarray, points: sp.csr_matrix) -> Any:
    """Return what a command took and how good its map is."""
    everyone = np.arange(len(labels))
    kept = neighbor_preservation(points, embedding, NEIGHBORS, metric="cosine", n_sampled=JUDGED, random_state=1)
    return {
        "seconds": measure.seconds,
        "peak GB": measure.peak_bytes / 1e9,
        "accuracy": float(label_hits(embedding, labels, NEIGHBORS, everyone).mean()),
        "preservation": kept.value,
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
    rows: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        shutil.rmtree(run, ignore_errors=True)
        asked = settings(affinities__perplexity=PERPLEXITY, seed=seed) + [f"--set={one}" for one in arguments.set]
        own = ("embed", str(path), str(run), "--method", "t-sne", "--metric", "cosine", *asked)
        taken = scalemani(*own)
        found = np.asarray(open_run(run).embedding[...], dtype=np.float64)
        rows.append({"map": "scalemani", "seed": seed, **judged(taken, found, labels, points)})
        for name in arguments.peers:
            command = [arguments.peer_python, "-c", PEER, name, str(path), str(target), str(seed), str(THREADS)]
            taken = measured(command, dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
            found = np.load(target).astype(np.float64)
            rows.append({"map": name, "seed": seed, **judged(taken, found, labels, points)})
    show(rows)


if __name__ == "__main__":
    main()
