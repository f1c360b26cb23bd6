"""Hard points: patches of 8 x 8 pixels and three colours of photographs, mean removed, at unit length.

    SCALEMANI_DATA=... python pipelines/benchmarks/patches.py OUT.npy --points 1000000

They fill many more dimensions than digits do: at equal effort fewer of the true neighbours are found.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SIDE = 8
PICTURES = ("sk_astronaut", "sk_chelsea", "sk_coffee")


def pictures() -> Iterator[np.ndarray]:
    """Yield the colour pictures as they are, then mirrored along their diagonal, which makes other patches of them."""
    with np.load(Path(os.environ.get("SCALEMANI_DATA", ".")) / "images.npz", allow_pickle=False) as file:
        plain = [file[name].astype(np.float32) for name in PICTURES]
    yield from plain
    yield from (picture.transpose(1, 0, 2) for picture in plain)


def patches(n_points: int, seed: int = 0) -> np.ndarray:
    """Return `n_points` different patches (n, 192) float32 in random order."""
    parts = []
    for picture in pictures():
        windows = np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE), axis=(0, 1))
        parts.append(windows.reshape(-1, SIDE * SIDE * 3))
    points = np.concatenate(parts)
    points -= points.mean(axis=1, keepdims=True)
    points = points[np.linalg.norm(points, axis=1) > 0]
    if len(points) < n_points:
        raise SystemExit(f"there are {len(points)} patches, {n_points} were asked for")
    points = points[np.random.default_rng(seed).permutation(len(points))[:n_points]]
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def patches_file(folder: Path, n_points: int) -> Path:
    """Return the file of the patches, made where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"patches-{n_points}.npy"
    if not path.exists():
        np.save(path, patches(n_points))
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=int, default=1_000_000)
    asked = parser.parse_args()
    np.save(asked.out, patches(asked.points))
