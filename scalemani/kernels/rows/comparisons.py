"""Metrics that compare two rows by a function, and have no coordinates in whose geometry points lie.

A function takes two rows (D,) float64 and returns their distance, in compiled code: not negative, 0 of equal rows, and
the same bits with the rows swapped: sums are reassociated, so that only a term |x + y|, and no x + y, adds both rows in
one order. Its name is that of the metric, of which `scalemani.config.metrics` has a row.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from scalemani.config.functions import DIGEST, is_function, load_function, plain_function, with_digest
from scalemani.config.metrics import power_of
from scalemani.errors import ConfigError
from scalemani.kernels.machine.compile import PLAIN, compiled
from scalemani.kernels.machine.forks import new_lock
from scalemani.kernels.rows.reduced import Distance, distance_by, reduced_distance
from scalemani.kernels.rows.refusals import Refusal, RowValues, find_negative_rows, find_no_places, find_zero_rows

OF_TWO_ROWS = (numba.float64[::1], numba.float64[::1])
AROUND_REASONS = ("Failed in", "During")  # lines of numba's messages
# Of a distance, relative, with its rows swapped, and absolute, of a row to itself: what sums in another order make of
# either is far less.
ASYMMETRY = 1e-6


class Comparison(NamedTuple):
    """A metric that compares rows: how, and which rows it refuses."""

    distance: Distance
    refusals: tuple[Refusal, ...]


COMPARISONS: dict[str, Comparison] = {}


def metric(*refusals: Refusal) -> Callable[[Callable[..., float]], Any]:
    """Return a decorator that adds a function of two rows (D,) float64 to the metrics, which refuses some rows."""

    def add(function: Callable[..., float]) -> Any:
        COMPARISONS[function.__name__] = Comparison(distance_by(function, function.__name__), refusals)
        return function

    return add


@metric(
    Refusal(find_negative_rows, "hold negative values, which are no amounts"),
    Refusal(find_zero_rows, "hold nothing but zeros, which share nothing with any row", True),
)
def braycurtis(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d| / sum |x_d + y_d| [Bray and Curtis 1957]."""
    apart, together = 0.0, 0.0
    for d in range(one.size):
        apart += abs(one[d] - other[d])
        together += abs(one[d] + other[d])
    return apart / together


