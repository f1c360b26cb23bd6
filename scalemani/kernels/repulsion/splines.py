"""Points spread on a mesh by B-splines, and a spline and its gradient read at points.

A mesh is described by `scale`, a tuple of d coordinates and the inverse of the step: a point x lies in the cell
floor((x - origin) inverse_step), and its patch of degree + 1 nodes along each axis starts at that node. The patch of
every point must lie inside the mesh, with as many nodes to spare at the end as `row_slack` says.

A point touches W^d nodes, W = degree + 1. Rows of its patch are handled as whole vectors, one or a few points to a
vector, in instructions written out for the compiler: with scalar loops it must assume that a store to one row changes
the next, and adds up each point's row separately.
"""

from functools import reduce
from math import comb, factorial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.extending import intrinsic

from scalemani.kernels.machine.compile import compiled, in_plain_mode, numbers_at

CONTRACT = ("contract",)  # a product and a sum may be fused
QUARTER = 4  # lanes are added up four at a time
_ALONE = (0,)
_PAIR = (0, 0)
_FOUR = (0, 0, 0, 0)
WIDEST_ROWS = 32  # bytes of a row up to which four points share a vector; two where rows are longer


def spline_weights(degree: int, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (degree + 1,) float64 of a patch's taps along one axis, and their derivatives per step.

    They are N(x_k) and N'(x_k) of the cardinal B-spline N at x_k = fraction + degree - k, for 0 <= fraction < 1.
    Source: de Boor, A Practical Guide to Splines (1978), chapter X: the recurrence over degrees.
    """
    lower = np.ones(1) if degree == 1 else spline_weights(degree - 1, fraction)[0]
    here, before = np.append(0.0, lower), np.append(lower, 0.0)  # of the degree below, at x_k and at x_k - 1
    x = fraction + degree - np.arange(degree + 1)
    return (x * here + (degree + 1 - x) * before) / degree, here - before


def reference_spread_group(
    taps: tuple, group: tuple, place: int, scale: tuple, mesh: int, strides: tuple, charges: tuple
) -> None:
    """Add the charges of a group of points to a mesh.

    Parameters
    ----------
    taps, group : tuples whose lengths count: degree + 1, and the points
    place : address of the points, (points, d) float64, C-contiguous
    scale : d coordinates of the origin, and 1 / h of the step h
    mesh : address of the nodes, of the dtype of `charges`; the patches of all points lie inside
    strides : d - 1 int, bytes from a node to the next along all axes but the last, along which nodes lie side by side
    charges : float32 or float64 of the points
    """
    for charge, cells, weights, _ in zip(charges, *_patches(taps, group, place, scale), strict=True):
        patch = _patch(mesh, strides, cells, len(taps), np.asarray(charge).dtype)
        patch += charge * reduce(np.multiply.outer, weights)


def reference_gather_group(
    taps: tuple,
    group: tuple,
    place: int,
    scale: tuple,
    amounts: tuple[float, float],
    mesh: int,
    strides: tuple,
    out: tuple[int, int],
    element: Any,
) -> None:
    """Write unit * spline + constant and unit * its gradient at a group of points.

    Parameters
    ----------
    taps, group, place, scale, strides : those of `reference_spread_group`
    amounts : the unit and the constant
    mesh : address of the spline's coefficients at the nodes, of the dtype of `element`
    out : addresses of the values, (points,) float64, and of the gradients, (points, d) float64, both C-contiguous
    element : any float32 or float64
    """
    n_dims, (unit, constant) = len(strides) + 1, amounts
    values = numbers_at(out[0], (len(group),), np.float64)
    gradients = numbers_at(out[1], (len(group), n_dims), np.float64)
    for n, (cells, weights, slopes) in enumerate(zip(*_patches(taps, group, place, scale), strict=True)):
        patch = _patch(mesh, strides, cells, len(taps), np.asarray(element).dtype)
        values[n] = unit * np.sum(patch * reduce(np.multiply.outer, weights)) + constant
        for axis in range(n_dims):
            factors = [*weights[:axis], slopes[axis], *weights[axis + 1 :]]
            gradients[n, axis] = unit * scale[-1] * np.sum(patch * reduce(np.multiply.outer, factors))


def _patches(taps: tuple, group: tuple, place: int, scale: tuple) -> tuple[list, list, list]:
    """Return each point's cell, and its weights and slopes along each axis."""
    points = numbers_at(place, (len(group), len(scale) - 1), np.float64)
    steps = (points - np.array(scale[:-1])) * scale[-1]
    cells = steps.astype(np.int64)
    by_axis = [[spline_weights(len(taps) - 1, f) for f in fractions] for fractions in steps - cells]
    return list(cells), [[w for w, _ in axes] for axes in by_axis], [[s for _, s in axes] for axes in by_axis]


def _patch(mesh: int, strides: tuple, cells: np.ndarray, n_taps: int, dtype: np.dtype) -> np.ndarray:
    """Return the nodes of a patch, degree + 1 along each axis from the cell on."""
    every = (*strides, dtype.itemsize)
    return numbers_at(mesh + int(cells @ every), (n_taps,) * len(every), dtype, every)


def spline_pieces(degree: int) -> np.ndarray:
    """Return the polynomials of the cardinal B-spline N of a degree, (degree + 1 taps, degree + 1 powers) float64.

    The weight of tap k at the fraction f in [0, 1) is N(f + degree - k) = sum_m pieces[k, m] f^m.
    Source: de Boor, A Practical Guide to Splines (1978), IX; truncated powers, expanded exactly.
    """

    def piece(tap: int, power: int) -> float:
        starts = range(degree - tap, -1, -1)  # of the powers, one a knot
        terms = ((-1) ** knot * comb(degree + 1, knot) * start ** (degree - power) for knot, start in enumerate(starts))
        return comb(degree, power) * sum(terms) / factorial(degree)  # whole numbers until here, rounded once

    return np.array([[piece(tap, power) for power in range(degree + 1)] for tap in range(degree + 1)])


def row_lanes(degree: int) -> int:
    """Return the lanes of a patch's row: a power of two; lanes beyond its degree + 1 taps have weight zero."""
    return max(QUARTER, 1 << degree.bit_length())


class _Emitter:
    """Emits the instructions for a group of points; a vector has a block of `lanes` for each of them.

    `addresses` are those of the first node of each point's patch; `fractions`, of its place in its cell, go point by
    point and axis by axis.
    """

    def __init__(self, builder: Any, taps: Any, group: Any, element: Any, operands: tuple[Any, Any, Any, Any]):
        self.builder, self.degree, self.group = builder, taps.count - 1, group.count
        place, scale, mesh, strides = operands
        self.scale, self.strides = (cgutils.unpack_tuple(builder, several) for several in (scale, strides))
        self.n_dims, self.lanes = len(self.strides) + 1, row_lanes(self.degree)
        single = element == numba_types.float32
        self.element, self.item_bytes = (ir.FloatType(), 4) if single else (ir.DoubleType(), 8)
        cells, self.fractions = self.cells(place)
        self.addresses = self.patches(cells, mesh)

    def shuffled(self, a: Any, b: Any, lanes: list[int]) -> Any:
        return self.builder.shuffle_vector(a, b, ir.VectorType(ir.IntType(32), len(lanes))(lanes))

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=CONTRACT)

    def plus(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=CONTRACT)

    def extract(self, vector: Any, lane: int) -> Any:
        return self.builder.extract_element(vector, ir.IntType(32)(lane))

    def packed(self, scalars: list[Any]) -> Any:
        vector = ir.VectorType(scalars[0].type, len(scalars))(ir.Undefined)
        for lane, scalar in enumerate(scalars):
            vector = self.builder.insert_element(vector, scalar, ir.IntType(32)(lane))
        return vector

    def at(self, address: Any, type_: Any) -> Any:
        return self.builder.inttoptr(address, type_.as_pointer())

    def cells(self, place: Any) -> tuple[Any, Any]:
        """Return cell numbers (int64) and fractions, point by point and axis by axis, of the points at `place`."""
        n_lanes = self.group * self.n_dims
        wide = ir.VectorType(ir.DoubleType(), n_lanes)
        points = self.builder.load(self.at(place, wide), align=8)
        from_origin = self.builder.fsub(points, self.packed(self.scale[:-1] * self.group))
        steps = self.builder.fmul(from_origin, self.packed([self.scale[-1]] * n_lanes))
        cells = self.builder.fptosi(steps, ir.VectorType(ir.IntType(64), n_lanes))
        fractions = self.builder.fsub(steps, self.builder.sitofp(cells, wide))
        if self.item_bytes == 4:
            fractions = self.builder.fptrunc(fractions, ir.VectorType(self.element, n_lanes))
        return cells, fractions

    def patches(self, cells: Any, mesh: Any) -> list[Any]:
        """Return the address of the first node of each point's patch."""
        moved = self.builder.mul(cells, self.packed([*self.strides, ir.IntType(64)(self.item_bytes)] * self.group))
        addresses = []
        for point in range(self.group):
            address = mesh
            for axis in range(self.n_dims):
                address = self.builder.add(address, self.extract(moved, point * self.n_dims + axis))
            addresses.append(address)
        return addresses

    def weights(self, axis: int, derivative: bool = False) -> Any:
        """Return the weights of all taps along an axis, or their derivatives."""
        pieces = spline_pieces(self.degree)
        if derivative:
            pieces = pieces[:, 1:] * np.arange(1, self.degree + 1)
        padded = np.zeros((self.lanes, pieces.shape[1]))
        padded[: len(pieces)] = pieces
        type_ = ir.VectorType(self.element, self.lanes * self.group)
        columns = [type_(column.tolist() * self.group) for column in padded.T]
        spread = [point * self.n_dims + axis for point in range(self.group) for _ in range(self.lanes)]
        x, value = self.shuffled(self.fractions, self.fractions, spread), columns[-1]
        for column in columns[-2::-1]:
            value = self.plus(self.times(value, x), column)
        return value

    def tap(self, weights: Any, tap: int) -> Any:
        """Return each point's weight of one tap, in all its lanes."""
        return self.shuffled(
            weights, weights, [p * self.lanes + tap for p in range(self.group) for _ in range(self.lanes)]
        )

    def row(self, point: int, taps: tuple[int, ...]) -> Any:
        """Return the place of a point's row at `taps` along all axes but the last."""
        address = self.addresses[point]
        for stride, tap in zip(self.strides, taps, strict=True):
            address = self.builder.add(address, self.builder.mul(stride, stride.type(tap)))
        return self.at(address, ir.VectorType(self.element, self.lanes))

    def load_row(self, taps: tuple[int, ...]) -> Any:
        """Return the rows of all points at `taps`, joined."""
        rows = [self.row(point, taps) for point in range(self.group)]
        rows = [self.builder.load(row, align=self.item_bytes) for row in rows]
        while len(rows) > 1:
            size = rows[0].type.count
            rows = [self.shuffled(a, b, list(range(2 * size))) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        return rows[0]

    def add_to_row(self, taps: tuple[int, ...], row: Any, point: int) -> None:
        place, part = self.row(point, taps), row
        if self.group > 1:
            part = self.shuffled(row, row, list(range(point * self.lanes, (point + 1) * self.lanes)))
        total = self.plus(self.builder.load(place, align=self.item_bytes), part)
        self.builder.store(total, place, align=self.item_bytes)

    def contracted(self, weights: list[Any], slopes: list[Any], taps: tuple[int, ...] = ()) -> list[Any]:
        """Sum over the axes from len(taps) to the last but one: plain, then with the slope along each of those."""
        axis = len(taps)
        if axis == self.n_dims - 1:
            return [self.load_row(taps)]
        totals: list[Any] = []
        for tap in range(self.degree + 1):
            inner = self.contracted(weights, slopes, (*taps, tap))
            weight, slope = self.tap(weights[axis], tap), self.tap(slopes[axis], tap)
            terms = [self.times(inner[0], weight), self.times(inner[0], slope)]
            terms += [self.times(value, weight) for value in inner[1:]]
            totals = [self.plus(t, u) for t, u in zip(totals, terms, strict=True)] if totals else terms
        return totals

    def added_up(self, vectors: list[Any]) -> Any:
        """Return, in four lanes a point, the sums over the lanes of up to four vectors."""
        lanes = self.lanes
        while lanes > QUARTER:
            half = lanes // 2
            low = [p * lanes + lane for p in range(self.group) for lane in range(half)]
            vectors = [
                self.plus(self.shuffled(v, v, low), self.shuffled(v, v, [x + half for x in low])) for v in vectors
            ]
            lanes = half
        a, b, c, d = [*vectors, *[vectors[0]] * (QUARTER - len(vectors))]
        return self._paired(self._paired(a, b), self._paired(c, d))

    def _paired(self, a: Any, b: Any) -> Any:
        """Add neighbouring lanes of a and of b, and put their sums side by side in each block of four."""
        starts = [p * QUARTER + shift for p in range(self.group) for shift in (0, a.type.count)]
        even = [first + lane for first in starts for lane in (0, 2)]
        return self.plus(self.shuffled(a, b, even), self.shuffled(a, b, [lane + 1 for lane in even]))


@in_plain_mode(reference_spread_group)
@intrinsic
def spread_group(
    typing_context: Any, taps: Any, group: Any, place: Any, scale: Any, mesh: Any, strides: Any, charges: Any
) -> Any:
    """Emit what `reference_spread_group` does, for the lengths of `taps` and `group`.

    Rows may be read, and written back unchanged, up to `row_lanes(degree)` nodes from their first tap on.
    """
    signature = numba_types.void(taps, group, place, scale, mesh, strides, charges)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emitter = _Emitter(builder, taps, group, charges.dtype, arguments[2:6])
        weights = [emitter.weights(axis) for axis in range(emitter.n_dims)]
        amounts = emitter.packed(cgutils.unpack_tuple(builder, arguments[6]))
        blocks = [point for point in range(emitter.group) for _ in range(emitter.lanes)]
        last = emitter.times(weights[-1], emitter.shuffled(amounts, amounts, blocks))
        rows = {(): last}
        for axis in range(emitter.n_dims - 1):
            rows = {
                (*taken, tap): emitter.times(row, emitter.tap(weights[axis], tap))
                for taken, row in rows.items()
                for tap in range(emitter.degree + 1)
            }
        for point in range(emitter.group):
            for taken, row in rows.items():
                emitter.add_to_row(taken, row, point)
        return context.get_dummy_value()

    return signature, emit


@in_plain_mode(reference_gather_group)
@intrinsic
def gather_group(
    typing_context: Any,
    taps: Any,
    group: Any,
    place: Any,
    scale: Any,
    amounts: Any,
    mesh: Any,
    strides: Any,
    out: Any,
    element: Any,
) -> Any:
    """Emit what `reference_gather_group` does; rows are read as by `spread_group`."""
    signature = numba_types.void(taps, group, place, scale, amounts, mesh, strides, out, element)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emitter = _Emitter(builder, taps, group, element, (*arguments[2:4], *arguments[5:7]))
        axes = range(emitter.n_dims)
        weights = [emitter.weights(axis) for axis in axes]
        slopes = [emitter.weights(axis, derivative=True) for axis in axes]
        sums = emitter.contracted(weights, slopes)
        vectors = [emitter.times(part, weights[-1]) for part in sums] + [emitter.times(sums[0], slopes[-1])]
        results = emitter.added_up(vectors)
        factors, out = (cgutils.unpack_tuple(builder, several) for several in (arguments[4], arguments[7]))
        _store_results(emitter, results, factors, out)
        return context.get_dummy_value()

    return signature, emit


def _store_results(emitter: _Emitter, results: Any, factors: list[Any], out: list[Any]) -> None:
    builder, n_dims, (unit, constant) = emitter.builder, emitter.n_dims, factors
    if emitter.item_bytes == 4:
        results = builder.fpext(results, ir.VectorType(ir.DoubleType(), results.type.count))
    starts = range(0, QUARTER * emitter.group, QUARTER)
    sums = emitter.shuffled(results, results, list(starts))
    values = emitter.plus(
        emitter.times(sums, emitter.packed([unit] * emitter.group)), emitter.packed([constant] * emitter.group)
    )
    slopes = emitter.shuffled(results, results, [first + 1 + axis for first in starts for axis in range(n_dims)])
    per_step = builder.fmul(unit, emitter.scale[-1])
    gradients = emitter.times(slopes, emitter.packed([per_step] * slopes.type.count))
    for vector, address in zip((values, gradients), out, strict=True):
        builder.store(vector, emitter.at(address, vector.type), align=8)


def row_slack(degree: int) -> int:
    """Return how many nodes after its taps a row of a patch reads, and writes back unchanged."""
    return row_lanes(degree) - degree - 1


def taps_of(degree: int) -> tuple[int, ...]:
    """Return a tuple whose length the compiler takes for the taps of a degree."""
    return (0,) * (degree + 1)


def gather_points(degree: int, dtype: np.dtype) -> tuple[int, ...]:
    """Return a tuple whose length the compiler takes for the points to gather at a time."""
    return _FOUR if row_lanes(degree) * dtype.itemsize <= WIDEST_ROWS else _PAIR


@compiled
def spread(points: np.ndarray, charges: np.ndarray, unit: float, scale: tuple, taps: tuple, mesh: np.ndarray) -> None:
    """Add the charges of points to a mesh, in row order.

    Parameters
    ----------
    points : (n, d) float64, C-contiguous
    charges : (n,) float64, or (1,) for all alike
    unit : what a charge is multiplied by before it is rounded to the dtype of the mesh
    scale : d coordinates of the origin, and 1 / h of the step h
    taps : `taps_of(degree)`
    mesh : d axes of nodes, float32 or float64; it changes
    """
    n_points, each = points.shape[0], 1 if charges.size == points.shape[0] else 0
    place, row, nodes = points.ctypes.data, points.strides[0], mesh.ctypes.data
    strides = mesh.strides[:-1]
    whole = n_points - n_points % len(_FOUR)
    for n in range(0, whole, len(_FOUR)):
        amounts = (
            mesh.dtype.type(unit * charges[n * each]),
            mesh.dtype.type(unit * charges[(n + 1) * each]),
            mesh.dtype.type(unit * charges[(n + 2) * each]),
            mesh.dtype.type(unit * charges[(n + 3) * each]),
        )
        spread_group(taps, _FOUR, place + n * row, scale, nodes, strides, amounts)
    for n in range(whole, n_points):
        alone = (mesh.dtype.type(unit * charges[n * each]),)
        spread_group(taps, _ALONE, place + n * row, scale, nodes, strides, alone)


@compiled
def gather(
    points: np.ndarray,
    scale: tuple,
    amounts: tuple,
    taps: tuple,
    group: tuple,
    mesh: np.ndarray,
    out: tuple,
) -> None:
    """Write unit * spline + constant at points, and unit times the gradient of the spline.

    Parameters
    ----------
    points, scale, taps : those of `spread`
    amounts : (unit, constant)
    group : `gather_points(degree, dtype)`
    mesh : d axes of nodes, float32 or float64: the coefficients of the spline
    out : values (n,) and gradients (n, d), float64 and C-contiguous; written
    """
    element, strides, nodes = mesh.dtype.type(0), mesh.strides[:-1], mesh.ctypes.data
    place, values, gradients = points.ctypes.data, out[0].ctypes.data, out[1].ctypes.data
    row, value = points.strides[0], out[0].strides[0]
    whole = points.shape[0] - points.shape[0] % len(group)
    for n in range(0, whole, len(group)):
        at = (values + n * value, gradients + n * row)
        gather_group(taps, group, place + n * row, scale, amounts, nodes, strides, at, element)
    for n in range(whole, points.shape[0]):
        at = (values + n * value, gradients + n * row)
        gather_group(taps, _ALONE, place + n * row, scale, amounts, nodes, strides, at, element)
