"""The attractive half of an embedding's objective, over the rows of symmetric affinities in CSR form.

E+ = sum_nm w_nm a(|x_n - x_m|^2) with a(t) = t ("quadratic") or log(1 + t) ("student"), and its gradient
4 sum_m w_nm a'(t) (x_n - x_m). Source: [PH] 3.2, eqs. (3.3) and (3.4).

A pass reads 8 bytes a nonzero in order and gathers one point for each: rows in locality order find most of those in a
cache. Positions and sums are float64: they cost no more than float32 here, the gathers take the time.

Where the repulsive half errs by more than float32, coordinates are rounded to multiples of a step, 2^31 of them across
the map: half the bytes of float64, and a gathering of points is most of an iteration at a million of them. Differences
of whole numbers are exact: near points, whose coordinates in float32 would leave few digits of them, keep all. Terms
and their sums over a row are float32. The instructions that add up the pulls of 16 neighbours at a time are written out
for the compiler: of a loop over neighbours it makes vectors for whole groups of them and visits what is left one by
one, which of 44 neighbours takes as long again; and it gathers each coordinate by itself.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from scalemani.kernels.arrays.coordinates import bounding_box
from scalemani.kernels.arrays.tiles import Mapper, light_panels, row_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled, compiled_sums, in_plain_mode, inlined_sums, numbers_at
from scalemani.kernels.machine.instructions import ITEM_BYTES, LANES_AT_ONCE, spread
from scalemani.kernels.machine.vector_math import log_positive

LONGEST_ROW = 512  # distances of a row that are held at a time while its logarithms are taken

PLACE_BYTES = 2 * ITEM_BYTES  # of a point: two whole numbers
REORDER = ("reassoc", "contract", "nsz")  # terms are added as suits the machine, in the same order at each call
_COUNT, _PLACE, _SINGLE = ir.IntType(32), ir.IntType(64), ir.FloatType()
_COUNTS, _PLACES, _SINGLES, _MASK = (
    ir.VectorType(element, LANES_AT_ONCE) for element in (_COUNT, _PLACE, _SINGLE, ir.IntType(1))
)
_POINTERS = ir.VectorType(_PLACE.as_pointer(), LANES_AT_ONCE)
MOST_STEPS = 2**30 - 1  # from the middle of a map: differences are int32 too
LONGEST_STEP = 1e-5  # of the width of Student's kernel: maps too wide for it are summed in float64
LEAST_STEP = 1e-150  # whose square is a number


class AffinityRows(NamedTuple):
    """Symmetric affinities in CSR form: indptr (N + 1,) int64, indices (E,) uint32, values (E,) float32 or float64."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @property
    def n_points(self) -> int:
        """The number of points N."""
        return len(self.indptr) - 1


