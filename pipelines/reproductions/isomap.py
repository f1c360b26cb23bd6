"""Isomap by landmarks in two forms: points triangulated by paths from landmarks, or combinations of landmarks.

Digits of MNIST, pixels over 255, graph of 30 neighbours, two dimensions; the Procrustes error to Isomap of all points
by scikit-learn, over draws of landmarks. The thesis names Isomap as a case of its problem (4.1), without a figure.

    python pipelines/reproductions/isomap.py FOLDER
    python pipelines/reproductions/isomap.py FOLDER --points 400 --runs 2

M. Vladymyrov, Large-Scale Methods for Nonlinear Manifold Learning, thesis 2014, sections 4.1 and 4.10.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.manifold import Isomap

import scalemani as sm

N_NEIGHBORS, N_LANDMARKS, FORMS = 30, 80, (("triangulation", None), ("combinations", 5), ("combinations", 12))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=900)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with np.load(Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(3).choice(len(file["X"]), arguments.points, replace=False)
        points = file["X"][rows] / 255.0
    exact = Isomap(n_neighbors=N_NEIGHBORS, n_components=2, eigen_solver="dense").fit_transform(points)
    lines = ["| landmarks | " + " | ".join(f"{name}, K_Z = {k}" if k else name for name, k in FORMS) + " |"]
    lines.append("| --- " * (len(FORMS) + 1) + "|")
    print(*lines, sep="\n")
    for rule in ("random", "kmeans"):
        errors = np.empty((arguments.runs, len(FORMS)))
        for seed in range(arguments.runs):
            chosen = sm.select_landmarks(points, N_LANDMARKS, rule, seed).indices
            for column, (_, k) in enumerate(FORMS):
                kind = sm.LandmarkIsomap if k is None else sm.CombinedIsomap
                settings = {} if k is None else {"landmark_weights.n_neighbors": k}
                model = kind(2, landmarks=chosen, n_neighbors=N_NEIGHBORS, settings=settings)
                errors[seed, column] = sm.measures.procrustes_error(model.fit_transform(points), exact)
        cells = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(errors.mean(axis=0), errors.std(axis=0), strict=True)]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    (arguments.folder / "isomap.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
