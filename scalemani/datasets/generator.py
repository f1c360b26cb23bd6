"""Generated data sets, whose values are functions of the seed and the global row: surfaces and clusters."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from scalemani.config.validation import LARGEST_SEED, check_count
from scalemani.io.sources.base import PointsSource
from scalemani.kernels.arrays.draws import row_words

UNIFORM_STEP = 2.0**-52
DISCARDED_BITS = np.uint64(12)  # of the 64 random bits; with 52, the middle of each step is a float64 below 1


@dataclass(frozen=True)
class Generator(PointsSource, ABC):
    """`n_points` points (N, D) that are computed, not read; reads like any other source of points.

    Points and labels of a row depend on `seed` and the row, never on the block that contains it; they depend on
    `n_points` only where a subclass says so.
    """

    n_points: int
    seed: int = 0

    name: ClassVar[str]
    default_points: ClassVar[int] = 20_000

    def __post_init__(self) -> None:
        check_count(self.n_points, f"n_points of {self.name}")
        check_count(self.seed, f"seed of {self.name}", 0, LARGEST_SEED, "63 bits")

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @abstractmethod
    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the points of rows [start, stop): (stop - start, D), C-contiguous."""

    @abstractmethod
    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return one label, or the value along the manifold, for each of rows [start, stop)."""

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """(N, D)."""
        return self.n_points, self.n_features

    @property
    def description(self) -> str:  # type: ignore[override]
        """What the points are, for a log or a report."""
        return f"{self.name}, {self.n_points:,} points, seed {self.seed}"

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the points of rows [start, stop), as every source of points does."""
        return self.block(start, stop)

    def uniform(self, quantity: str, start: int, stop: int, per_row: int = 1) -> np.ndarray:
        """Return uniform draws in (0, 1) of one quantity for rows [start, stop): (rows, per_row) float64."""
        words = row_words(self.seed, f"{self.name}/{quantity}", start * per_row, stop * per_row)
        return (((words >> DISCARDED_BITS) + 0.5) * UNIFORM_STEP).reshape(-1, per_row)


ROLL_START = 1.5 * np.pi  # angle of the innermost point, as scikit-learn has it
ROLL_HEIGHT = 21.0
BOWL_RIM = 3.0  # radius of the disc that becomes the bowl: its rim lies at height (r^2 - 1) / (r^2 + 1) = 0.8
SPIRAL_ANGLES = (np.pi, 6 * np.pi)
BLOB_FEATURES = 50
BLOB_SPREAD = 10.0  # half side of the cube of cluster centres, in standard deviations of a cluster


class Surface(Generator):
    """Points with real coordinates, float32."""

    n_features = 3  # coordinates
    dtype = np.dtype(np.float32)


class SwissRoll(Surface):
    """A rolled-up sheet (t cos t, height, t sin t), t from 1.5 to 4.5 pi, height to 21; the label is t."""

    name = "swiss-roll"

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the angle t along the roll."""
        return ROLL_START * (1 + 2 * self.uniform("angle", start, stop)[:, 0])

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the roll: (stop - start, 3)."""
        angle = self.labels(start, stop)
        height = ROLL_HEIGHT * self.uniform("height", start, stop)[:, 0]
        return np.column_stack([angle * np.cos(angle), height, angle * np.sin(angle)]).astype(np.float32)


class FishBowl(Surface):
    """A unit sphere open at the top, dense at the rim, sparse at the bottom: a disc, stereographically projected.

    De Silva and Tenenbaum (2003), Global versus local methods in nonlinear dimensionality reduction; the label is the
    distance from the centre of the disc.
    """

    name = "fish-bowl"

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the distance from the centre of the disc, 0 (bottom) to 3 (rim)."""
        return BOWL_RIM * np.sqrt(self.uniform("radius", start, stop)[:, 0])

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the bowl: (stop - start, 3)."""
        radius = self.labels(start, stop)
        angle = 2 * np.pi * self.uniform("angle", start, stop)[:, 0]
        scale = 1 / (1 + radius**2)
        across = 2 * radius * scale
        return np.column_stack([across * np.cos(angle), across * np.sin(angle), (radius**2 - 1) * scale]).astype(
            np.float32
        )


class Spiral(Surface):
    """A plane spiral (t cos t, t sin t), even along its length, t from pi to 6 pi; the label is t."""

    name = "spiral"
    n_features = 2

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the angle t; the length of a spiral grows as t^2."""
        first, last = SPIRAL_ANGLES
        return np.sqrt(first**2 + (last**2 - first**2) * self.uniform("angle", start, stop)[:, 0])

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the spiral: (stop - start, 2)."""
        angle = self.labels(start, stop)
        return np.column_stack([angle * np.cos(angle), angle * np.sin(angle)]).astype(np.float32)


class Blobs(Surface):
    """Ten Gaussian clusters of unit variance in 50 dimensions, centres drawn from a cube; the label is the cluster."""

    name = "blobs"
    n_features = BLOB_FEATURES
    n_clusters = 10

    @cached_property
    def centres(self) -> np.ndarray:
        """(10, 50) float64."""
        return BLOB_SPREAD * (2 * self.uniform("centres", 0, self.n_clusters, BLOB_FEATURES) - 1)

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the cluster of each row, 0 to 9."""
        return (self.n_clusters * self.uniform("cluster", start, stop)[:, 0]).astype(np.int64)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the clusters: (stop - start, 50)."""
        noise = ndtri(self.uniform("noise", start, stop, BLOB_FEATURES))
        return (self.centres[self.labels(start, stop)] + noise).astype(np.float32)
