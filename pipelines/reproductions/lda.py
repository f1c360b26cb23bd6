"""Figure 4.11 of the thesis: linear discriminants of labelled images by landmarks, beside those of a subset.

N images of MNIST with their labels, nine discriminants, K_Z = L, which takes long from some hundreds of landmarks on,
or K_Z as given. The subset is discriminant analysis of the L landmarks alone, applied to all images; the error of both
is the Procrustes error to the discriminants of all images. The paper takes 20,000 images of CIFAR and 10 to 20,000
landmarks; those are not at hand.

    python pipelines/reproductions/lda.py FOLDER
    python pipelines/reproductions/lda.py FOLDER --landmark-neighbors 50
    python pipelines/reproductions/lda.py FOLDER --points 2000 --landmarks 20 100 --runs 2

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 4.8.3.
"""

import argparse
import functools
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import scalemani as sm
from scalemani.figures import line_figure
from scalemani.kernels.arrays.draws import sample_rows

DISCRIMINANTS = 9


def by_landmarks(
    points: np.ndarray, labels: np.ndarray, n_landmarks: int, seed: int, n_neighbors: int | None = None
) -> np.ndarray:
    """Return the discriminants (N, 9) by locally linear landmarks, with K_Z = L where K_Z is not given."""
    n_combined = n_landmarks if n_neighbors is None else min(n_neighbors, n_landmarks)
    model = sm.LandmarkLDA(DISCRIMINANTS, n_landmarks=n_landmarks, landmark_neighbors=n_combined, random_state=seed)
    return model.fit(points, labels).embedding_


def by_subset(points: np.ndarray, labels: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return all points (N, 9) along the discriminants of a random subset; zeros where it lacks classes for more."""
    rows = sample_rows(seed, "subset", len(points), n_landmarks)
    found = LinearDiscriminantAnalysis().fit(points[rows], labels[rows]).transform(points)[:, :DISCRIMINANTS]
    return np.pad(found, ((0, 0), (0, DISCRIMINANTS - found.shape[1])))


def unit_columns(embedding: np.ndarray) -> np.ndarray:
    """Return centred columns of unit variance, so that no direction counts more than another."""
    centred = embedding - embedding.mean(axis=0)
    deviations = centred.std(axis=0)
    return centred / np.where(deviations > 0, deviations, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--landmarks", type=int, nargs="+", default=(20, 50, 100, 200, 500, 1000, 2000, 5000))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--landmark-neighbors", type=int, default=None, help="K_Z; as many as landmarks if not given")
    arguments = parser.parse_args()
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        points, labels = file["X"][: arguments.points].astype(np.float32), file["y"][: arguments.points]
    started = time.perf_counter()
    exact = LinearDiscriminantAnalysis().fit(points, labels).transform(points)[:, :DISCRIMINANTS]
    print(f"exact, by scikit-learn: {time.perf_counter() - started:.1f} s")
    exact = unit_columns(exact)
    methods: dict[str, Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]] = {
        "LLL": functools.partial(by_landmarks, n_neighbors=arguments.landmark_neighbors),
        "subset": by_subset,
    }
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    print("| landmarks | method | error | seconds |\n| --- | --- | --- | --- |")
    for n_landmarks in arguments.landmarks:
        for method, embed in methods.items():
            errors, seconds = [], []
            for seed in range(arguments.runs):
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of variables that are collinear in a small subset
                    embedding = embed(points, labels, n_landmarks, seed)
                seconds.append(time.perf_counter() - started)
                errors.append(sm.measures.procrustes_error(unit_columns(embedding), exact))
            found[method].append((float(np.mean(errors)), float(np.mean(seconds))))
            print(
                f"| {n_landmarks} | {method} | {np.mean(errors):.3f} ± {np.std(errors):.3f} | {np.mean(seconds):.2f} |",
                flush=True,
            )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    by_number = {method: (arguments.landmarks, [error for error, _ in kept]) for method, kept in found.items()}
    line_figure(by_number, arguments.folder / "lda-landmarks.png", "landmarks", "error", log_axes="xy")
    by_time = {method: tuple(np.array(kept).T[::-1]) for method, kept in found.items()}
    line_figure(by_time, arguments.folder / "lda-seconds.png", "seconds", "error", log_axes="xy")


if __name__ == "__main__":
    main()
