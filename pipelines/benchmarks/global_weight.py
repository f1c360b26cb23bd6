"""What a pull towards principal components keeps of t-SNE and gains of the whole, and what it takes, beside a peer.

    python pipelines/benchmarks/global_weight.py WORK_FOLDER [--set digits|cells|tokens] [--points N] [--weights 0 1 3]
        [--peer PYTHON]

One run a weight, each over the graph of the first. The judge is scikit-learn's search of all points from a sample, and
distances of random triplets of points: the share of the 15 nearest that a map keeps, beside that of weight 0, and that
of triplets whose nearer point is the same in map and data, beside two principal components. Seconds are those of the
descents. PYTHON has manifolds-rs 0.4.1, whose t-SNE and DREAMS are then judged alike, with their whole seconds.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from digits import million_digits
from doubt import N_WRITTEN, cells, read
from measuring import measured, scalemani, show
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

N_QUERIES, N_TRIPLETS, K = 2000, 40_000, 15
FITTED = 100_000  # points that principal components are fitted to at most
PEER = """
import sys, time
import numpy as np
import manifolds_rs
name, points, written = sys.argv[1:]
model = getattr(manifolds_rs, name)(perplexity=30.0, approx="fft")
points = np.ascontiguousarray(np.load(points), np.float32)
started = time.perf_counter()
embedding = model.fit_transform(points)
print(time.perf_counter() - started)
np.save(written, np.asarray(embedding, np.float64))
"""


def points_of(name: str, folder: Path, n_points: int) -> Path:
    """Return the file of the points of a set."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "digits" and n_points > N_WRITTEN:
        return million_digits(folder, n_points)
    path = folder / f"{name}-{n_points}.npy"
    if name == "digits":
        points = read("mnist.npz")["X"][:n_points]
    elif name == "cells":  # as people embed them: by fifty components
        points = PCA(50, random_state=0).fit_transform(cells()[0]).astype(np.float32)
    else:
        file = read("tokens384.npz")
        points = file[file.files[0]][:n_points].astype(np.float32)
    np.save(path, points)
    return path


class Judge:
    """What maps of points (N, D) keep, by a sample of rows and random triplets that are drawn once."""

    def __init__(self, points: np.ndarray):
        draws, n_points = np.random.default_rng(7), len(points)
        self.rows = np.sort(draws.choice(n_points, min(N_QUERIES, n_points), replace=False))
        self.triplets = draws.integers(n_points, size=(N_TRIPLETS, 3))
        self.triplets = self.triplets[(self.triplets[:, 1] != self.triplets[:, 2])]
        self.near = self.nearest(points)
        self.first = self.nearer(points)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Return the nearest others (n, 15) of the sample."""
        everyone = np.asarray(points, np.float32)
        search = NearestNeighbors(n_neighbors=K + 1, algorithm="auto" if everyone.shape[1] < 4 else "brute")
        found = search.fit(everyone).kneighbors(everyone[self.rows], return_distance=False)
        return np.array([row[row != own][:K] for row, own in zip(found, self.rows, strict=True)])

    def nearer(self, points: np.ndarray) -> np.ndarray:
        """Return whether the second point of each triplet is nearer to the first than the third is."""
        one, second, third = (np.asarray(points[column], np.float64) for column in self.triplets.T)
        return np.linalg.norm(one - second, axis=1) < np.linalg.norm(one - third, axis=1)

    def of(self, positions: np.ndarray) -> dict[str, float]:
        """Return the preservation and the triplet accuracy of a map."""
        near = self.nearest(positions)
        kept = [len(np.intersect1d(one, other)) / K for one, other in zip(near, self.near, strict=True)]
        return {"preservation": float(np.mean(kept)), "triplets": float(np.mean(self.nearer(positions) == self.first))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=("digits", "cells", "tokens"), default="digits")
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--weights", type=float, nargs="+", default=[0, 1, 3])
    parser.add_argument("--peer", help="a Python that imports manifolds_rs")
    given = parser.parse_args()
    path = points_of(given.set, given.folder, given.points)
    points = np.load(path, mmap_mode="r")
    judge, every = Judge(points), max(1, len(points) // FITTED)
    plane = PCA(2, random_state=0).fit(np.asarray(points[::every], np.float64))
    lines: list[dict[str, Any]] = [{"map": "PCA", "s": "", **judge.of(plane.transform(np.asarray(points, np.float32)))}]
    for weight in given.weights:
        run = given.folder / f"{path.stem}-run"
        scalemani("embed", str(path), str(run), "--method", "t-sne", "--set", f"layout.global_weight={weight:g}")
        written = given.folder / f"{path.stem}-{weight:g}.npy"
        written.unlink(missing_ok=True)
        scalemani("export", str(run), str(written))
        seconds = json.loads(scalemani("info", str(run), "--json").output)["stages"]["layout"]["seconds"]
        positions = np.load(written)
        lines.append({"map": f"t-SNE, weight {weight:g}", "s": round(seconds, 1), **judge.of(positions)})
    for name in ("TSNE", "DREAMS") if given.peer else ():
        taken = measured([given.peer, "-c", PEER, name, str(path), str(given.folder / "peer.npy")])
        positions = np.load(given.folder / "peer.npy")
        lines.append({"map": f"manifolds-rs {name}", "s": round(float(taken.output), 1), **judge.of(positions)})
    local, whole = (next(one for one in lines if one["map"] == name) for name in ("t-SNE, weight 0", "PCA"))
    for line in lines:
        line["of t-SNE's"] = round(line["preservation"] / local["preservation"], 3)
        line["of PCA's"] = round(line["triplets"] / whole["triplets"], 3)
    show(lines)


if __name__ == "__main__":
    main()
