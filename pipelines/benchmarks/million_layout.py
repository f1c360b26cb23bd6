"""t-SNE of 1,020,000 infinite digits, perplexity 10, from raw pixels; then 60,000 new digits placed.

    python pipelines/benchmarks/million_layout.py WORK_FOLDER [--points 1020000] [--memory 6GB] [--picture FILE.png]

Whole commands: seconds and peak memory of `scalemani embed --method t-sne` by stage, the share of digits that have the
label of their nearest neighbour in the map, and seconds of `scalemani transform` for digits that the map has not seen:
the 10,000 test digits of MNIST and five deformations of each. These are judged by the label of the nearest point of the
map, so that no deformation of a digit vouches for another.
"""

import argparse
from pathlib import Path

import numpy as np
from digits import million_digits, mnist_file
from measuring import records, scalemani, settings, show
from scipy.spatial import cKDTree

from scalemani.kernels.measures import label_hits
from scalemani.runs.opened import open_run

SETTING = settings(
    affinities__perplexity=10, neighbors__n_neighbors=30, landmarks__n_landmarks=2000, embedding__residual=1e-2
)
NEW = 60_000


def new_digits(folder: Path) -> Path:
    """Return the file of new digits: the test digits and deformations of them."""
    test, path = folder / "test-digits.npz", folder / "new-digits.npy"
    if not path.exists():
        with np.load(mnist_file(), allow_pickle=False) as file:
            np.savez(test, X=file["X"][60_000:], y=file["y"][60_000:])
        scalemani("generate", "infinite-digits", str(path), "--n-points", str(NEW), "--source", str(test))
    return path


def labels_of(points: Path) -> np.ndarray:
    """Return the labels that the generator wrote beside its points."""
    return np.load(points.with_suffix(".labels.npy"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=1_020_000)
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    points, run = million_digits(arguments.folder, arguments.points), arguments.folder / "million-layout"
    command = ("embed", str(points), str(run), "--method", "t-sne", "--memory", arguments.memory, *SETTING)
    total = scalemani(*command)
    rows = [{"stage": "whole", "seconds": total.seconds, "peak GB": total.peak_bytes / 1e9}]
    for stage, record in records(run)["stages"].items():
        peak = record["peak_memory"] / 1e9
        rows.append({"stage": stage, "seconds": record["seconds"], "peak GB": peak, "found": record["certificates"]})
    labels, embedding = labels_of(points), np.asarray(open_run(run).embedding[...])
    rows.append(
        {"stage": "1-NN accuracy", "found": float(label_hits(embedding, labels, 1, np.arange(len(embedding))).mean())}
    )
    new, placed = new_digits(arguments.folder), arguments.folder / "placed.npy"
    placing = scalemani("transform", str(run), str(new), str(placed))
    nearest = cKDTree(embedding).query(np.load(placed))[1]
    accuracy = float(np.mean(labels[nearest] == labels_of(new)))
    rows.append(
        {"stage": "new digits", "seconds": placing.seconds, "peak GB": placing.peak_bytes / 1e9, "found": accuracy}
    )
    show(rows)
    if arguments.picture:
        labels_file = points.with_suffix(".labels.npy")
        scalemani("plot", str(run), str(arguments.picture), "--labels", str(labels_file))


if __name__ == "__main__":
    main()
