"""Figure 4.11 of the thesis: linear discriminants of labelled images by landmarks, compared with those of a subset.

N images with their labels, one discriminant less than classes, K_Z = L, which takes long from some hundreds of
landmarks on, or as requested. The subset is discriminant analysis of the L landmarks alone, applied to all images; the
error of both is the Procrustes error to the discriminants of all images. The paper takes 20,000 images of CIFAR, of
3,072 numbers each, and 10 to 20,000 landmarks; those are not at hand. `mnist` has 784 pixels, so that all images take
seconds. `coil` cuts 56 x 56 pixels at random places out of every picture of COIL-20, time and again.

    python pipelines/reproductions/lda.py FOLDER
    python pipelines/reproductions/lda.py FOLDER --images coil
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
from typing import NamedTuple

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import scalemani as sm
from scalemani.io.figures import line_figure
from scalemani.kernels.arrays.draws import generator, sample_rows

COIL_SIDE, COIL_CUT = 64, 56  # pixels a side after averaging 2 x 2, and of what is cut out
DISCARDED_LANDMARKS = 20


class Images(NamedTuple):
    """Images (N, D) float32 and their classes (N,)."""

    points: np.ndarray
    labels: np.ndarray

    @property
    def n_discriminants(self) -> int:
        """One less than classes."""
        return len(np.unique(self.labels)) - 1


def digits(n_points: int) -> Images:
    """Return the first digits of MNIST."""
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        return Images(file["X"][:n_points].astype(np.float32), file["y"][:n_points])


def objects(n_points: int) -> Images:
    """Return pieces of 56 x 56 pixels of the pictures of COIL-20, each picture in its turn."""
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "coil20.npz", allow_pickle=False) as file:
        pictures, labels = file["X"].reshape(-1, COIL_SIDE, 2, COIL_SIDE, 2), file["y"]
    pictures = pictures.mean(axis=(2, 4), dtype=np.float32)
    rows = np.arange(n_points) % len(pictures)
    corners = generator(0, "lda/corners", 0).integers(0, COIL_SIDE - COIL_CUT, (n_points, 2), endpoint=True)
    cut = np.lib.stride_tricks.sliding_window_view(pictures, (COIL_CUT, COIL_CUT), axis=(1, 2))
    return Images(cut[rows, corners[:, 0], corners[:, 1]].reshape(n_points, -1), labels[rows])


SETS = {"mnist": digits, "coil": objects}


def by_landmarks(images: Images, n_landmarks: int, seed: int, n_neighbors: int | None = None) -> np.ndarray:
    """Return the discriminants (N, c) by locally linear landmarks, with K_Z = L where K_Z is None."""
    n_combined = n_landmarks if n_neighbors is None else min(n_neighbors, n_landmarks)
    n_columns = min(images.n_discriminants, n_landmarks)
    model = sm.LandmarkLDA(
        n_columns, n_landmarks=n_landmarks, settings={"landmark_weights.n_neighbors": n_combined}, random_state=seed
    )
    return padded(model.fit(*images).embedding_, images.n_discriminants)


def by_subset(images: Images, n_landmarks: int, seed: int) -> np.ndarray:
    """Return all points (N, c) along the discriminants of a random subset."""
    rows = sample_rows(seed, "subset", len(images.points), n_landmarks)
    model = LinearDiscriminantAnalysis().fit(images.points[rows], images.labels[rows])
    return padded(model.transform(images.points), images.n_discriminants)


def padded(discriminants: np.ndarray, n_columns: int) -> np.ndarray:
    """Return as many columns; zeros where landmarks or a subset with fewer classes give fewer."""
    return np.pad(discriminants[:, :n_columns], ((0, 0), (0, max(0, n_columns - discriminants.shape[1]))))


def unit_columns(embedding: np.ndarray) -> np.ndarray:
    """Return centred columns of unit variance, so that no direction counts more than another."""
    centred = embedding - embedding.mean(axis=0)
    deviations = centred.std(axis=0)
    return centred / np.where(deviations > 0, deviations, 1.0)


def measured(embed: Callable[[int], np.ndarray], exact: np.ndarray, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (runs,) and seconds (runs,) of an embedding by seed."""
    errors, seconds = [], []
    for seed in range(runs):
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variables that are collinear in a small subset
            embedding = embed(seed)
        seconds.append(time.perf_counter() - started)
        errors.append(sm.measures.procrustes_error(unit_columns(embedding), exact))
    return np.array(errors), np.array(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", choices=SETS, default="mnist")
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--landmarks", type=int, nargs="+", default=(20, 50, 100, 200, 500, 1000, 2000, 5000))
    parser.add_argument("--subsets", type=int, nargs="+", default=(), help="further numbers of the subset alone")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--landmark-neighbors", type=int, default=None, help="K_Z; default: as many as landmarks")
    arguments = parser.parse_args()
    images = SETS[arguments.images](arguments.points)
    started = time.perf_counter()
    exact = unit_columns(LinearDiscriminantAnalysis().fit(*images).transform(images.points))
    print(f"exact, by scikit-learn: {time.perf_counter() - started:.1f} s")
    by_landmarks(images, DISCARDED_LANDMARKS, seed=0)  # kernels are compiled or loaded in it
    by_method: dict[str, Callable[[Images, int, int], np.ndarray]] = {
        "LLL": functools.partial(by_landmarks, n_neighbors=arguments.landmark_neighbors),
        "subset": by_subset,
    }
    results: dict[str, list[tuple[int, float, float]]] = {method: [] for method in by_method}
    print("| landmarks | method | error | seconds |\n| --- | --- | --- | --- |")
    for number in (*arguments.landmarks, *arguments.subsets):
        for method in by_method if number in arguments.landmarks else ("subset",):
            embed = functools.partial(by_method[method], images, number)
            errors, seconds = measured(embed, exact, arguments.runs)
            results[method].append((number, float(errors.mean()), float(seconds.mean())))
            print(
                f"| {number} | {method} | {errors.mean():.3f} ± {errors.std():.3f} | {seconds.mean():.2f} |", flush=True
            )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    curves = {method: np.array(columns).T for method, columns in results.items()}
    by_number = {method: (columns[0], columns[1]) for method, columns in curves.items()}
    line_figure(by_number, arguments.folder / "lda-landmarks.png", "landmarks", "error", log_axes="xy")
    by_time = {method: (columns[2], columns[1]) for method, columns in curves.items()}
    line_figure(by_time, arguments.folder / "lda-seconds.png", "seconds", "error", log_axes="xy")


if __name__ == "__main__":
    main()
