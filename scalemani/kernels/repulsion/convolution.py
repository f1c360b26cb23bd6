"""Convolution of a mesh of charges with a kernel, by Fourier transforms that never meet the zero padding as a whole.

The mesh is charged by B-splines and read by B-splines. The transform of the kernel in free space is divided by what the
two smooth away, in the least-squares sense for the gradient of the spline that is read ("optimal influence function").
Source: Hockney and Eastwood, Computer Simulation Using Particles (1988), chapter 8; for the gradient of the
interpolant, Ballenegger, Cerda and Holm, J. Chem. Theory Comput. 8 (2012), 936.

The first axis is transformed down columns, two sets of real columns at a time as real and imaginary parts. Its wave
numbers then lie side by side in vectors, and for each batch of them all other axes are padded, transformed, multiplied
and transformed back in one go. An inverse transform is a forward one with real and imaginary parts exchanged.

Fourier transforms are of many short sequences side by side, one to a lane of a vector. A batch is (m, 2, lanes): the
real parts of element j of all sequences, then the imaginary parts, 128 bytes together. Passes of radix 2 to 5 write in
order as they go (Stockham), so no pass permutes. Source: Van Loan, Computational Frameworks for the Fast Fourier
Transform (1992), 1.7; butterflies of odd length by symmetric and antisymmetric pairs.
"""

import math
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.extending import intrinsic
from scipy import fft

from scalemani.kernels.arrays.tiles import Mapper, run
from scalemani.kernels.machine.compile import compiled, in_plain_mode, inlined
from scalemani.kernels.machine.instructions import spread

MESH_KERNELS = ("student", "gaussian")
SLACK_NODES = 16  # along which the kernel is bent to a smooth periodic one: a kink there would ring everywhere
# Padded lengths are these times powers of two: quick to transform, and 7 to 12% apart, so that a map that grows keeps
# its kernel's transform for a while.
LENGTH_FACTORS = (32, 36, 40, 45, 48, 54, 60)
ALIASES = 24  # images of the first zone on either side that count in sums over aliases

