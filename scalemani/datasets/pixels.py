"""Pixels of a made-up planet: rows of 64 bytes as models of satellite images give them, by the hundred million."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from scalemani.datasets.generator import Generator
from scalemani.kernels.arrays.draws import generator, row_words
from scalemani.kernels.machine.compile import compiled

TILE_SIDE = 64
TILE_PIXELS = TILE_SIDE * TILE_SIDE
FIELDS = 5  # smooth properties of the ground (height, wetness, ...), which the columns are functions of
WAVES = 24  # a field is a sum of so many plane waves
SHORTEST_WAVE, LONGEST_WAVE = 64.0, 4096.0  # pixels
FREQUENCY = 0.3  # radians a column's phase changes by for a field's unit, standard deviation
SIGNAL = 60.0  # amplitude of a column without noise
COLUMNS = 64
NOISE = 6.0  # standard deviation of a column's noise
NOISE_BYTES = 4  # noise is a sum of so many random bytes, which is nearly normal
BYTE_MEAN, BYTE_DEVIATION = 127.5, 73.9
CLOUD_WAVE = 1500.0  # pixels
CLOUD_LEVEL = 0.9  # of the field of clouds, in standard deviations: a fifth of the tiles is hidden
TILES_AT_ONCE = 4096


class Waves(NamedTuple):
    """Plane waves: frequencies along rows and columns, phases and amplitudes, each (fields, waves) float64."""

    down: np.ndarray
    across: np.ndarray
    phase: np.ndarray
    amplitude: np.ndarray


@compiled
def fill_pixels(
    top: int,
    left: int,
    waves: Waves,
    frequencies: np.ndarray,
    phases: np.ndarray,
    words: np.ndarray,
    pixels: np.ndarray,
) -> None:
    """Fill one tile's `pixels` (TILE_PIXELS, COLUMNS) int8, row by row, whose first pixel lies at (`top`, `left`)."""
    n_fields, n_waves = waves.down.shape
    fields = np.empty(n_fields)
    for pixel in range(TILE_PIXELS):
        y = np.float64(top + pixel // TILE_SIDE)
        x = np.float64(left + pixel % TILE_SIDE)
        for i in range(n_fields):
            value = 0.0
            for j in range(n_waves):
                angle = waves.down[i, j] * y + waves.across[i, j] * x + waves.phase[i, j]
                value += waves.amplitude[i, j] * np.cos(angle)
            fields[i] = value
        for column in range(COLUMNS):
            angle = phases[column]
            for i in range(n_fields):
                angle += frequencies[column, i] * fields[i]
            noise = -NOISE_BYTES * BYTE_MEAN
            for byte in range(NOISE_BYTES):
                place = (pixel * COLUMNS + column) * NOISE_BYTES + byte
                noise += np.float64((words[place // 8] >> np.uint64(8 * (place % 8))) & np.uint64(255))
            value = SIGNAL * np.cos(angle) + NOISE / (BYTE_DEVIATION * np.sqrt(NOISE_BYTES)) * noise
            pixels[pixel, column] = np.int8(np.rint(min(max(value, -127.0), 127.0)))


@compiled
def at_zorder(index: int) -> tuple[int, int]:
    """Return row and column of a place of the Z curve: its odd and even bits."""
    row = 0
    column = 0
    for bit in range(31):
        column |= ((index >> (2 * bit)) & 1) << bit
        row |= ((index >> (2 * bit + 1)) & 1) << bit
    return row, column


class PlanetPixels(Generator):
    """Pixels of smooth fields with noise, 64 bytes each, without the tiles that clouds hide; the label is the tile.

    Five fields, sums of plane waves of 64 to 4,096 pixels, decide the 64 columns (cosines of the fields, 60 times, and
    noise of standard deviation 6), as the rows that models of satellite images make of a pixel vary smoothly with the
    place. Rows run tile by tile (64 x 64 pixels), tiles along a Z curve: fewer points are the first of more.
    """

    name = "planet-pixels"
    default_points = 1_000_000
    n_features = COLUMNS
    dtype = np.dtype(np.int8)

    @cached_property
    def _waves(self) -> Waves:
        """The fields' waves, longer ones stronger, so that each field has unit variance."""
        draws = generator(self.seed, f"{self.name}/waves")
        length = SHORTEST_WAVE * (LONGEST_WAVE / SHORTEST_WAVE) ** draws.random((FIELDS, WAVES))
        direction = 2 * np.pi * draws.random((FIELDS, WAVES))
        strength = np.sqrt(length)
        amplitude = strength * np.sqrt(2 / np.square(strength).sum(axis=1, keepdims=True))
        frequency = 2 * np.pi / length
        phase = 2 * np.pi * draws.random((FIELDS, WAVES))
        return Waves(frequency * np.sin(direction), frequency * np.cos(direction), phase, amplitude)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Frequencies (COLUMNS, FIELDS) and phases (COLUMNS,) of the columns."""
        draws = generator(self.seed, f"{self.name}/columns")
        return FREQUENCY * draws.standard_normal((COLUMNS, FIELDS)), 2 * np.pi * draws.random(COLUMNS)

    @cached_property
    def _clear_tiles(self) -> np.ndarray:
        """Rows and columns of the tiles that no cloud hides, in their order: (tiles, 2) int64."""
        draws = generator(self.seed, f"{self.name}/clouds")
        direction, phase = 2 * np.pi * draws.random((2, WAVES))
        needed = -(-self.n_points // TILE_PIXELS)
        clear: list[np.ndarray] = []
        n_clear = 0
        while n_clear < needed:
            first = len(clear) * TILES_AT_ONCE
            tiles = np.array([at_zorder(index) for index in range(first, first + TILES_AT_ONCE)])
            down, across = (TILE_SIDE * 2 * np.pi / CLOUD_WAVE * tiles).T
            angles = down[:, None] * np.sin(direction) + across[:, None] * np.cos(direction) + phase
            clouds = np.sqrt(2 / WAVES) * np.cos(angles).sum(axis=1)
            clear.append(tiles[clouds < CLOUD_LEVEL])
            n_clear += len(clear[-1])
        return np.concatenate(clear)[:needed]

    def places(self, start: int, stop: int) -> np.ndarray:
        """Return the row and column of each pixel of rows [start, stop) on the planet: (stop - start, 2) int64."""
        tiles, pixels = np.divmod(np.arange(start, stop), TILE_PIXELS)
        return TILE_SIDE * self._clear_tiles[tiles] + np.column_stack(np.divmod(pixels, TILE_SIDE))

    def labels(self, start: int, stop: int) -> np.ndarray:
        """Return the number of the tile that each row belongs to."""
        return np.arange(start, stop) // TILE_PIXELS

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return rows of pixels: (stop - start, 64) int8."""
        first, last = start // TILE_PIXELS, -(-stop // TILE_PIXELS)
        pixels = np.empty((last - first, TILE_PIXELS, COLUMNS), dtype=np.int8)
        words_per_tile = TILE_PIXELS * COLUMNS * NOISE_BYTES // 8
        frequencies, phases = self._columns
        for tile, (row, column) in enumerate(TILE_SIDE * self._clear_tiles[first:last], start=first):
            words = row_words(self.seed, f"{self.name}/noise", tile * words_per_tile, (tile + 1) * words_per_tile)
            fill_pixels(row, column, self._waves, frequencies, phases, words, pixels[tile - first])
        return pixels.reshape(-1, COLUMNS)[start - first * TILE_PIXELS :][: stop - start]
