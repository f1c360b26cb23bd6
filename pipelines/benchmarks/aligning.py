"""Two halves of MNIST that share 5,000 rows, embedded apart and aligned by these: the residual, and labels across.

    python pipelines/benchmarks/aligning.py WORK_FOLDER [--points 70000] [--shared 5000]

Spectral embeddings of ten coordinates (spectral), t-SNE of either half by itself (t-sne), and t-SNE of the second half
that starts from the map of the first (t-sne-started: `--init RUN --ids`). `sm.align` gives the transform of the first
map onto the second and its residual as a share of the spread. The labels of the first half, at their transformed
places, then predict those of rows that only the second half has, by 15 neighbours; beside it, the same prediction
within the second half.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from digits import mnist_file
from measuring import scalemani, settings, show
from sklearn.neighbors import KNeighborsClassifier

import scalemani as sm

NEIGHBORS, COMPONENTS = 15, 10
SPECTRAL = ("laplacian-eigenmaps", *settings(landmark_embedding__n_components=COMPONENTS))
MAPS = {"spectral": SPECTRAL, "t-sne": ("t-sne",), "t-sne-started": ("t-sne",)}
STARTED, FIRST = "t-sne-started", "t-sne"  # the second half of the one starts from the first of the other


def halves(folder: Path, n_points: int, n_shared: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Write the points and the row numbers of both halves; return these numbers, and the labels of all rows."""
    with np.load(mnist_file(), allow_pickle=False) as file:
        points, labels = file["X"], file["y"]
    order = np.random.default_rng(0).permutation(len(points))[:n_points]
    own = (n_points - n_shared) // 2
    shared, others = order[:n_shared], order[n_shared:]
    parts = [np.concatenate([shared, others[:own]]), np.concatenate([others[own:], shared])]
    for number, rows in enumerate(parts):
        np.save(folder / f"half-{number}.npy", points[rows])
        np.save(folder / f"rows-{number}.npy", rows)
    return parts, labels


def embedded(folder: Path, name: str, number: int) -> Path:
    """Embed a half where it is not there yet, and return its run."""
    (method, *options), started = MAPS[name], name == STARTED
    run = folder / f"{FIRST if started and number == 0 else name}-{number}"
    if started and number == 1:
        # Rows of the second half, then those of the run: which of them are the same digits.
        options += ["--init", str(folder / f"{FIRST}-0")]
        options += ["--ids", str(folder / "rows-1.npy"), str(folder / "rows-0.npy")]
    scalemani("embed", str(folder / f"half-{number}.npy"), str(run), "--method", method, *options)
    return run


def row_of(folder: Path, name: str, parts: list[np.ndarray], labels: np.ndarray) -> dict[str, Any]:
    """Return what aligning the two maps of a kind leaves, and how well labels of the first tell those of the second."""
    one, other = (embedded(folder, name, number) for number in (0, 1))
    found = sm.align(str(one), str(other), ids=(parts[0], parts[1]))
    places = [np.asarray(sm.open_run(run).embedding[...]) for run in (one, other)]
    own = ~np.isin(parts[1], parts[0])
    across = KNeighborsClassifier(NEIGHBORS).fit(found.apply(places[0]), labels[parts[0]])
    within = sm.measures.knn_accuracy(places[1], labels[parts[1]], NEIGHBORS, n_sampled=None)
    return {
        "maps": name,
        "shared": found.shared_rows,
        "residual": found.relative_residual,
        "labels across": float(across.score(places[1][own], labels[parts[1]][own])),
        "labels within": within.value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--shared", type=int, default=5000)
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=[*MAPS])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    parts, labels = halves(asked.folder, asked.points, asked.shared)
    show([row_of(asked.folder, name, parts, labels) for name in asked.maps])


if __name__ == "__main__":
    main()