ROW_BYTES = 128  # real and imaginary parts of one element
RADICES = (4, 5, 3, 2)


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
    """Return the transform of a kernel of `MESH_KERNELS` on a padded mesh.

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
    edge = 1.0 / (1.0 + corner) if kernel == "student" else float(np.exp(-corner))
    return KernelTransform(values, lengths, unit, edge)


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


def batch_lanes(dtype: np.dtype) -> int:
    """Return how many sequences a batch holds."""
    return ROW_BYTES // (2 * dtype.itemsize)


def radices_of(length: int) -> np.ndarray:
    """Return the radices of the passes for a length of the form 2^a 3^b 5^c, (p,) int64."""
    radices = []
    for radix in RADICES:
        while length % radix == 0:
            radices.append(radix)
            length //= radix
    return np.array(radices, dtype=np.int64)


def twiddle_factors(length: int, dtype: np.dtype) -> np.ndarray:
    """Return exp(-2 pi i p k / n), k = 1 .. radix - 1, for every pass and p, as cosines and sines one after another."""
    parts, remaining = [], length
    for radix in radices_of(length):
        numbers = np.outer(np.arange(remaining // radix), np.arange(1, radix)) % remaining
        angles = -2.0 * np.pi * numbers / remaining
        parts.append(np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel())
        remaining //= radix
    return np.concatenate(parts).astype(dtype)


class _Lanes:
    """Complex arithmetic on pairs of vectors."""

    def __init__(self, builder: Any, element: Any):
        self.builder, single = builder, element == numba_types.float32
        self.item_bytes = 4 if single else 8
        self.type = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), ROW_BYTES // (2 * self.item_bytes))

    def splat(self, scalar: Any) -> Any:
        return spread(self.builder, scalar, self.type.count)

    def plus(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=("contract",))

    def minus(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b, flags=("contract",))

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=("contract",))

    def added(self, a: Any, b: Any) -> Any:
        return [self.plus(x, y) for x, y in zip(a, b, strict=True)]

    def subtracted(self, a: Any, b: Any) -> Any:
        return [self.minus(x, y) for x, y in zip(a, b, strict=True)]

    def turned(self, a: Any, factor: Any) -> Any:
        cosine, sine = factor
        real = self.minus(self.times(a[0], cosine), self.times(a[1], sine))
        return [real, self.plus(self.times(a[0], sine), self.times(a[1], cosine))]

    def row(self, address: Any, stride: Any, number: int) -> list[Any]:
        """Return the places of the real and imaginary parts of a row."""
        address = self.builder.add(address, self.builder.mul(stride, stride.type(number)))
        half = self.builder.add(address, stride.type(ROW_BYTES // 2))
        return [self.builder.inttoptr(at, self.type.as_pointer()) for at in (address, half)]

    def butterfly(self, rows: list[Any]) -> list[Any]:
        """Return the transform of a few rows."""
        radix = len(rows)
        if radix == 2:
            return [self.added(*rows), self.subtracted(*rows)]
        if radix == 4:
            (a, b), (c, d) = self.butterfly(rows[::2]), self.butterfly(rows[1::2])
            over, under = (
                [self.plus(b[0], d[1]), self.minus(b[1], d[0])],
                [self.minus(b[0], d[1]), self.plus(b[1], d[0])],
            )
            return [self.added(a, c), over, self.subtracted(a, c), under]
        pairs = range(1, radix // 2 + 1)
        sums = [self.added(rows[j], rows[-j]) for j in pairs]
        differences = [self.subtracted(rows[j], rows[-j]) for j in pairs]
        results: list[Any] = [rows[0]] + [None] * (radix - 1)
        for total in sums:
            results[0] = self.added(results[0], total)
        for k in pairs:
            even, odd = rows[0], [self.type(0.0)] * 2
            for j in pairs:
                angle = 2.0 * math.pi * j * k / radix
                cosine, sine = self.type(math.cos(angle)), self.type(math.sin(angle))
                even = [self.plus(e, self.times(s, cosine)) for e, s in zip(even, sums[j - 1], strict=True)]
                odd = [self.plus(o, self.times(s, sine)) for o, s in zip(odd, differences[j - 1], strict=True)]
            results[k] = [self.plus(even[0], odd[1]), self.minus(even[1], odd[0])]
            results[-k] = [self.minus(even[0], odd[1]), self.plus(even[1], odd[0])]
        return results


def _pass_rows(typing_context: Any, source: Any, source_step: Any, target: Any, target_step: Any, factors: Any) -> Any:
    """Emit the transform of a few rows `source_step` bytes apart, turned, and written `target_step` bytes apart.

    `source` and `target` are the addresses of the first rows; `factors` is a tuple of 2 (radix - 1) numbers, in the
    dtype of the batch: the cosine and sine that each row of the result but the first is multiplied by.
    """
    signature = numba_types.void(source, source_step, target, target_step, factors)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, radix = _Lanes(builder, factors.dtype), factors.count // 2 + 1
        places = [lanes.row(arguments[0], arguments[1], j) for j in range(radix)]
        results = lanes.butterfly([[builder.load(at, align=lanes.item_bytes) for at in place] for place in places])
        splats = [lanes.splat(value) for value in cgutils.unpack_tuple(builder, arguments[4])]
        for j, result in enumerate(results):
            turned = lanes.turned(result, splats[2 * j - 2 : 2 * j]) if j else result
            for value, at in zip(turned, lanes.row(arguments[2], arguments[3], j), strict=True):
                builder.store(value, at, align=lanes.item_bytes)
        return context.get_dummy_value()

    return signature, emit


pass_rows: Any = intrinsic(_pass_rows)


def reference_transformed(batch: np.ndarray, spare: np.ndarray, radices: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return sum_j x_j exp(-2 pi i j k / m), k = 0 .. m - 1, of many sequences side by side, in `batch` or in `spare`.

    Parameters
    ----------
    batch, spare : (m, 2, lanes) float32 or float64, the sequences x, one to a lane, real and imaginary parts, and room
        for as many. Both are overwritten; what the one that is not returned holds means nothing
    radices : (p,) int64, `radices_of(m)`
    factors : `twiddle_factors(m, dtype)`
    """
    transforms = np.fft.fft(batch[:, 0].astype(np.float64) + 1j * batch[:, 1], axis=0)
    spare[:, 0], spare[:, 1], batch[...] = transforms.real, transforms.imag, np.nan
    return spare


