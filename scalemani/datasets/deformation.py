"""Small elastic deformations of pictures: smooth random displacement fields, one for each global row.

After Simard, Steinkraus and Platt (2003), Best practices for convolutional neural networks, section 2, and Loosli,
Canu and Bottou (2007), Training invariant support vector machines using selective sampling, section 3.
"""

import math
from dataclasses import dataclass

import numpy as np

from scalemani.kernels.machine.compile import compiled

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
    kept = values**2 > NEGLIGIBLE_VARIANCE * (values**2).sum()
    modes = vectors[:, kept] * values[kept]
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
