"""New points in eigenmaps by three formulas: weights over landmarks, Nystrom's (Bengio) and means (Carreira-Perpinan).

Digits of MNIST, pixels over 255. A map of training and held-out digits together is what new digits should come to lie
in: the map of the training digits alone is brought onto it by Procrustes over the training digits, and the error of the
held-out ones is the norm of what separates them, over that of their places in the map of all.

    python pipelines/reproductions/out_of_sample.py FOLDER
    python pipelines/reproductions/out_of_sample.py FOLDER --points 400 --held-out 100

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, section 4.2.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import scalemani as sm

NEIGHBORS, PERPLEXITY = 60, 20


def onto(moved: np.ndarray, target: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and others after the similarity that brings the points nearest to a target."""
    mean, middle = moved.mean(axis=0), target.mean(axis=0)
    left, values, right = np.linalg.svd((moved - mean).T @ (target - middle))
    turn = left @ right * values.sum() / np.square(moved - mean).sum()
    return (moved - mean) @ turn + middle, (others - mean) @ turn + middle


def error(placed: np.ndarray, wanted: np.ndarray) -> float:
    """Return the relative error of places."""
    return float(np.linalg.norm(placed - wanted) / np.linalg.norm(wanted - wanted.mean(axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--held-out", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    n_points, every = arguments.points, arguments.points + arguments.held_out
    print("| components | training digits | landmarks | nystrom | kernel-mean |\n| --- | --- | --- | --- | --- |")
    for n_components in (2, 5):
        errors = []
        for seed in range(arguments.runs):
            with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
                rows = np.random.default_rng(seed).choice(len(file["X"]), every, replace=False)
                digits = file["X"][rows] / 255.0
            folder = arguments.folder / f"{n_components}-{seed}"
            chosen = {"n_neighbors": NEIGHBORS, "perplexity": PERPLEXITY, "residual": 1e-6, "n_landmarks": 300}
            whole = sm.LaplacianEigenmaps(n_components, **chosen).fit_transform(digits)
            model = sm.LaplacianEigenmaps(n_components, **chosen, store=folder).fit(digits[:n_points])
            placed = [model.transform(digits[n_points:])]
            placed += [sm.continue_eigenvectors(folder, digits[n_points:], name) for name in ("nystrom", "kernel-mean")]
            maps = [onto(model.embedding_, whole[:n_points], one) for one in placed]
            errors.append([error(maps[0][0], whole[:n_points]), *(error(one, whole[n_points:]) for _, one in maps)])
        found = zip(np.mean(errors, axis=0), np.std(errors, axis=0), strict=True)
        print(f"| {n_components} | " + " | ".join(f"{mean:.3f} ± {std:.3f}" for mean, std in found) + " |", flush=True)


if __name__ == "__main__":
    main()
