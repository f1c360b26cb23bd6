"""Convolution of a mesh of charges with a kernel in free space, by Fourier transforms that skip the zero padding.

The mesh is charged by B-splines and read by B-splines. The transform of the kernel is divided by what the two smooth
away, in the least-squares sense for the gradient of the spline that is read ("optimal influence function"). Source:
Hockney and Eastwood, Computer Simulation Using Particles (1988), 8-22; for the gradient of the interpolant,
Ballenegger, Cerda and Holm, J. Chem. Theory Comput. 8 (2012), 936, equation 31.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from scalemani.kernels.compile import compiled

KERNELS = ("student", "gaussian")
SLACK_NODES = 16  # along which the kernel is bent to a smooth periodic one: a kink there would ring everywhere
# Padded lengths are these times powers of two: quick to transform, and 7 to 12% apart, so that a map that grows keeps
# its kernel's transform for a while.
LENGTH_FACTORS = (32, 36, 40, 45, 48, 54, 60)
BLOCK_COLUMNS = 32  # columns transformed at a time: padded, a few hundred kB, they stay in the second-level cache
BLOCK_NODES = 16384  # nodes of the slices of the mesh, at least one, transformed at a time along the other axes
ALIASES = 24  # images of the first zone on either side that count in sums over aliases

Over = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]


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


def kernel_transform(kernel: str, lengths: tuple[int, ...], step: float, degree: int) -> KernelTransform:
    """Return the transform of a kernel on a padded mesh, for splines of a degree on charges and on potential.

    The kernel's value at the far corner is taken out, so that on meshes much smaller than 1 what is left is not one
    less a rounding error; the rest is scaled to 1 at distance 0.
    """
    squares = _along_axes([(step * _bent_offsets(length)) ** 2 for length in lengths], np.add.outer)
    corner = float(squares.flat[-1])
    values = _above_corner(kernel, squares, corner)
    unit = float(values.flat[0])
    values /= unit
    values = fft.dctn(values, type=1, overwrite_x=True)
    amounts, forces, angles = zip(*(_smoothing(length, degree) for length in lengths), strict=True)
    values *= _along_axes(list(amounts), np.multiply.outer)
    wanted, seen = _along_axes(list(angles), np.add.outer), _along_axes(list(forces), np.add.outer)
    wanted.flat[0] = seen.flat[0] = 1.0
    values *= wanted / seen
    edge = 1.0 / (1.0 + corner) if kernel == "student" else float(np.exp(-corner))
    return KernelTransform(values, lengths, unit, edge)


def _along_axes(parts: list[np.ndarray], outer: Any) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = outer(total, part)
    return total.copy()


def _bent_offsets(length: int) -> np.ndarray:
    """Return offsets 0 .. length / 2, true up to the farthest nodes, then bent so that they end level."""
    offsets, room = np.arange(length // 2 + 1.0), SLACK_NODES // 2
    x = np.clip((offsets - offsets[-1] + room) / room, 0.0, 1.0)
    # The integral of 1 - (10 x^3 - 15 x^4 + 6 x^5): slope 1 at the start, 0 at the end, curvature 0 at both.
    return np.where(x > 0.0, offsets[-1] + room * (x - 1.0 - 2.5 * x**4 + 3.0 * x**5 - x**6), offsets)


def _above_corner(kernel: str, squares: np.ndarray, corner: float) -> np.ndarray:
    """Return K(r^2) - K(corner), without cancellation where both are close to one."""
    if kernel == "student":
        return (corner - squares) / ((1.0 + squares) * (1.0 + corner))
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


@compiled
def _multiply(block: np.ndarray, transform: np.ndarray) -> None:
    """Multiply `block` (m, c) complex by the real, even `transform` (m / 2 + 1, c)."""
    length = np.uint64(block.shape[0])
    for row in range(length):
        stored = np.uint64(min(row, length - row))
        for column in range(np.uint64(block.shape[1])):
            block[row, column] *= transform[stored, column]


class MeshConvolution:
    """Convolves meshes with one kernel, in the dtype of the meshes (float32 or float64).

    Parts are transformed in fixed slices whatever `over` runs side by side, so results do not depend on threads.
    """

    def __init__(self, transform: KernelTransform, dtype: np.dtype):
        self.lengths, self.unit, self.edge = transform.lengths, transform.unit, transform.edge
        middle = _mirrored(transform.values.astype(dtype), self.lengths)
        self._transform = middle.reshape(len(middle), -1)
        self._complex = np.complex64 if dtype == np.float32 else np.complex128

    def apply(self, parts: np.ndarray, over: Over) -> np.ndarray:
        """Return the sum of `parts` (p, n_0, ...) convolved with the kernel, in the place of the first part."""
        n_rows, *others = parts.shape[1:]
        spectrum = np.empty((n_rows, *self.lengths[1:-1], self.lengths[-1] // 2 + 1), self._complex)
        columns = spectrum.reshape(n_rows, -1)
        slices = _pieces(n_rows, max(1, BLOCK_NODES // int(np.prod(others))))
        _run(over(lambda rows: self._forward(parts[:, rows], spectrum[rows]), slices))
        _run(
            over(
                lambda block: self._first_axis(columns[:, block], self._transform[:, block]),
                _pieces(columns.shape[1], BLOCK_COLUMNS),
            )
        )
        _run(over(lambda rows: self._back(spectrum[rows], parts[0, rows]), slices))
        return parts[0]

    def _forward(self, parts: np.ndarray, spectrum: np.ndarray) -> None:
        for part in parts[1:]:
            parts[0] += part
        lines = fft.rfft(parts[0], n=self.lengths[-1], axis=-1)
        for axis in range(lines.ndim - 2, 0, -1):
            lines = fft.fft(lines, n=self.lengths[axis], axis=axis, overwrite_x=True)
        spectrum[...] = lines

    def _first_axis(self, columns: np.ndarray, transform: np.ndarray) -> None:
        lines = fft.fft(columns, n=self.lengths[0], axis=0)
        _multiply(lines, transform)
        columns[...] = fft.ifft(lines, axis=0, overwrite_x=True)[: len(columns)]

    def _back(self, spectrum: np.ndarray, out: np.ndarray) -> None:
        for axis in range(1, spectrum.ndim - 1):
            spectrum = fft.ifft(spectrum, axis=axis)
            spectrum = spectrum[(slice(None),) * axis + (slice(out.shape[axis]),)]
        out[...] = fft.irfft(spectrum, n=self.lengths[-1], axis=-1)[..., : out.shape[-1]]


def _mirrored(values: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """Return a transform with all wave numbers of its middle axes; the first and last stay halves."""
    for axis in range(1, values.ndim - 1):
        numbers = np.arange(lengths[axis])
        values = values.take(np.minimum(numbers, lengths[axis] - numbers), axis=axis)
    return values


def _pieces(size: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def _run(parts: Iterable[Any]) -> None:
    for _ in parts:
        pass
