"""How many landmarks an angle to the refined embedding takes: digits, cells and a roll, batch by batch.

python pipelines/benchmarks/grown_landmarks.py --points 2000 --angle 0.1
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import scalemani as sm


def digits(n_points: int) -> np.ndarray:
    """Return digits of MNIST."""
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        return file["X"][:n_points].astype(np.float64)


def cells(n_points: int) -> np.ndarray:
    """Return twenty principal components of the logarithms of shares of counts."""
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "sc_paul15.npz", allow_pickle=False) as file:
        counts = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), tuple(file["shape"])).toarray()
    shares = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))[:n_points]
    left, values, _ = np.linalg.svd(shares - shares.mean(axis=0), full_matrices=False)
    return left[:, :20] * values[:20]


def roll(n_points: int) -> np.ndarray:
    """Return points of a Swiss roll."""
    from sklearn.datasets import make_swiss_roll

    return np.asarray(make_swiss_roll(n_points, random_state=0)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--angle", type=float, default=0.1)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--neighbors", type=int, default=15)
    arguments = parser.parse_args()
    print("| points | N | landmarks for the angle | angle by landmarks | rows of Z renewed | seconds | of refine |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, read in (("roll", roll), ("cells", cells), ("digits", digits)):
        points = read(arguments.points)
        started = time.perf_counter()
        model = sm.LaplacianEigenmaps(2, n_neighbors=arguments.neighbors, solver="refine", residual=1e-6)
        exact, refined = model.fit_transform(points), time.perf_counter() - started
        graph = sm.knn_graph(points, n_neighbors=arguments.neighbors)
        values = sm.entropic_affinities(graph.distances, arguments.neighbors / 3).values
        W = sm.symmetric_affinities(graph.indices, values)
        started = time.perf_counter()
        found = sm.grow_landmarks(points, W, exact, angle=arguments.angle, batch=arguments.batch)
        seconds, every = time.perf_counter() - started, max(1, len(found.sizes) // 5)
        course = ", ".join(
            f"{size}: {angle:.2f}" for size, angle in zip(found.sizes[::every], found.angles[::every], strict=True)
        )
        needed = f"{found.sizes[-1]:,}" if found.reached else "not reached"
        shares = found.renewed.sum() / (len(points) * len(found.sizes))
        print(
            f"| {name} | {len(points):,} | {needed} | {course} | {shares:.0%} | {seconds:.1f} | {refined:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