@metric()
def canberra(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d| / (|x_d| + |y_d|) over columns in which one is not zero [Lance and Williams 1967]."""
    total = 0.0
    for d in range(one.size):
        size = abs(one[d]) + abs(other[d])
        total += abs(one[d] - other[d]) / size if size > 0.0 else 0.0
    return total


@metric()
def chebyshev(one: np.ndarray, other: np.ndarray) -> float:
    """Return max |x_d - y_d|.

    Numbers that are not negative have the order of their bits; a maximum of integers vectorises, one of floats not.
    """
    largest = np.int64(0)
    for d in range(one.size):
        largest = max(largest, np.float64(abs(one[d] - other[d])).view(np.int64))
    return float(np.int64(largest).view(np.float64))


@metric()
def manhattan(one: np.ndarray, other: np.ndarray) -> float:
    """Return sum |x_d - y_d|."""
    total = 0.0
    for d in range(one.size):
        total += abs(one[d] - other[d])
    return total


@metric(Refusal(find_no_places, "are no latitudes and longitudes in radians: two columns, within pi / 2 and 2 pi of 0"))
def haversine(one: np.ndarray, other: np.ndarray) -> float:
    """Return the angle between two places, by sin^2 of half the angle."""
    latitudes, longitudes = math.sin((one[0] - other[0]) / 2.0), math.sin((one[1] - other[1]) / 2.0)
    square = latitudes * latitudes + (math.cos(one[0]) * math.cos(other[0])) * (longitudes * longitudes)
    return 2.0 * math.asin(math.sqrt(min(square, 1.0)))


_lock = new_lock()


def comparison_of(metric: str) -> Comparison:
    """Return how a metric that no table lists compares rows: a power of Minkowski's, or a function that a user names.

    Raises ConfigError where the function cannot be loaded or compiled, or is another one than the name says. Compiled
    code, which is cached between processes, knows the function by its digest.
    """
    if is_function(metric):
        load_function(metric)  # not within the lock: a file that is loaded may compare rows itself
    with _lock:
        return _comparison_of(with_digest(metric) if is_function(metric) and DIGEST not in metric else metric)


@functools.cache
def _comparison_of(metric: str) -> Comparison:
    power = power_of(metric)
    if power is not None:
        return Comparison(distance_by(root_of_powers(power), metric), ())
    if DIGEST in metric:
        with_digest(metric)
    distance = distance_by(compiled_function(metric), metric)
    why = (
        f"get no distance from {metric}: it is not a number, negative, another one with the two rows swapped, or more "
        "from a row to itself than to another"
    )
    return Comparison(distance, (Refusal(functools.partial(find_no_distances, distance), why),))


def root_of_powers(power: float) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return a function of two rows: (sum |x_d - y_d|^p)^(1 / p)."""
    exponent, root = int(power) if power.is_integer() else power, 1.0 / power

    def minkowski(one: np.ndarray, other: np.ndarray) -> float:
        total = 0.0
        for d in range(one.size):
            total += abs(one[d] - other[d]) ** exponent
        return float(total**root)

    return minkowski


def compiled_function(metric: str) -> Any:
    """Return the function of a user for kernels; raise ConfigError where numba cannot compile it for two rows."""
    function = load_function(metric)
    dispatcher = function if hasattr(function, "py_func") else numba.njit(nogil=True)(function)
    try:
        if not PLAIN:
            taken = types_of_arguments(function)
            if taken not in dispatcher.overloads:  # of a signature that a user wrote, none is added
                dispatcher.compile(taken)
            compiled_one: Any = dispatcher.overloads[taken]
            returned = compiled_one.signature.return_type
            if not isinstance(returned, numba.types.Number):
                raise TypeError(f"it returns {returned}")
    except Exception as error:
        lines = (line for line in str(error).splitlines() if line.strip() and not line.startswith(AROUND_REASONS))
        reason = next(lines, type(error).__name__)
        raise ConfigError(
            f"{metric} is no function of two rows (D,) float64 that numba compiles and that returns a number: {reason}"
        ) from error
    return dispatcher


def types_of_arguments(function: Any) -> tuple[Any, ...]:
    """Return the types of two rows, and of what a function takes by default in addition: numbers."""
    plain = plain_function(function)
    defaults = (plain.__defaults__ or ())[2 - plain.__code__.co_argcount :]
    numbers = plain.__code__.co_argcount > 2 and all(isinstance(value, int | float) for value in defaults)
    return (*OF_TWO_ROWS, *map(numba.types.Omitted, defaults)) if numbers else OF_TWO_ROWS


def find_no_distances(distance: Distance, rows: RowValues) -> np.ndarray:
    """Return which rows (n,) have no distance to the next: not a number, negative, or another one when swapped.

    Nor have rows that are farther from themselves than from the next, as a similarity has them.
    """
    points = np.ascontiguousarray(rows.values, np.float64)
    return np.asarray(have_no_distance(distance, points))


@compiled
def have_no_distance(distance: Distance, points: np.ndarray) -> np.ndarray:
    """Return what `find_no_distances` does, of points (n, D) float64."""
    refused = np.zeros(points.shape[0], np.bool_)
    for i in range(points.shape[0]):
        other = (i + 1) % points.shape[0]
        one_way = reduced_distance(distance, points, i, points, other, np.inf)
        back = reduced_distance(distance, points, other, points, i, np.inf)
        itself = reduced_distance(distance, points, i, points, i, np.inf)
        nearest = itself <= max(ASYMMETRY, (1.0 + ASYMMETRY) * one_way)
        refused[i] = not (one_way >= 0.0 and abs(one_way - back) <= ASYMMETRY * one_way and nearest)
    return refused
