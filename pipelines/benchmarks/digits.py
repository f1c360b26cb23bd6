"""The points of the benchmarks: MNIST from SCALEMANI_DATA, the digits generated from it, and their components."""

import os
from pathlib import Path

import numpy as np
from measuring import scalemani

MILLION = 1_020_000
COMPONENTS = 50
NOISE = 0.1  # of a column's deviation: what tells copies of a digit apart
ROWS_AT_ONCE = 60_000


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


def million_digits(folder: Path, n_points: int = MILLION) -> Path:
    """Return the file of the infinite digits, generated where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"digits-{n_points}.npy"
    if not path.exists():
        scalemani("generate", "infinite-digits", str(path), "--n-points", str(n_points), "--source", str(mnist_file()))
    return path


def components_file(folder: Path, n_points: int) -> Path:
    """Return the file of so many points (n, 50) float32: the principal components of the million digits, again and
    again, each time with other noise; made where it is not there yet.
    """
    path = folder / f"components-{n_points}.npy"
    if path.exists():
        return path
    digits = np.load(million_digits(folder), mmap_mode="r")
    sample = digits[:: len(digits) // ROWS_AT_ONCE].astype(np.float64)
    middle = sample.mean(axis=0)
    axes = np.linalg.eigh(np.cov((sample - middle).T))[1][:, -COMPONENTS:]
    spread = ((sample - middle) @ axes).std(axis=0)
    draws, partial = np.random.default_rng(0), folder / "partial.npy"
    written = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float32, shape=(n_points, COMPONENTS))
    for start in range(0, n_points, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_points)
        rows = digits[np.arange(start, stop) % len(digits)].astype(np.float64)
        written[start:stop] = (rows - middle) @ axes + NOISE * spread * draws.standard_normal(
            (stop - start, COMPONENTS)
        )
    written.flush()
    partial.rename(path)
    return path
