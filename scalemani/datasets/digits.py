"""Digits by the million: pictures and their small elastic deformations, smooth random displacement fields by row.

After Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks, section 2, and Loosli,
Canu and Bottou (2007), Training invariant support vector machines using selective sampling, section 3.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from sklearn.datasets import load_digits

from scalemani.datasets.generator import Generator
from scalemani.errors import ConfigError
from scalemani.io.sources import open_labels, open_points
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.machine.compile import compiled

TRAINING_DIGITS = 60_000
LARGEST_GREY = 255
# Field modes with less than this share of the variance of one dimension are left out.
NEGLIGIBLE_VARIANCE = 1e-3
GOLDEN_STEP = np.uint64(0x9E3779B97F4A7C15)
PADDING = 5  # zeros around a picture: cubic interpolation reaches 2 pixels beyond a displacement of at most 3
NORMAL_BITS = 2.0**-53


@dataclass(frozen=True)
class Deformation:
    """How strongly and how smoothly pictures are displaced, in pixels.

    `smoothness` is the standard deviation of the Gaussian that smooths white noise into a field, `amplitude` the
    standard deviation of each component of a displacement, `limit` (at most 3) where a component is cut off.
    """

    smoothness: float = 4.0
    amplitude: float = 0.8
    limit: float = 2.0


def field_modes(side: int, smoothness: float) -> np.ndarray:
    """Return the factor M of Gaussian-smoothed noise: M C M^T with C standard normal is a field of unit variance.

    Smoothing white noise along one dimension is a matrix of fast decaying singular values, so a few columns, (side, r)
    float32, stand for it: a field costs r^2 normal draws and two small products, not side^2 and a convolution.
    """
    reach = np.arange(-4 * math.ceil(smoothness), side + 4 * math.ceil(smoothness))
    smoothing = np.exp(-((np.arange(side)[:, None] - reach) ** 2) / (2 * smoothness**2))
    smoothing /= np.linalg.norm(smoothing, axis=1, keepdims=True)
    vectors, values, _ = np.linalg.svd(smoothing, full_matrices=False)
    significant = values**2 > NEGLIGIBLE_VARIANCE * (values**2).sum()
    modes = vectors[:, significant] * values[significant]
    return np.ascontiguousarray(modes / np.linalg.norm(modes, axis=1, keepdims=True), dtype=np.float32)


@compiled
def mixed(word: np.uint64) -> np.uint64:
    """Return the SplitMix64 hash of a counter (Steele, Lea and Flood 2014, figure 15)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def fill_normals(word: np.uint64, normals: np.ndarray) -> None:
    """Fill `normals`, of even length, with standard normal draws that depend on `word` alone (Box and Muller)."""
    for pair in range(normals.size // 2):
        word += GOLDEN_STEP
        radius = math.sqrt(-2.0 * math.log((np.float64(mixed(word) >> np.uint64(11)) + 0.5) * NORMAL_BITS))
        word += GOLDEN_STEP
        angle = 2.0 * math.pi * NORMAL_BITS * np.float64(mixed(word) >> np.uint64(11))
        normals[2 * pair] = radius * math.cos(angle)
        normals[2 * pair + 1] = radius * math.sin(angle)


@compiled
def fill_field(normals: np.ndarray, modes: np.ndarray, amplitude: float, limit: float, field: np.ndarray) -> None:
    """Fill `field` (side, side) with the displacements M C M^T, scaled and cut off."""
    side, n_modes = modes.shape
    half = np.empty((n_modes, side), dtype=np.float32)
    for mode in range(n_modes):
        half[mode, :] = np.float32(0)
        for other in range(n_modes):
            coefficient = normals[mode * n_modes + other] * np.float32(amplitude)
            for column in range(side):
                half[mode, column] += coefficient * modes[column, other]
    for row in range(side):
        field[row, :] = np.float32(0)
        for mode in range(n_modes):
            for column in range(side):
                field[row, column] += modes[row, mode] * half[mode, column]
        for column in range(side):
            field[row, column] = min(max(field[row, column], np.float32(-limit)), np.float32(limit))


@compiled
def fill_cubic_weights(fraction: float, weights: np.ndarray) -> None:
    """Fill the four weights of cubic convolution (Keys 1981, a = -1/2), which keeps strokes as sharp as they were."""
    half = np.float32(0.5)
    square = fraction * fraction
    cube = square * fraction
    weights[0] = half * (-cube + np.float32(2) * square - fraction)
    weights[1] = half * (np.float32(3) * cube - np.float32(5) * square + np.float32(2))
    weights[2] = half * (np.float32(-3) * cube + np.float32(4) * square + fraction)
    weights[3] = half * (cube - square)


@compiled
def resample(padded: np.ndarray, down: np.ndarray, right: np.ndarray, picture: np.ndarray) -> None:
    """Fill `picture` (side * side,) uint8 with the padded picture read at displaced places."""
    side = down.shape[0]
    across = np.empty(4, dtype=np.float32)
    along = np.empty(4, dtype=np.float32)
    for row in range(side):
        for column in range(side):
            y = np.float32(row + PADDING) + down[row, column]
            x = np.float32(column + PADDING) + right[row, column]
            top = int(y)
            left = int(x)
            fill_cubic_weights(y - np.float32(top), along)
            fill_cubic_weights(x - np.float32(left), across)
            value = np.float32(0)
            for i in range(4):
                line = padded[top - 1 + i, left - 1 : left + 3]
                value += along[i] * (
                    across[0] * line[0] + across[1] * line[1] + across[2] * line[2] + across[3] * line[3]
                )
            picture[row * side + column] = np.uint8(min(max(value, np.float32(0)), np.float32(255)) + np.float32(0.5))


@compiled
def deform(
    pictures: np.ndarray,
    chosen: np.ndarray,
    words: np.ndarray,
    modes: np.ndarray,
    amplitude: float,
    limit: float,
    deformed: np.ndarray,
) -> None:
    """Fill `deformed` (m, side^2) uint8 with `pictures[chosen]`, each displaced by the field that its word draws."""
    side, n_modes = modes.shape
    field_draws = n_modes * n_modes
    normals = np.empty(2 * field_draws, dtype=np.float32)
    down = np.empty((side, side), dtype=np.float32)
    right = np.empty((side, side), dtype=np.float32)
    padded = np.zeros((side + 2 * PADDING, side + 2 * PADDING), dtype=np.float32)
    for i in range(chosen.size):
        for row in range(side):
            for column in range(side):
                padded[row + PADDING, column + PADDING] = pictures[chosen[i], row * side + column]
        fill_normals(words[i], normals)
        fill_field(normals[:field_draws], modes, amplitude, limit, down)
        fill_field(normals[field_draws:], modes, amplitude, limit, right)
        resample(padded, down, right, deformed[i])


@dataclass(frozen=True)
class DeformedPictures(Generator):
    """The n pictures of a source and their deformations: row r is variant r // n of picture r % n.

    Variant 0 is the picture itself, so rows 0 to n - 1 are the originals, rows n to 2 n - 1 deform each of them once,
    and fewer points are the first rows of more points.
    """

    pictures: np.ndarray = field(kw_only=True, repr=False)
    picture_labels: np.ndarray = field(kw_only=True, repr=False)

    deformation: ClassVar[Deformation]
    dtype = np.dtype(np.uint8)  # grey values from 0 to 255

    def __post_init__(self) -> None:
        super().__post_init__()
        side = round(self.n_features**0.5)
        if side * side != self.n_features or self.pictures.dtype != np.uint8:
            raise ConfigError(
                f"{self.name} deforms square uint8 pictures, one a row; the source has "
                f"{self.n_features} columns of {self.pictures.dtype}"
            )

    @cached_property
    def modes(self) -> np.ndarray:
        """The smooth modes of the displacement fields: (side, r) float32."""
        return field_modes(round(self.n_features**0.5), self.deformation.smoothness)

    @property
    def n_features(self) -> int:
        """Number of pixels."""
        return int(self.pictures.shape[1])

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
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn and as many deformations as requested.

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
