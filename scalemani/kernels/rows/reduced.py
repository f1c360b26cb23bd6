"""Distances as objects that kernels take: what a search compares, computed for two rows of tables.

Searches compare reduced distances, which have the order of distances and are quicker to compute: squares of Euclidean
ones. `Distance` is one type for each distance in compiled code, so that kernels are compiled for each
and a pair of rows is compared without a choice. Functions of two rows are in `scalemani.kernels.rows.comparisons`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.extending import NativeValue, intrinsic, overload, typeof_impl, unbox

from scalemani.kernels.machine.compile import INLINED, in_plain_mode, inlined, inlined_sums, square_of
from scalemani.kernels.rows.distances import Rows, set_row_distance, sketch_distance, squared_row_distance


@dataclass(frozen=True)
class Distance:
    """How two rows of tables are compared: coordinates by Euclidean distances, sets by Jaccard's, others by a function.

    Distances of the first two are bounded from below by coordinates, theirs or those of rows that are mapped.
    """

    name: str

    @property
    def by_function(self) -> bool:
        """Whether a function compares dense rows (D,) float64, of which coordinates bound nothing."""
        return self.name in FUNCTIONS


FUNCTIONS: dict[str, Any] = {}  # of two tables and two row numbers, by the name of a distance
FILES: dict[str, str] = {}  # of the functions of two rows that these call
COORDINATES = Distance("coordinates")  # rows (n, D), dense or sparse; reduced distances are squares
SETS = Distance("sets")  # rows as `metrics.compared_rows` returns them; reduced distances are Jaccard's, squares too


def distance_by(function: Callable[[np.ndarray, np.ndarray], float], name: str) -> Distance:
    """Return the distance that a function returns of two dense rows (D,) float64; it is the reduced distance too.

    What numba has compiled already, with other options, stays as it is.
    """
    compiled = function if hasattr(function, "py_func") else inlined_sums(function)

    def of_tables(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
        return float(compiled(queries[query], rows[row]))

    FUNCTIONS[name] = inlined(of_tables)
    FILES[name] = os.path.abspath(getattr(function, "py_func", function).__code__.co_filename)
    return Distance(name)


class ComparedTable(NamedTuple):
    """Rows (n, ...) and how they are compared: coordinates or sketches of points, or the rows that a function takes."""

    distance: Distance
    rows: Any


class DistanceType(types.Opaque):
    """The type of a `Distance` in compiled code, and the file of the function that is compiled into it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"distance {name}")
        self.distance, self.file = name, FILES.get(name)


register_default(DistanceType)(models.OpaqueModel)


@typeof_impl.register(Distance)
def _type_of_distance(value: Distance, context: Any) -> DistanceType:
    return DistanceType(value.name)


@unbox(DistanceType)
def _unbox_distance(kind: DistanceType, value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())


def reference_reduced_distance(
    distance: Distance, queries: Rows, query: int, rows: Rows, row: int, limit: float
) -> float:
    """Return the reduced distance of a row of one table and a row of another; above a limit it may be a part of it.

    For compiled code. Swapping the two rows gives the same bits.
    """
    return float(function_of_tables(distance.name)(queries, query, rows, row, limit))


@in_plain_mode(reference_reduced_distance)
@intrinsic
def reduced_distance(
    typing_context: Any, distance: Any, queries: Any, query: Any, rows: Any, row: Any, limit: Any
) -> Any:
    """Call what `reference_reduced_distance` does from the kernel itself.

    Behind one function more LLVM would associate sums in another order.
    """
    function = typing_context.resolve_value_type(function_of_tables(distance.distance))
    signature = function.get_call_type(typing_context, (queries, query, rows, row, limit), {})

    def emit(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return context.get_function(function, signature)(builder, arguments[1:])

    return signature.return_type(distance, *signature.args), emit


def function_of_tables(name: str) -> Any:
    """Return the function, for compiled code, that a distance of this name is for rows of two tables."""
    return {COORDINATES.name: squared_row_distance, SETS.name: set_row_distance}.get(name) or FUNCTIONS[name]


def distance_of(distance: Distance, reduced: float) -> float:
    """Return the distance that a reduced one stands for."""
    root: Any = _distance_of(distance, reduced)
    return float(root(distance, reduced))


def reduced_of(distance: Distance, value: float) -> float:
    """Return the reduced distance of a distance."""
    power: Any = _reduced_of(distance, value)
    return float(power(distance, value))


def proposed_distance(distance: Distance, table: np.ndarray, one: int, other: int) -> np.float32:
    """Return the float32 by which rows of a table are proposed as neighbours: of sketches, or of rows by a function."""
    value: Any = _proposed_distance(distance, table, one, other)
    return np.float32(value(distance, table, one, other))


def compares_sets(distance: Distance) -> bool:
    """Return whether rows are sets."""
    return name_of(distance) == SETS.name


# numba wants implementations whose arguments have the annotations of what chooses among them.
@overload(distance_of, jit_options=INLINED)
def _distance_of(distance: Any, reduced: float) -> Any:
    def root(distance: Any, reduced: float) -> float:
        return np.sqrt(reduced)

    def as_it_is(distance: Any, reduced: float) -> float:
        return reduced

    return as_it_is if name_of(distance) in FUNCTIONS else root


@overload(reduced_of, jit_options=INLINED)
def _reduced_of(distance: Any, value: float) -> Any:
    def square(distance: Any, value: float) -> float:
        return float(square_of(value))

    def as_it_is(distance: Any, value: float) -> float:
        return value

    return as_it_is if name_of(distance) in FUNCTIONS else square


@overload(proposed_distance, jit_options=INLINED)
def _proposed_distance(distance: Any, table: np.ndarray, one: int, other: int) -> Any:
    def of_sketches(distance: Any, table: np.ndarray, one: int, other: int) -> np.float32:
        return sketch_distance(table, one, other)

    def of_rows(distance: Any, table: np.ndarray, one: int, other: int) -> np.float32:
        return np.float32(reduced_distance(distance, table, one, table, other, np.inf))

    return of_rows if name_of(distance) in FUNCTIONS else of_sketches


@overload(compares_sets, jit_options=INLINED)
def _compares_sets(distance: Any) -> Any:
    of_sets = name_of(distance) == SETS.name

    def answer(distance: Any) -> bool:
        return of_sets

    return answer


def name_of(distance: Any) -> str:
    """Return the name of a distance, or of its type in compiled code."""
    return distance.name if isinstance(distance, Distance) else str(distance.distance)
