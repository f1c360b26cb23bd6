"""Convolution of a mesh of charges with a kernel, by Fourier transforms that never meet the zero padding as a whole.

The first axis is transformed down columns, two sets of real columns at a time as real and imaginary parts. Its wave
numbers then lie side by side in vectors, and for each batch of them all other axes are padded, transformed, multiplied
and transformed back in one go. An inverse transform is a forward one with real and imaginary parts exchanged.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.mesh.fourier import batch_lanes, radices_of, transformed, twiddle_factors
from scalemani.kernels.repulsion.mesh.transforms import KernelTransform

Over = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]


class MeshConvolution:
    """Convolves meshes with one kernel, in the dtype of the meshes (float32 or float64).

    Work is cut into the same pieces whatever `over` runs side by side, so results do not depend on threads.
    """

    def __init__(self, transform: KernelTransform, dtype: np.dtype):
        self.lengths, self.unit, self.edge = transform.lengths, transform.unit, transform.edge
        self._lanes = batch_lanes(dtype)
        self._plans = [(radices_of(length), twiddle_factors(length, dtype)) for length in self.lengths]
        self._transform = self._batched(transform.values, dtype)
        self._buffer = np.empty(0, dtype)

    def _batched(self, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return the kernel's transform in batches of the first axis, (b, ..., lanes), with all constants in it."""
        n_batches = -(-len(values) // self._lanes)
        batched = np.zeros((n_batches * self._lanes, *values.shape[1:]), dtype)
        # Halved because two real columns are told apart by a sum and a difference.
        np.multiply(values, 0.5 / math.prod(self.lengths), out=batched[: len(values)], casting="same_kind")
        batched = batched.reshape(n_batches, self._lanes, *values.shape[1:])
        return np.ascontiguousarray(np.moveaxis(batched, 1, -1))

    def apply(self, parts: np.ndarray, over: Over) -> np.ndarray:
        """Return the sum of `parts` (p, n_0, ...) convolved with the kernel, in the place of the first part."""
        columns = parts.reshape(*parts.shape[:2], -1)
        n_columns, lanes = columns.shape[2], self._lanes
        spectrum = self._spectrum((len(self._transform), n_columns, 2, lanes), parts.dtype)
        length, plan = self.lengths[0], self._plans[0]
        starts = list(range(0, n_columns, 2 * lanes))
        run(over(lambda start: _transform_columns(columns, start, length, *plan, spectrum), starts))
        run(
            over(
                lambda batch: self._middle(spectrum[batch], self._transform[batch], parts.shape[2:]),
                list(range(len(spectrum))),
            )
        )
        run(over(lambda start: _restore_columns(spectrum, start, length, *plan, columns[0]), starts))
        return parts[0]

    def _middle(self, batch: np.ndarray, transform: np.ndarray, shape: tuple[int, ...]) -> None:
        if len(shape) == 1:
            _convolve_line(batch, transform, self.lengths[1], *self._plans[1])
        else:
            _convolve_plane(batch.reshape(*shape, 2, self._lanes), transform, self.lengths[1:], *self._plans[1:])

    def _spectrum(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        size = int(np.prod(shape))
        if not size <= self._buffer.size <= 2 * size:
            self._buffer = np.empty(size, dtype)
        return self._buffer[:size].reshape(shape)


@compiled
def _transform_columns(
    parts: np.ndarray, start: int, length: int, radices: np.ndarray, factors: np.ndarray, spectrum: np.ndarray
) -> None:
    """Transform columns start .. start + 2 lanes of the sum of `parts` (p, n, c) into `spectrum` (b, c, 2, lanes).

    What is written is twice the transform.
    """
    lanes = spectrum.shape[3]
    width = min(2 * lanes, parts.shape[2] - start)
    rows = np.zeros((length, 2 * lanes), parts.dtype)
    for part in range(parts.shape[0]):
        for i in range(parts.shape[1]):
            for j in range(np.uint64(width)):
                rows[i, j] += parts[part, i, np.uint64(start) + j]
    batch = rows.reshape(length, 2, lanes)
    z = transformed(batch, np.empty_like(batch), radices, factors)
    for b in range(spectrum.shape[0]):
        n_waves = min(lanes, length // 2 + 1 - b * lanes)
        for j in range(min(lanes, width)):
            for lane in range(n_waves):
                k = b * lanes + lane
                m = length - k if k else 0
                spectrum[b, start + j, 0, lane] = z[k, 0, j] + z[m, 0, j]
                spectrum[b, start + j, 1, lane] = z[k, 1, j] - z[m, 1, j]
            for lane in range(n_waves, lanes):
                spectrum[b, start + j, 0, lane] = spectrum[b, start + j, 1, lane] = 0.0
        for j in range(width - lanes):
            for lane in range(n_waves):
                k = b * lanes + lane
                m = length - k if k else 0
                spectrum[b, start + lanes + j, 0, lane] = z[k, 1, j] + z[m, 1, j]
                spectrum[b, start + lanes + j, 1, lane] = z[m, 0, j] - z[k, 0, j]
            for lane in range(n_waves, lanes):
                spectrum[b, start + lanes + j, 0, lane] = spectrum[b, start + lanes + j, 1, lane] = 0.0


@compiled
def _restore_columns(
    spectrum: np.ndarray, start: int, length: int, radices: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """Transform columns start .. start + 2 lanes of `spectrum` back, unnormalised, and write their first rows."""
    lanes = spectrum.shape[3]
    width = min(2 * lanes, out.shape[1] - start)
    z = np.zeros((length, 2, lanes), out.dtype)
    half = length // 2
    for b in range(spectrum.shape[0]):
        n_waves = min(lanes, half + 1 - b * lanes)
        for j in range(min(lanes, width)):
            for lane in range(n_waves):
                k = b * lanes + lane
                m = length - k if k else 0
                real, imaginary = spectrum[b, start + j, 0, lane], spectrum[b, start + j, 1, lane]
                other_real, other_imaginary = real * 0, real * 0
                if lanes + j < width:
                    other_real = spectrum[b, start + lanes + j, 0, lane]
                    other_imaginary = spectrum[b, start + lanes + j, 1, lane]
                z[m, 1, j], z[m, 0, j] = real + other_imaginary, other_real - imaginary
                z[k, 1, j], z[k, 0, j] = real - other_imaginary, other_real + imaginary
    z = transformed(z, np.empty_like(z), radices, factors)
    for i in range(out.shape[0]):
        for j in range(min(lanes, width)):
            out[i, start + j] = z[i, 1, j]
        for j in range(width - lanes):
            out[i, start + lanes + j] = z[i, 0, j]


@compiled
def _exchange(rows: np.ndarray) -> None:
    """Exchange real and imaginary parts of `rows` (m, 2, lanes)."""
    for j in range(np.uint64(rows.shape[0])):
        for lane in range(np.uint64(rows.shape[2])):
            rows[j, 0, lane], rows[j, 1, lane] = rows[j, 1, lane], rows[j, 0, lane]


@compiled
def _multiply_exchange(rows: np.ndarray, transform: np.ndarray) -> None:
    """Multiply `rows` (m, 2, lanes) by the real, even `transform` (m / 2 + 1, lanes); exchange their parts."""
    length = np.uint64(rows.shape[0])
    for j in range(length):
        stored = np.uint64(min(j, length - j))
        for lane in range(np.uint64(rows.shape[2])):
            factor, real = transform[stored, lane], rows[j, 0, lane]
            rows[j, 0, lane] = rows[j, 1, lane] * factor
            rows[j, 1, lane] = real * factor


@compiled
def _convolve_line(
    line: np.ndarray, transform: np.ndarray, length: int, radices: np.ndarray, factors: np.ndarray
) -> None:
    """Convolve `line` (n, 2, lanes) in place, padded to `length`, by the kernel with this transform."""
    batch = np.zeros((length, 2, line.shape[2]), line.dtype)
    spare = np.empty_like(batch)
    batch[: len(line)] = line
    z = transformed(batch, spare, radices, factors)
    _multiply_exchange(z, transform)
    z = transformed(z, spare if z is batch else batch, radices, factors)
    line[:, 0] = z[: len(line), 1]
    line[:, 1] = z[: len(line), 0]


@compiled
def _convolve_plane(
    plane: np.ndarray,
    transform: np.ndarray,
    lengths: tuple[int, int],
    first: tuple[np.ndarray, np.ndarray],
    last: tuple[np.ndarray, np.ndarray],
) -> None:
    """Convolve `plane` (n_1, n_2, 2, lanes) in place; `first` and `last` are the radices and factors of its axes."""
    n_rows, n_columns, lanes = plane.shape[0], plane.shape[1], plane.shape[3]
    wide = np.empty((n_rows, lengths[1], 2, lanes), plane.dtype)
    row, spare = np.empty((lengths[1], 2, lanes), plane.dtype), np.empty((lengths[1], 2, lanes), plane.dtype)
    for i in range(n_rows):
        row[:n_columns] = plane[i]
        row[n_columns:] = 0.0
        wide[i] = transformed(row, spare, last[0], last[1])
    for j in range(lengths[1]):
        _convolve_line(wide[:, j], transform[:, min(j, lengths[1] - j)], lengths[0], first[0], first[1])
    for i in range(n_rows):
        row[:] = wide[i]
        _exchange(row)
        z = transformed(row, spare, last[0], last[1])
        plane[i, :, 0] = z[:n_columns, 1]
        plane[i, :, 1] = z[:n_columns, 0]