@compiled_sums
def _plane_gradient(rows: Rows, positions: np.ndarray, student: bool, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    for row in range(gradient.shape[0]):
        n = first + row
        x, y = positions[n, 0], positions[n, 1]
        sum_x, sum_y = 0.0, 0.0
        start, stop = indptr[n], indptr[n + 1]
        columns, weights = indices[start:stop], values[start:stop]
        if student:
            for entry in range(columns.shape[0]):
                m = columns[entry]
                dx, dy = x - positions[m, 0], y - positions[m, 1]
                pull = weights[entry] / (1.0 + dx * dx + dy * dy)
                sum_x += pull * dx
                sum_y += pull * dy
        else:
            for entry in range(columns.shape[0]):
                m = columns[entry]
                sum_x += weights[entry] * (x - positions[m, 0])
                sum_y += weights[entry] * (y - positions[m, 1])
        gradient[row, 0], gradient[row, 1] = 4.0 * sum_x, 4.0 * sum_y


@compiled_sums
def _gradient(rows: Rows, positions: np.ndarray, student: bool, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    n_dims = positions.shape[1]
    sums = np.empty(n_dims, np.float64)
    for row in range(gradient.shape[0]):
        n = first + row
        for d in range(n_dims):
            sums[d] = 0.0
        for entry in range(indptr[n], indptr[n + 1]):
            m = indices[entry]
            pull = np.float64(values[entry])
            if student:
                square = 1.0
                for d in range(n_dims):
                    difference = positions[n, d] - positions[m, d]
                    square += difference * difference
                pull /= square
            for d in range(n_dims):
                sums[d] += pull * (positions[n, d] - positions[m, d])
        for d in range(n_dims):
            gradient[row, d] = 4.0 * sums[d]


@inlined_sums
def _log_sum(squares: np.ndarray, weights: np.ndarray, count: int) -> float:
    total = 0.0
    for entry in range(count):
        total += weights[entry] * log_positive(1.0 + squares[entry])
    return total


@inlined_sums
def _sum(squares: np.ndarray, weights: np.ndarray, count: int) -> float:
    total = 0.0
    for entry in range(count):
        total += weights[entry] * squares[entry]
    return total


@compiled
def _energy(rows: Rows, positions: np.ndarray, student: bool, first: int, last: int) -> float:
    indptr, indices, values = rows
    n_dims = positions.shape[1]
    squares, weights = np.empty(LONGEST_ROW, np.float64), np.empty(LONGEST_ROW, np.float64)
    total = 0.0
    for n in range(first, last):
        for start in range(indptr[n], indptr[n + 1], LONGEST_ROW):
            stop = min(start + LONGEST_ROW, indptr[n + 1])
            for entry in range(start, stop):
                m = indices[entry]
                square = 0.0
                for d in range(n_dims):
                    difference = positions[n, d] - positions[m, d]
                    square += difference * difference
                squares[entry - start] = square
                weights[entry - start] = values[entry]
            total += _log_sum(squares, weights, stop - start) if student else _sum(squares, weights, stop - start)
    return total


def attraction_gradient(
    rows: AffinityRows, positions: np.ndarray, kernel: str, out: np.ndarray, over: Mapper = map
) -> np.ndarray:
    """Write the gradient of E+ of N points at positions (N, d) float64 into `out` (N, d) float64 and return it.

    The kernel is "quadratic" or "student".
    """
    fill, csr, student = _plane_gradient if positions.shape[1] == 2 else _gradient, tuple(rows), kernel == "student"
    run(over(lambda part: fill(csr, positions, student, part.start, out[part]), row_panels(rows.n_points)))
    return out


def attraction_energy(rows: AffinityRows, positions: np.ndarray, kernel: str, over: Mapper = map) -> float:
    """Return E+ of N points at positions (N, d) float64, with the kernel "quadratic" or "student"."""
    csr, student, parts = tuple(rows), kernel == "student", row_panels(rows.n_points)
    return float(sum(over(lambda part: _energy(csr, positions, student, part.start, part.stop), parts)))


@compiled
def attraction_at(
    places: np.ndarray, sources: np.ndarray, of_places: np.ndarray, rows: Rows, student: bool, dof: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what single points at places (m, d) have of E+ by their neighbours among sources (N, d), both float64.

    Parameters
    ----------
    of_places : (m,) int64, the row of each place among
    rows : in CSR form, the neighbours of points among the sources, and their affinities
    student : whether a(t) is dof log(1 + t / dof), and not t

    Returns
    -------
    sum_k p_k a(t_k) (m,), its gradients (m, d), and 2 sum_k p_k a'(t_k) (m,), all float64
    """
    indptr, indices, affinities = rows
    n_dims, longest = places.shape[1], 0
    for row in of_places:
        longest = max(longest, indptr[row + 1] - indptr[row])
    values, gradients, curvatures = np.empty(places.shape[0]), np.empty(places.shape), np.empty(places.shape[0])
    squares, weights = np.empty(longest), np.empty(longest)
    for i in range(places.shape[0]):
        start = indptr[of_places[i]]
        count = indptr[of_places[i] + 1] - start
        for entry in range(count):
            square, m = 0.0, indices[start + entry]
            for d in range(n_dims):
                difference = places[i, d] - sources[m, d]
                square += difference * difference
            squares[entry], weights[entry] = square / dof if student else square, affinities[start + entry]
        if student:
            values[i] = dof * _log_sum(squares, weights, count)
            for entry in range(count):
                weights[entry] /= 1.0 + squares[entry]
        else:
            values[i] = _sum(squares, weights, count)
        gradients[i], curvature = 0.0, 0.0
        for entry in range(count):
            curvature += weights[entry]
            m = indices[start + entry]
            for d in range(n_dims):
                gradients[i, d] += 2.0 * weights[entry] * (places[i, d] - sources[m, d])
        curvatures[i] = 2.0 * curvature
    return values, gradients, curvatures


def reference_sum_pulls(
    columns: int, weights: int, count: int, places: int, place: tuple[int, int], square: float
) -> tuple[float, float]:
    """Return the sum of w_m (x - x_m) / (1 + s |x - x_m|^2) over some neighbours m, along both axes, two float32.

    Parameters
    ----------
    columns, weights : addresses of the neighbours' rows, `count` uint32, and of their w_m, `count` float32
    places : address of the places x_m of all points, (N, 2) int32; their differences are int32 too
    place : two int, the place x of the point
    square : s, float32: the square of what one stands for in a place
    """
    single = np.float32
    rows = numbers_at(columns, (count,), np.uint32)
    others = [numbers_at(places + PLACE_BYTES * int(row), (2,), np.int32) for row in rows]
    apart = (np.array(place, np.int32) - np.array(others, np.int32).reshape(-1, 2)).astype(single)
    pulls = numbers_at(weights, (count,), single) / (1 + single(square) * (apart**2).sum(axis=1, dtype=single))
    along_x, along_y = pulls @ apart
    return along_x, along_y


class _Emitter:
    """Emits the instructions for up to 16 neighbours of a point."""

    def __init__(self, builder: Any, arguments: Any):
        self.builder = builder
        self.columns, self.weights, self.count, self.places, place, self.square = arguments
        self.place = [spread(builder, builder.extract_value(place, axis)) for axis in range(2)]

    def read(self, start: Any, first: Any, vector: Any, mask: Any) -> Any:
        """Return the items from the `first` of an array on; of lanes outside of the mask nothing is read, but zero."""
        address = self.builder.add(start, self.builder.mul(first, _PLACE(ITEM_BYTES)))
        place = self.builder.inttoptr(address, vector.as_pointer())
        kind = "i32" if vector is _COUNTS else "f32"
        signature = ir.FunctionType(vector, [place.type, _COUNT, _MASK, vector])
        load = self.builder.module.declare_intrinsic(f"llvm.masked.load.v{LANES_AT_ONCE}{kind}.p0", (), signature)
        return self.builder.call(load, [place, _COUNT(ITEM_BYTES), mask, vector(None)])

    def gathered(self, rows: Any, mask: Any) -> list[Any]:
        """Return both coordinates of the places of some rows: one gathering reads both."""
        builder = self.builder
        offsets = builder.mul(builder.zext(rows, _PLACES), _PLACES(PLACE_BYTES))
        pointers = builder.inttoptr(builder.add(spread(builder, self.places), offsets), _POINTERS)
        signature = ir.FunctionType(_PLACES, [_POINTERS, _COUNT, _MASK, _PLACES])
        name = f"llvm.masked.gather.v{LANES_AT_ONCE}i64.v{LANES_AT_ONCE}p0"
        gather = builder.module.declare_intrinsic(name, (), signature)
        pairs = builder.call(gather, [pointers, _COUNT(ITEM_BYTES), mask, _PLACES(None)])
        both = builder.bitcast(pairs, ir.VectorType(_COUNT, 2 * LANES_AT_ONCE))
        lanes = [_COUNTS(list(range(axis, 2 * LANES_AT_ONCE, 2))) for axis in range(2)]
        return [builder.shuffle_vector(both, both, each) for each in lanes]

    def add(self, first: Any, mask: Any, sums: list[Any]) -> None:
        """Add the terms of the neighbours from the `first` on, of lanes under a mask, to the sums at two addresses."""
        builder = self.builder
        rows, weights = self.read(self.columns, first, _COUNTS, mask), self.read(self.weights, first, _SINGLES, mask)
        places = zip(self.place, self.gathered(rows, mask), strict=True)
        apart = [builder.sitofp(builder.sub(here, there), _SINGLES) for here, there in places]
        squares = builder.fadd(*(builder.fmul(one, one, flags=REORDER) for one in apart), flags=REORDER)
        scaled = builder.fmul(squares, spread(builder, self.square), flags=REORDER)
        pulls = builder.fdiv(weights, builder.fadd(_SINGLES(1.0), scaled, flags=REORDER))
        for total, one in zip(sums, apart, strict=True):
            term = builder.fmul(pulls, one, flags=REORDER)
            builder.store(builder.fadd(builder.load(total), term, flags=REORDER), total)

    def total(self) -> list[Any]:
        """Return the sums over all neighbours: whole groups of 16, then those that are left under a mask."""
        builder = self.builder
        sums = [cgutils.alloca_once_value(builder, _SINGLES(None)) for _ in range(2)]  # the optimiser holds registers
        whole = builder.and_(self.count, _PLACE(-LANES_AT_ONCE))
        with cgutils.for_range_slice(builder, _PLACE(0), whole, _PLACE(LANES_AT_ONCE)) as (first, _):
            self.add(first, _MASK(1), sums)
        with builder.if_then(builder.icmp_signed("<", whole, self.count)):
            left = spread(builder, builder.trunc(builder.sub(self.count, whole), _COUNT))
            mask = builder.icmp_signed("<", _COUNTS(list(range(LANES_AT_ONCE))), left)
            self.add(whole, mask, sums)
        signature = ir.FunctionType(_SINGLE, [_SINGLE, _SINGLES])
        over_lanes = builder.module.declare_intrinsic(f"llvm.vector.reduce.fadd.v{LANES_AT_ONCE}f32", (), signature)
        return [builder.call(over_lanes, [_SINGLE(0.0), builder.load(one)], fastmath=REORDER) for one in sums]


@in_plain_mode(reference_sum_pulls)
@intrinsic
def sum_pulls(typing_context: Any, columns: Any, weights: Any, count: Any, places: Any, place: Any, square: Any) -> Any:
    """Emit what `reference_sum_pulls` does."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, signature.return_type, _Emitter(builder, arguments).total())

    address, two = numba.types.int64, numba.types.UniTuple
    returned = two(numba.types.float32, 2)
    return returned(address, address, address, address, two(numba.types.int32, 2), numba.types.float32), emit


@compiled
def _round(positions: np.ndarray, middle: np.ndarray, per_step: float, steps: np.ndarray) -> None:
    for n in range(positions.shape[0]):
        for d in range(positions.shape[1]):
            steps[n, d] = np.int32(np.rint((positions[n, d] - middle[d]) * per_step))


@compiled
def _rounded_gradient(rows: Rows, steps: np.ndarray, step: float, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    columns, weights, places = indices.ctypes.data, values.ctypes.data, steps.ctypes.data
    square = np.float32(step * step)
    for row in range(gradient.shape[0]):
        n = first + row
        start, count = indptr[n] * ITEM_BYTES, indptr[n + 1] - indptr[n]
        place = (steps[n, 0], steps[n, 1])
        sum_x, sum_y = sum_pulls(columns + start, weights + start, count, places, place, square)
        gradient[row, 0], gradient[row, 1] = 4.0 * step * np.float64(sum_x), 4.0 * step * np.float64(sum_y)


def rounded_attraction_gradient(
    rows: AffinityRows, positions: np.ndarray, kernel: str, out: np.ndarray, workspace: Workspace = IN_MEMORY
) -> np.ndarray:
    """Write the gradient of E+ into `out` and return it: with Student's kernel in two dimensions to 1e-5 of its terms.

    The others, affinities in float64, and maps more than 20,000 wide have it by `attraction_gradient`, whose arguments
    these are.
    """
    over, light = workspace.over, light_panels(rows.n_points)
    of_four_bytes = rows.indices.itemsize == rows.values.itemsize == ITEM_BYTES
    if kernel != "student" or positions.shape[1] != 2 or not light or not of_four_bytes:
        return attraction_gradient(rows, positions, kernel, out, over)
    low, high = bounding_box([positions[part] for part in light], over)
    step = float((high - low).max()) / (2 * MOST_STEPS)
    if not LEAST_STEP <= step <= LONGEST_STEP:
        return attraction_gradient(rows, positions, kernel, out, over)
    middle, steps, csr = (low + high) / 2, workspace.empty(positions.shape, np.int32), tuple(rows)
    run(over(lambda part: _round(positions[part], middle, 1 / step, steps[part]), light))
    run(over(lambda part: _rounded_gradient(csr, steps, step, part.start, out[part]), row_panels(rows.n_points)))
    return out


@compiled
def _thresholds(indptr: np.ndarray, values: np.ndarray, kappa: int) -> np.ndarray:
    """Return the value of the kappa-th strongest edge of each row, zero where a row has no more than kappa."""
    thresholds = np.zeros(indptr.shape[0] - 1, values.dtype)
    for row in range(thresholds.shape[0]):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start > kappa:
            thresholds[row] = np.partition(values[start:stop], stop - start - kappa)[stop - start - kappa]
    return thresholds


@compiled
def _are_strong(rows: Rows, thresholds: np.ndarray) -> np.ndarray:
    """Return whether each edge is as strong as the threshold of either end."""
    indptr, indices, values = rows
    strong = np.empty(values.shape[0], np.bool_)
    for row in range(thresholds.shape[0]):
        for entry in range(indptr[row], indptr[row + 1]):
            # Values are symmetric to the last bit, so both directions of an edge stay or both go.
            strong[entry] = values[entry] >= min(thresholds[row], thresholds[indices[entry]])
    return strong


def strongest_neighbors(rows: AffinityRows, kappa: int) -> AffinityRows:
    """Return the edges that are among the strongest of either of their points; symmetric if the rows are.

    Of each point `kappa` edges are sure to stay, and those as strong as the weakest of them stay too. Source: [PH] 3.3,
    where kappa sparsifies the attractive Hessian.
    """
    if np.diff(rows.indptr).max(initial=0) <= kappa:
        return rows
    return _some_edges(rows, _are_strong(tuple(rows), _thresholds(rows.indptr, rows.values, kappa)))


def without_loops(rows: AffinityRows) -> AffinityRows:
    """Return the edges between different points, in the dtypes of `rows`."""
    sources = np.repeat(np.arange(rows.n_points, dtype=rows.indices.dtype), np.diff(rows.indptr))
    return _some_edges(rows, rows.indices != sources)


def _some_edges(rows: AffinityRows, chosen: np.ndarray) -> AffinityRows:
    """Return the edges that are `chosen` (E,) bool."""
    places = np.flatnonzero(chosen)
    return AffinityRows(np.searchsorted(places, rows.indptr), rows.indices[places], rows.values[places])
