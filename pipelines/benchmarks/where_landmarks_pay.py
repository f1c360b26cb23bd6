"""Where locally linear landmarks pay: their error and seconds beside those of refinement, from one W.

    python pipelines/benchmarks/where_landmarks_pay.py WORK_FOLDER --points 20000 --neighbors 15 200 --components 2 50
    python pipelines/benchmarks/where_landmarks_pay.py WORK_FOLDER --points 1020000 --neighbors 15 --components 10 \
        --methods random --landmarks 1000 2000 5000 10000 20000 --landmark-neighbors 3 5 10 --memory 20GB

The points are MNIST digits up to 60,000, infinite digits above. The reference is a refinement to a residual of 1e-7;
the error is that after Procrustes alignment to it, and "angle" that between the subspaces, in radians. "1-NN" is the
share of 10,000 digits whose nearest other one in the embedding has their label, "NMI" that of k-means of the embedding
with the labels. Seconds hold everything from W on: landmarks, Z, the reduced
problem and Z times its solution for `lll`; coarse graphs, their vectors and passes for `refine`. "Z at hand" leaves
landmarks and Z out, which is what each further choice of affinities costs. "refine as good" is the quickest refinement
whose error is at most that of the landmarks, and "pays" says by how many times the landmarks are ahead of it, with Z to
be made and with Z at hand: below 1 they are behind.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits, training_digits, training_labels
from measuring import records, scalemani, settings, show
from sklearn.cluster import MiniBatchKMeans

import scalemani as sm
from scalemani.kernels.measures import label_hits
from scalemani.runs.opened import open_run

REFERENCE, REFERENCE_PASSES = 1e-7, 60
RESIDUALS = (3e-1, 1e-1, 3e-2, 1e-2, 1e-3)
LANDMARKS = (500, 2000, 10_000)
SHARE_OF_POINTS = 5  # landmarks are at most one in so many points
FROM_LANDMARKS = ("landmarks", "landmark_weights", "reduced", "landmark_embedding", "embedding")
WITH_Z = ("reduced", "landmark_embedding", "embedding")
REFINING = ("coarse_graphs", "coarse_embedding", "embedding")
NEIGHBORS_A_PERPLEXITY = 3
JUDGED_POINTS = 10_000


def digits_file(folder: Path, n_points: int) -> Path:
    """Return the file of so many digits, made where it is not there yet."""
    if n_points > len(training_digits()):
        return million_digits(folder, n_points)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mnist-{n_points}.npy"
    if not path.exists():
        np.save(path, training_digits()[:n_points])
    return path


class Case:
    """One W: the run that holds it, and what its runs share."""

    def __init__(self, folder: Path, n_points: int, n_neighbors: int, memory: str) -> None:
        self.n_points, self.n_neighbors, self.labels = n_points, n_neighbors, training_labels(n_points)
        self._points, self._run = digits_file(folder, n_points), folder / f"pays-{n_points}-{n_neighbors}"
        perplexity = n_neighbors / NEIGHBORS_A_PERPLEXITY
        graph = settings(neighbors__n_neighbors=n_neighbors, affinities__perplexity=perplexity)
        self._common = ["--memory", memory, *graph]

    def solved(self, parts: tuple[str, ...], **parameters: Any) -> tuple[np.ndarray, dict[str, float], dict[str, Any]]:
        """Run and return the embedding, the seconds of each of the stages named, and the certificates."""
        scalemani(
            "embed",
            str(self._points),
            str(self._run),
            *self._common,
            *settings(**{"embedding__solver": "refine", **parameters}),
        )
        stages = records(self._run)["stages"]
        seconds = {name: float(stages[name]["seconds"]) for name in parts}
        return np.asarray(open_run(self._run).embedding[...]), seconds, stages["embedding"]["certificates"]


def quality(found: np.ndarray, exact: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return how far an embedding (N, d) is from the exact one, and how well it keeps labels (N,) together."""
    rows = np.sort(np.random.default_rng(0).choice(len(found), min(JUDGED_POINTS, len(found)), replace=False))
    clusters = MiniBatchKMeans(len(np.unique(labels)), n_init=5, random_state=0).fit_predict(found / found.std(axis=0))
    return {
        "error": sm.measures.procrustes_error(found, exact),
        "angle": sm.measures.subspace_angle(found, exact),
        "1-NN": float(label_hits(found, labels, 1, rows).mean()),
        "NMI": sm.measures.normalized_mutual_information(clusters, labels),
    }


def compared(
    case: Case, n_components: int, methods: list[str], sizes: list[int], widths: list[int]
) -> list[dict[str, Any]]:
    """Return a row for every refinement, and one for every choice of landmarks and of their number a point."""
    common = {"landmark_embedding__n_components": n_components}
    exact, _, _ = case.solved((), **common, embedding__residual=REFERENCE, embedding__max_passes=REFERENCE_PASSES)
    shared = {"points": case.n_points, "K_W": case.n_neighbors, "d": n_components}
    rows: list[dict[str, Any]] = []
    for residual in RESIDUALS:
        found, seconds, certificates = case.solved(REFINING, **common, embedding__residual=residual)
        row = {"solver": f"refine to {residual:g}", **quality(found, exact, case.labels)}
        rows.append({**shared, **row, "seconds": sum(seconds.values()), "passes": certificates["passes"]})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    refined = list(rows)
    for size in (size for size in sizes if n_components < size <= case.n_points // SHARE_OF_POINTS):
        for method, width in itertools.product(methods, widths):
            chosen = {"landmarks__n_landmarks": size, "landmarks__method": method, "embedding__solver": "lll"}
            found, seconds, _ = case.solved(FROM_LANDMARKS, **common, **chosen, landmark_weights__n_neighbors=width)
            whole, again = sum(seconds.values()), sum(seconds[name] for name in WITH_Z)
            row = {"solver": f"{size} {method}", "K_Z": width, **quality(found, exact, case.labels)}
            row |= {"seconds": whole, "Z at hand": again}
            as_good = [other["seconds"] for other in refined if other["error"] <= row["error"]]
            if as_good:
                row |= {"refine as good": min(as_good), "pays": min(as_good) / whole, "pays, Z": min(as_good) / again}
            rows.append({**shared, **row})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, nargs="+", default=[20_000])
    parser.add_argument("--neighbors", type=int, nargs="+", default=[15, 200, 1000])
    parser.add_argument("--components", type=int, nargs="+", default=[2, 10, 50])
    parser.add_argument("--methods", nargs="+", default=["random", "kmeans", "minmax"])
    parser.add_argument("--landmarks", type=int, nargs="+", default=LANDMARKS)
    parser.add_argument("--landmark-neighbors", type=int, nargs="+", default=[5], help="K_Z")
    parser.add_argument("--memory", default="8GB")
    arguments = parser.parse_args()
    rows = []
    for n_points in arguments.points:
        for n_neighbors in arguments.neighbors:
            case = Case(arguments.folder, n_points, n_neighbors, arguments.memory)
            for n_components in arguments.components:
                rows += compared(
                    case, n_components, arguments.methods, arguments.landmarks, arguments.landmark_neighbors
                )
    show(rows)


if __name__ == "__main__":
    main()
