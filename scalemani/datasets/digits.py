"""Digits by the million: each picture of a source, and as many small elastic deformations as points are asked for."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_digits

from scalemani.datasets.deformation import Deformation, deform, field_modes
from scalemani.datasets.generator import Generator
from scalemani.errors import ConfigError
from scalemani.io.sources import open_labels, open_points
from scalemani.kernels.arrays.draws import row_words

TRAINING_DIGITS = 60_000
LARGEST_GREY = 255


@dataclass(frozen=True)
class DeformedPictures(Generator):
    """The n pictures of a source and their deformations: row r is variant r // n of picture r % n.

    Variant 0 is the picture itself, so rows 0 to n - 1 are the originals, rows n to 2 n - 1 deform each of them once,
    and fewer points are the first rows of more points.
    """

    pictures: np.ndarray = field(kw_only=True, repr=False)
    picture_labels: np.ndarray = field(kw_only=True, repr=False)

    deformation: ClassVar[Deformation]

    def __post_init__(self) -> None:
        super().__post_init__()
        side = round(self.pictures.shape[1] ** 0.5)
        if side * side != self.pictures.shape[1] or self.pictures.dtype != np.uint8:
            raise ConfigError(
                f"{self.name} deforms square uint8 pictures, one a row; the source has "
                f"{self.pictures.shape[1]} columns of {self.pictures.dtype}"
            )

    @cached_property
    def modes(self) -> np.ndarray:
        """The smooth modes of the displacement fields: (side, r) float32."""
        return field_modes(round(self.n_features**0.5), self.deformation.smoothness)

    @property
    def n_features(self) -> int:
        """Number of pixels."""
        return int(self.pictures.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """Grey values from 0 to 255."""
        return np.dtype(np.uint8)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the pictures of rows [start, stop): (stop - start, pixels) uint8."""
        variants, chosen = np.divmod(np.arange(start, stop), len(self.pictures))
        pictures = self.pictures[chosen]
        n_originals = int(np.searchsorted(variants, 1))
        words = row_words(self.seed, f"{self.name}/deformation", start, stop)[n_originals:]
        strength = self.deformation
        deform(
            self.pictures,
            chosen[n_originals:],
            words,
            self.modes,
            strength.amplitude,
            strength.limit,
            pictures[n_originals:],
        )
        return pictures

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the digit that each of rows [start, stop) shows."""
        return self.picture_labels[np.arange(start, stop) % len(self.pictures)]


class InfiniteDigits(DeformedPictures):
    """By default 1,020,000 digits: the 60,000 training digits of MNIST and 16 deformations of each."""

    name = "infinite-digits"
    default_points = 17 * TRAINING_DIGITS
    deformation = Deformation(smoothness=5.0, amplitude=0.7, limit=2.0)

    @classmethod
    def from_file(cls, n_points: int, seed: int, source: str | None) -> "InfiniteDigits":
        """Read the pictures X and labels y of an .npz file such as mnist.npz; the first 60,000 are used."""
        if source is None:
            raise ConfigError("infinite-digits needs source=FILE (--source FILE): an .npz file with X (uint8) and y")
        opened = open_points(f"{source}::X")
        labels = open_labels(f"{source}::y")[:TRAINING_DIGITS]
        pictures = opened.read(0, min(opened.shape[0], TRAINING_DIGITS))
        if len(labels) != len(pictures):
            raise ConfigError(f"{source} has {len(pictures)} pictures X but {len(labels)} labels y: give one a picture")
        return cls(n_points, seed, pictures=pictures, picture_labels=labels)


class DeformedDigits(DeformedPictures):
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn and as many deformations as asked for.

    Grey values are scaled from 0..16 to 0..255.
    """

    name = "deformed-digits"
    deformation = Deformation(smoothness=1.75, amplitude=0.28, limit=0.8)

    @classmethod
    def from_scikit_learn(cls, n_points: int, seed: int) -> "DeformedDigits":
        """Load the digits from scikit-learn, without a download."""
        grey, labels = load_digits(return_X_y=True)
        pictures = np.rint(grey * (LARGEST_GREY / grey.max())).astype(np.uint8)
        return cls(n_points, seed, pictures=pictures, picture_labels=labels)
