"""The points of the benchmarks: MNIST from SCALEMANI_DATA, and the million digits generated from it."""

import os
from pathlib import Path

import numpy as np
from measuring import scalemani


def mnist_file() -> Path:
    """Return the file of the 70,000 digits."""
    path = Path(os.environ.get("SCALEMANI_DATA", ".")) / "mnist.npz"
    if not path.exists():
        raise SystemExit("set SCALEMANI_DATA to the folder that holds mnist.npz (X uint8 (70000, 784), y)")
    return path


def training_digits() -> np.ndarray:
    """Return the 60,000 training digits: (60000, 784) uint8."""
    with np.load(mnist_file(), allow_pickle=False) as file:
        return file["X"][:60_000]


def training_labels(n_points: int) -> np.ndarray:
    """Return what each of so many infinite digits shows: row r is a variant of training digit r mod 60,000."""
    with np.load(mnist_file(), allow_pickle=False) as file:
        return np.resize(file["y"][:60_000], n_points)


def million_digits(folder: Path, n_points: int = 1_020_000) -> Path:
    """Return the file of the infinite digits, generated where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"digits-{n_points}.npy"
    if not path.exists():
        scalemani("generate", "infinite-digits", str(path), "--n-points", str(n_points), "--source", str(mnist_file()))
    return path
