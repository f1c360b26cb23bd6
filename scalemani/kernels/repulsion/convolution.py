"""Convolution of a mesh of charges with a kernel, by Fourier transforms that never meet the zero padding as a whole.

The mesh is charged by B-splines and read by B-splines. The transform of the kernel in free space is divided by what the
two smooth away, in the least-squares sense for the gradient of the spline that is read ("optimal influence function").
Source: Hockney and Eastwood, Computer Simulation Using Particles (1988), chapter 8; for the gradient of the
interpolant, Ballenegger, Cerda and Holm, J. Chem. Theory Comput. 8 (2012), 936.

Rows along the last axis are transformed first. For a piece of their wave numbers at a time, all other axes are then
padded, transformed, multiplied and transformed back, one axis after the other: rows that are zero are not transformed.
"""

import math
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import fft

from scalemani.kernels.arrays.tiles import Mapper, run, slices

MESH_KERNELS = ("student", "gaussian")
SLACK_NODES = 16  # along which the kernel is bent to a smooth periodic one: a kink there would ring everywhere
# Padded lengths are these times powers of two: quick to transform, and 7 to 12% apart, so that a map that grows keeps
# its kernel's transform for a while.
LENGTH_FACTORS = (32, 36, 40, 45, 48, 54, 60)
ALIASES = 24  # images of the first zone on either side that count in sums over aliases

PIECE_BYTES = 2**18  # of complex numbers that one task transforms: they stay in a core's cache from axis to axis
LEAST_WAVES = 8  # a line of a cache holds so many of complex64


class KernelTransform(NamedTuple):
    """A kernel as the mesh needs it: K(r) = edge + unit * (what has the transform `values`).

    `values` is (m_0 / 2 + 1, ...), real and even along every axis: the halves not stored mirror those stored;
    `lengths` are the m, even, to which the axes are padded.
    """

    values: np.ndarray
    lengths: tuple[int, ...]
    unit: float
    edge: float


def padded_lengths(shape: tuple[int, ...], reach: float) -> tuple[int, ...]:
    """Return the even lengths to which the axes of a mesh are padded for a kernel that ends `reach` steps away."""
    return tuple(_padded(n_nodes + int(min(n_nodes, reach + 1.0)) + SLACK_NODES) for n_nodes in shape)