@in_plain_mode(reference_transformed)
@compiled
def transformed(batch: np.ndarray, spare: np.ndarray, radices: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Do what `reference_transformed` does, in passes over rows of all sequences."""
    source, target = batch, spare
    remaining, done, w = batch.shape[0], 1, 0
    for radix in radices:
        part = remaining // radix
        x, y = source.ctypes.data, target.ctypes.data
        far, near = ROW_BYTES * done * part, ROW_BYTES * done
        for p in range(part):
            _turn((x + near * p, far), (y + near * radix * p, near), done, factors, w, radix)
            w += 2 * (radix - 1)
        source, target = target, source
        remaining, done = part, done * radix
    return source


@compiled
def _turn(source: tuple[int, int], target: tuple[int, int], done: int, f: np.ndarray, w: int, radix: int) -> None:
    """Transform `done` groups of rows that share their factors f[w : w + 2 (radix - 1)].

    `source` and `target` are addresses of the first row of a group, and the bytes from each to the next.
    """
    if radix == 4:
        _turn_groups(source, target, done, (f[w], f[w + 1], f[w + 2], f[w + 3], f[w + 4], f[w + 5]))
    elif radix == 5:
        five = (f[w], f[w + 1], f[w + 2], f[w + 3], f[w + 4], f[w + 5], f[w + 6], f[w + 7])
        _turn_groups(source, target, done, five)
    elif radix == 3:
        _turn_groups(source, target, done, (f[w], f[w + 1], f[w + 2], f[w + 3]))
    else:
        _turn_groups(source, target, done, (f[w], f[w + 1]))


@inlined
def _turn_groups(source: tuple[int, int], target: tuple[int, int], done: int, factors: tuple) -> None:
    for q in range(done):
        pass_rows(source[0] + ROW_BYTES * q, source[1], target[0] + ROW_BYTES * q, target[1], factors)


class MeshConvolution:
    """Convolves meshes with one kernel, in the dtype of the meshes (float32 or float64).

    Work is cut into the same pieces for any map function, so results do not depend on threads.
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
        # Halved because two real columns are separated by a sum and a difference.
        np.multiply(values, 0.5 / math.prod(self.lengths), out=batched[: len(values)], casting="same_kind")
        batched = batched.reshape(n_batches, self._lanes, *values.shape[1:])
        return np.ascontiguousarray(np.moveaxis(batched, 1, -1))

    def apply(self, parts: np.ndarray, over: Mapper) -> np.ndarray:
        """Return the sum of `parts` (p, n_0, ...) convolved with the kernel; it replaces the first part."""
        columns, shape = parts.reshape(*parts.shape[:2], -1), parts.shape[2:]
        n_columns, lanes = columns.shape[2], self._lanes
        spectrum, transform = self._spectrum((len(self._transform), n_columns, 2, lanes), parts.dtype), self._transform
        length, plan = self.lengths[0], self._plans[0]
        starts, batches = list(range(0, n_columns, 2 * lanes)), list(range(len(spectrum)))
        run(over(lambda start: _transform_columns(columns, start, length, *plan, spectrum), starts))
        run(over(lambda batch: self._middle(spectrum[batch], transform[batch], shape), batches))
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
        for j in range(min(lanes, width)):
            _write_waves(z, 0, j, b * lanes, spectrum[b, start + j])
        for j in range(width - lanes):
            _write_waves(z, 1, j, b * lanes, spectrum[b, start + lanes + j])


@compiled
def _write_waves(z: np.ndarray, part: int, lane_of_column: int, first: int, column: np.ndarray) -> None:
    """Write wave numbers from `first` on of a real column (2, lanes) that was the real (0) or imaginary part of z."""
    length, j = z.shape[0], lane_of_column
    n_waves = min(column.shape[1], length // 2 + 1 - first)
    for lane in range(n_waves):
        k = first + lane
        m = length - k if k else 0
        column[0, lane] = z[k, part, j] + z[m, part, j]
        column[1, lane] = z[k, 1, j] - z[m, 1, j] if part == 0 else z[m, 0, j] - z[k, 0, j]
    for lane in range(n_waves, column.shape[1]):
        column[0, lane] = column[1, lane] = 0.0


@compiled
def _restore_columns(
    spectrum: np.ndarray, start: int, length: int, radices: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """Transform columns start .. start + 2 lanes of `spectrum` back, unnormalised, and write their first rows.

    Real and imaginary parts of the spectrum are exchanged.
    """
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
                real, imaginary = spectrum[b, start + j, 1, lane], spectrum[b, start + j, 0, lane]
                other_real, other_imaginary = real * 0, real * 0
                if lanes + j < width:
                    other_real = spectrum[b, start + lanes + j, 1, lane]
                    other_imaginary = spectrum[b, start + lanes + j, 0, lane]
                z[m, 1, j], z[m, 0, j] = real + other_imaginary, other_real - imaginary
                z[k, 1, j], z[k, 0, j] = real - other_imaginary, other_real + imaginary
    z = transformed(z, np.empty_like(z), radices, factors)
    for i in range(out.shape[0]):
        for j in range(min(lanes, width)):
            out[i, start + j] = z[i, 1, j]
        for j in range(width - lanes):
            out[i, start + lanes + j] = z[i, 0, j]


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
    """Convolve `line` (n, 2, lanes) in place, padded to `length`, by the kernel; its parts are exchanged afterwards."""
    batch = np.zeros((length, 2, line.shape[2]), line.dtype)
    spare = np.empty_like(batch)
    batch[: len(line)] = line
    z = transformed(batch, spare, radices, factors)
    _multiply_exchange(z, transform)
    line[:] = transformed(z, spare if z is batch else batch, radices, factors)[: len(line)]


@compiled
def _convolve_plane(
    plane: np.ndarray,
    transform: np.ndarray,
    lengths: tuple[int, int],
    first: tuple[np.ndarray, np.ndarray],
    last: tuple[np.ndarray, np.ndarray],
) -> None:
    """Convolve `plane` (n_1, n_2, 2, lanes) as `_convolve_line` does, by the radices and factors of both axes."""
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
        plane[i] = transformed(row, spare, last[0], last[1])[:n_columns]
