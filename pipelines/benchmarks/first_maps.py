"""The first map of a process, imports included: t-SNE versus openTSNE, scikit-learn and umap at their defaults.

    python pipelines/benchmarks/first_maps.py FOLDER [--points 5000 20000] [--repeats 3] [--peer-path FOLDER]

Every map is made by a process of its own, which imports the library, reads the first digits of `mnist.npz` in
SCALEMANI_DATA as float32 (N, 784), and fits with as many threads as there are processors. A first process of ours,
which compiles where machine code is missing, is not counted. --peer-path is where the peers are installed beside this
environment. Rows are medians of wall and processor seconds, and the largest peak of memory; three figures judge the
last map: accuracy of the nearest neighbour's label over all points, and trustworthiness and the share of the true 15
neighbours that are kept, over the same 2,000 points for all.

    python pipelines/benchmarks/first_maps.py FOLDER --documents

takes the 20 Newsgroups in place of the digits: TF-IDF, 256 singular vectors, rows of length one, (18,846, 256) float32.
Beside maps there are our eigenmaps and spectral clusters; scikit-learn's embedding had not ended after five minutes.
"NMI" is the normalised mutual information of the groups and of 20 clusters: those that a side returns, else k-means of
its positions.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp
from digits import mnist_file
from measuring import measured, show
from recall import data_file
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

import scalemani as sm

OURS = "scalemani"
FITS = {
    OURS: "import scalemani; found = scalemani.TSNE().fit_transform(points)",
    "openTSNE": "import openTSNE; found = openTSNE.TSNE(n_jobs=threads, random_state=0).fit(points)",
    "scikit-learn": "import sklearn.manifold as m; found = m.TSNE(n_jobs=threads).fit_transform(points)",
    "umap": "import umap; found = umap.UMAP(n_jobs=threads).fit_transform(points)",
}
SPECTRAL = {
    "scalemani eigenmaps": "import scalemani; "
    "found = scalemani.LaplacianEigenmaps(n_components=20).fit_transform(points)",
    "scalemani clusters": "import scalemani; found = scalemani.SpectralClustering(n_clusters=20).fit_predict(points)",
}
PROGRAM = """
import os, sys
import numpy as np
points, threads = np.load(sys.argv[1]), len(os.sched_getaffinity(0))
{fit}
np.save(sys.argv[2], np.asarray(found))
"""
JUDGED = 2000
GROUPS = 20


def fit(name, points, target, peer_path):
    """Make a map in a process of its own; return what that took."""
    environment = {"PYTHONPATH": peer_path} if peer_path and OURS not in name else {}
    return measured(
        [sys.executable, "-c", PROGRAM.format(fit=(FITS | SPECTRAL)[name]), str(points), str(target)], environment
    )


def row(name, n_points, labels, folder, asked):
    """Return what the maps of a library took and how good the last one is."""
    points, target = folder / f"points-{n_points}.npy", folder / f"map-{name}-{n_points}.npy"
    taken = [fit(name, points, target, asked.peer_path) for _ in range(asked.repeats)]
    table, positions = np.load(points), np.load(target)
    judged = {"n_sampled": min(JUDGED, n_points)}
    took = {
        "library": name,
        "points": n_points,
        "seconds": median(one.seconds for one in taken),
        "processor seconds": median(one.processor_seconds for one in taken),
        "peak GB": max(one.peak_bytes for one in taken) / 1e9,
    }
    if asked.documents:
        clusters = positions if positions.ndim == 1 else KMeans(GROUPS, random_state=0).fit_predict(positions)
        took["NMI"] = normalized_mutual_info_score(labels[:n_points], clusters)
    if positions.ndim == 1:
        return took
    return {
        **took,
        "1-NN accuracy": sm.measures.knn_accuracy(positions, labels[:n_points], n_sampled=None).value,
        "trustworthiness": sm.measures.trustworthiness(table, positions, **judged).value,
        "kept of 15": sm.measures.neighbor_preservation(table, positions, **judged).value,
    }


def documents():
    """Return the documents of 20 Newsgroups as vectors (N, 256) float32 of length one, and their groups (N,)."""
    with np.load(data_file("news20_labels.npz"), allow_pickle=False) as file:
        groups = file["y"]
    words = TfidfTransformer(sublinear_tf=True).fit_transform(sp.load_npz(data_file("news20_counts.npz")))
    vectors = TruncatedSVD(256, random_state=0).fit_transform(words)
    return normalize(vectors).astype(np.float32), groups


def digits():
    """Return the digits (N, 784) float32, and what they are (N,)."""
    with np.load(mnist_file(), allow_pickle=False) as file:
        return file["X"].astype(np.float32), file["y"]


def main():
    """Print a row for each library and number of points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, nargs="+", default=[5000, 20000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-path", default=os.environ.get("PYTHONPATH", ""))
    parser.add_argument("--documents", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[*FITS, *SPECTRAL])
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    points, labels = documents() if asked.documents else digits()
    sides = asked.only or [*FITS, *(SPECTRAL if asked.documents else ())]
    counts = [len(points)] if asked.documents else asked.points
    for n_points in counts:
        np.save(folder / f"points-{n_points}.npy", points[:n_points])
    if OURS in sides:
        fit(OURS, folder / f"points-{counts[0]}.npy", folder / "warm.npy", "")
    show([row(name, n_points, labels, folder, asked) for n_points in counts for name in sides])


if __name__ == "__main__":
    main()