def _padded(needed: int) -> int:
    doublings = max(1, (needed // LENGTH_FACTORS[0]).bit_length() - 1)
    lengths = [factor << doublings for factor in (*LENGTH_FACTORS, 2 * LENGTH_FACTORS[0])]
    return next(length for length in lengths if length >= needed)


def kernel_transform(kernel: str | float, lengths: tuple[int, ...], step: float, degree: int) -> KernelTransform:
    """Return the transform of a kernel of `MESH_KERNELS`, or of Student's by its degrees of freedom, on a padded mesh.

    The kernel's value at the far corner is taken out, so that on meshes much smaller than 1 what is left is not one
    less a rounding error; the rest is scaled to 1 at distance 0.
    """
    squares = [(step * _bent_offsets(length)) ** 2 for length in lengths]
    corner = float(sum(part[-1] for part in squares))
    unit = float(_above_corner(kernel, np.zeros(1), corner)[0])
    values = np.empty([length // 2 + 1 for length in lengths])
    others = reduce(np.add.outer, squares[1:])  # of all combinations, one axis a part
    for row, square in zip(values, squares[0], strict=True):
        row[...] = _above_corner(kernel, square + others, corner)
        row /= unit
    values = fft.dctn(values, type=1, overwrite_x=True)
    _divide_by_smoothing(values, lengths, degree)
    return KernelTransform(values, lengths, unit, _at(kernel, corner))


def _divide_by_smoothing(values: np.ndarray, lengths: tuple[int, ...], degree: int) -> None:
    """Multiply `values` by the optimal influence function, without the kernel in it, row by row of the first axis."""
    amounts, forces, angles = zip(*(_smoothing(length, degree) for length in lengths), strict=True)
    amount = reduce(np.multiply.outer, amounts[1:])
    force, angle = (reduce(np.add.outer, parts[1:]) for parts in (forces, angles))
    for number, row in enumerate(values):
        wanted, seen = angles[0][number] + angle, forces[0][number] + force
        if number == 0:
            wanted.flat[0] = seen.flat[0] = 1.0  # both vanish at wave number 0, and their ratio tends to 1
        row *= amounts[0][number] * amount * wanted / seen


def _bent_offsets(length: int) -> np.ndarray:
    """Return offsets 0 .. length / 2, true up to the farthest nodes, then bent so that they end level."""
    offsets, room = np.arange(length // 2 + 1.0), SLACK_NODES // 2
    x = np.clip((offsets - offsets[-1] + room) / room, 0.0, 1.0)
    # The integral of 1 - (10 x^3 - 15 x^4 + 6 x^5): slope 1 at the start, 0 at the end, curvature 0 at both.
    return np.where(x > 0.0, offsets[-1] + room * (x - 1.0 - 2.5 * x**4 + 3.0 * x**5 - x**6), offsets)


def _at(kernel: str | float, square: float) -> float:
    """Return K at one squared distance."""
    if kernel == "student":
        return 1.0 / (1.0 + square)
    return float(np.exp(-square) if isinstance(kernel, str) else (1.0 + square / kernel) ** -kernel)


def _above_corner(kernel: str | float, squares: np.ndarray, corner: float) -> np.ndarray:
    """Return K(r^2) - K(corner), without cancellation where both are close to one."""
    if kernel == "student":
        return (corner - squares) / ((1.0 + squares) * (1.0 + corner))
    if not isinstance(kernel, str):
        values = (1.0 + squares / kernel) ** -kernel
        return -values * np.expm1(-kernel * np.log1p((corner - squares) / (kernel + squares)))
    return -np.exp(-squares) * np.expm1(squares - corner)


def _smoothing(length: int, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U / A^2, C / A and k^2 of the wave numbers k of half an axis.

    U(k) is the squared transform of the spline, A its sum over the aliases of k, and C the sum of U k^2.
    """
    angles = np.pi * np.arange(length // 2 + 1) / (length // 2)
    images = angles[:, None] + 2.0 * np.pi * np.arange(-ALIASES, ALIASES + 1)
    powers = np.sinc(images / (2.0 * np.pi)) ** (2 * degree + 2)
    amounts = powers.sum(axis=1)
    return powers[:, ALIASES] / amounts**2, (powers * images**2).sum(axis=1) / amounts, angles**2


class MeshConvolution:
    """Convolves meshes with one kernel, in the dtype of the meshes (float32 or float64).

    Work is cut into the same pieces for any map function, so results do not depend on threads.
    """

    def __init__(self, transform: KernelTransform, dtype: np.dtype):
        self.lengths, self.unit, self.edge = transform.lengths, transform.unit, transform.edge
        *others, n_waves = transform.values.shape
        self._factors = np.empty((*others, n_waves, 2), dtype)  # of the real and of the imaginary part
        self._factors[...] = transform.values[..., np.newaxis]
        self._factors = self._factors.reshape(*others, 2 * n_waves)
        self._buffer = np.empty(0, np.result_type(dtype, np.complex64))

    def apply(self, parts: np.ndarray, over: Mapper) -> np.ndarray:
        """Return the sum of `parts` (p, n_0, ...) convolved with the kernel; it replaces the first part."""
        *others, length = self.lengths
        rows, n_waves = parts.reshape(len(parts), -1, parts.shape[-1]), length // 2 + 1
        _, n_rows, n_columns = rows.shape
        spectrum = self._spectrum((n_rows, n_waves))
        waves = spectrum.reshape(*parts.shape[1:-1], n_waves)

        def transform(piece: slice) -> None:
            spectrum[piece] = fft.rfft(rows[:, piece].sum(axis=0), length)

        def convolve(piece: slice) -> None:
            waves[..., piece] = self._convolved(waves[..., piece], self._factors[..., 2 * piece.start : 2 * piece.stop])

        def restore(piece: slice) -> None:
            rows[0, piece] = fft.irfft(spectrum[piece], length)[:, :n_columns]

        row_pieces = slices(n_rows, max(1, PIECE_BYTES // (spectrum.itemsize * n_waves)))
        run(over(transform, row_pieces))
        run(over(convolve, slices(n_waves, max(LEAST_WAVES, PIECE_BYTES // (spectrum.itemsize * math.prod(others))))))
        run(over(restore, row_pieces))
        return parts[0]

    def _convolved(self, waves: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Return some wave numbers along the last axis (n_0, ..., w), convolved along all others."""
        axes = range(waves.ndim - 1)
        padded = waves
        for axis in reversed(axes):
            padded = fft.fft(padded, self.lengths[axis], axis)
        numbers = padded.view(factors.dtype)
        for halves in product(*(_halves(self.lengths[axis]) for axis in axes)):
            half, stored = zip(*halves, strict=True)
            numbers[half] *= factors[stored]
        for axis in axes:
            restored = fft.ifft(padded, axis=axis, overwrite_x=True)
            padded = restored[(slice(None),) * axis + (slice(waves.shape[axis]),)]
        return padded

    def _spectrum(self, shape: tuple[int, int]) -> np.ndarray:
        size = math.prod(shape)
        if not size <= self._buffer.size <= 2 * size:
            self._buffer = np.empty(size, self._buffer.dtype)
        return self._buffer[:size].reshape(shape)


def _halves(length: int) -> list[tuple[slice, slice]]:
    """Return the wave numbers of each half of an axis, and where the transform of a kernel has their values."""
    return [(slice(0, length // 2 + 1), slice(None)), (slice(length // 2 + 1, length), slice(length // 2 - 1, 0, -1))]
