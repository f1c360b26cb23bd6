"""What every source of points offers, the checks that all of them share, and points in a metric."""

import importlib
import os
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.units import format_bytes
from scalemani.config.validation import (
    N_REPORTED_ROWS,
    check_dtype,
    check_exact,
    check_finite_block,
    check_shape,
    unmasked,
)
from scalemani.errors import (
    ConfigError,
    DataError,
    ScalemaniError,
    StoreError,
    UnreachableStoreError,
    installing,
    is_lasting,
    remedy_of,
    without_user,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, map_rows, mapped_dtype

HDF5_SUFFIXES = (".h5ad", ".h5", ".hdf5")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
CSV_SUFFIXES = (".csv", ".tsv")
READABLE = "give a file or folder that this user can read"
# What messages call a file, where its suffix does not say it.
KINDS = {
    ".npz": ".npz archive",
    ".txt": "UTF-8 text",
    ".csv": "UTF-8 text of comma-separated values",
    **dict.fromkeys(HDF5_SUFFIXES, "HDF5 file"),
    **dict.fromkeys(PARQUET_SUFFIXES, "Parquet file"),
    **dict.fromkeys(ARROW_SUFFIXES, "Arrow IPC file"),
    **dict.fromkeys(CSV_SUFFIXES, "table of values"),
}


class PointsSource:
    """Points (N, D) that are read by blocks of rows, from several threads if need be."""

    shape: tuple[int, int]
    dtype: np.dtype  # native, of rows, that a store should keep
    description: str  # where the points come from, for a log or a report; holds no credentials
    preferred_rows: int | None = None  # by which reading is quickest (the chunk of a store)
    sequential: bool = False  # seeking backwards is expensive: blocks should be requested in ascending order
    remote: bool = False  # workers on other machines can read the source themselves: one behind a URL
    nonzeros: int | None = None  # about how many values are not zero; None where the rows are better read dense
    file: Path | None = None  # that other processes read rows from as well, where they see it
    remark: str = ""  # a warning for users of the points
    gaps: bool = False  # whether gaps are read as NaN; else they are refused
    column_names: Sequence[Any] = ()  # of a table whose columns have names
    held_bytes: int = 0  # in memory while rows are read, besides these rows: the largest piece that is read whole

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): (stop - start, D), C-contiguous, of `dtype`; the caller checks finiteness."""
        raise NotImplementedError

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop), of `dtype`: columns ascend, none comes twice, and no zero is stored."""
        return sp.csr_matrix(self.read(start, stop))


def read_rows(source: PointsSource, start: int, stop: int, sparse: bool) -> Points:
    """Return rows [start, stop) of points as sparse or as dense ones, however they are stored."""
    return source.read_sparse(start, stop) if sparse else source.read(start, stop)


class Source(PointsSource, ABC):
    """A source that knows its shape and dtype from the start; subclasses read blocks of rows."""

    reopening: tuple[Callable[..., Any], tuple[Any, ...]] | None = (
        None  # how other processes get a source of open files
    )

    def __init__(self, shape: tuple[int, ...], dtype: Any, description: str) -> None:
        self.description = description
        self.dtype = check_dtype(dtype, description)
        self.input_dtype = np.dtype(dtype)
        check_shape(shape, description, min_rows=0)  # nothing to transform is nothing wrong; `survey` asks for more
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.reopening or super().__reduce_ex__(protocol)

    def accept_gaps(self) -> None:
        """Read gaps as NaN, where they would be refused."""
        self.gaps = True

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Return rows [start, stop) as they are stored: dense or sparse, of any memory order and dtype."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): (stop - start, D), C-contiguous, of `dtype`."""
        self.check_range(start, stop)
        return native_rows(self.rows(start, stop), start, stop, self)

    def check_range(self, start: int, stop: int) -> None:
        """Refuse rows [start, stop) that the points do not have."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise DataError(f"rows [{start}, {stop}) requested: {self.description} has rows [0, {self.shape[0]})")


class WrappedPoints(PointsSource):
    """Points (N, D) of another source, with its properties unless a subclass changes them."""

    def __init__(self, points: PointsSource, *arguments: Any) -> None:
        self.points, self.arguments = points, arguments
        for name in PointsSource.__annotations__:
            setattr(self, name, getattr(points, name))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) as `PointsSource.read` does, here those of the other source."""
        return self.points.read(start, stop)

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) as `PointsSource.read_sparse` does, here those of the other source."""
        return self.points.read_sparse(start, stop)

    def with_points(self, points: PointsSource) -> "WrappedPoints":
        """Return the same wrapper around another source of the same rows."""
        return type(self)(points, *self.arguments)


def innermost(source: PointsSource) -> PointsSource:
    """Return the source below all wrappers: before a metric, and without side data."""
    while isinstance(source, WrappedPoints):
        source = source.points
    return source


def with_innermost(source: PointsSource, points: PointsSource) -> PointsSource:
    """Return a source with another innermost source of the same rows."""
    if isinstance(source, WrappedPoints):
        return source.with_points(with_innermost(source.points, points))
    return points


def native_rows(values: Any, start: int, stop: int, points: PointsSource) -> np.ndarray:
    """Return rows [start, stop) of points as (stop - start, D), C-contiguous, of their dtype; refuse any others."""
    values = unmasked(values, points.description, points.gaps, start)
    rows = values.toarray() if sp.issparse(values) else np.asarray(values)
    check_read(rows, start, stop, points)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, and is then reported as such
        return np.ascontiguousarray(rows, dtype=points.dtype)


def check_read(rows: Any, start: int, stop: int, points: PointsSource) -> None:
    """Refuse what was read for rows [start, stop) of points, dense or sparse, and has another shape or kind."""
    if rows.shape != (stop - start, points.shape[1]):
        raise DataError(
            f"{points.description} gave an array of shape {rows.shape} for rows [{start}, {stop}) of {points.shape}: "
            "it was changed or truncated after it was opened"
        )
    dtype = check_dtype(rows.dtype, points.description)  # a lazy array may have another dtype than it says
    if points.dtype.kind in "iu" and not np.can_cast(dtype, points.dtype):
        raise DataError(
            f"{points.description} says that its values are {points.dtype}, and rows [{start}, {stop}) are "
            f"{rows.dtype}: declare the type that they have"
        )
    check_exact(rows, start, points.description)


class SourceOfPieces(Source):
    """Points in pieces, one behind the other, of which the first rows are `starts`; the last of these is N."""

    starts: Sequence[int]

    @abstractmethod
    def piece_rows(self, piece: int, first: int, last: int) -> np.ndarray:
        """Return rows [first, last) of a piece, counted from its first row: (last - first, D)."""

    def parts_of(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the pieces that hold rows [start, stop), with the first of these rows in each and the one after."""
        piece = bisect_right(self.starts, start) - 1
        while start < stop:
            begin, end = self.starts[piece], min(self.starts[piece + 1], stop)
            yield piece, start - begin, end - begin
            start, piece = end, piece + 1

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of `dtype`, put together from the pieces that hold them."""
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        for piece, first, last in self.parts_of(start, stop):
            row = self.starts[piece] - start
            rows[row + first : row + last] = self.piece_rows(piece, first, last)
        return rows


@contextmanager
def as_store_errors(description: str, start: int, stop: int) -> Iterator[None]:
    """Raise the errors of storage libraries as StoreErrors that name the rows."""
    try:
        yield
    except ScalemaniError:
        raise
    except (
        Exception
    ) as error:  # the errors of storage libraries are of many kinds, and mean the same here but for a few
        reason = without_credentials(str(error))
        if isinstance(error, PermissionError):
            raise StoreError(f"cannot read rows [{start}, {stop}) of {description}: {reason}; {READABLE}") from error
        if isinstance(error, OSError) and error.errno is not None and not is_lasting(error):
            raise UnreachableStoreError(
                f"cannot read rows [{start}, {stop}) of {description}: {reason}; {remedy_of(error)}"
            ) from error
        raise StoreError(f"cannot read rows [{start}, {stop}) of {description}, it may be damaged: {reason}") from error


@contextmanager
def as_damage(where: Path | str) -> Iterator[None]:
    """Raise the errors of libraries, of many kinds, as DataErrors that name the damaged file."""
    try:
        yield
    except (ScalemaniError, MemoryError, RecursionError):
        raise
    except Exception as error:
        suffix = PurePath(str(where).partition("::")[0]).suffix.lower()
        kind = KINDS.get(suffix, f"{suffix} file")
        raise DataError(f"{where} is no {kind}, or is truncated or damaged: {error}; copy or save it again") from error


@contextmanager
def as_opening_errors(location: str) -> Iterator[None]:
    """Raise what the operating system says as StoreErrors, UnreachableStoreErrors where it may pass.

    Damage stays the DataError that it is.
    """
    try:
        yield
    except RecursionError as error:
        raise DataError(f"{location} is described by JSON that is nested too deeply: save it again") from error
    except (ScalemaniError, OSError) as error:
        cause = error.__cause__ if isinstance(error, ScalemaniError) else error
        if not isinstance(cause, OSError) or cause.errno is None:
            raise
        if is_lasting(cause) and error is not cause and not isinstance(cause, PermissionError):
            raise
        kind, remedy = (StoreError, READABLE) if is_lasting(cause) else (UnreachableStoreError, remedy_of(cause))
        raise kind(f"cannot open {cause.filename or location}: {os.strerror(cause.errno)}; {remedy}") from cause


def optional_module(name: str, extra: str) -> Any:
    """Import a module that only one kind of file needs; name the extra that brings it where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"this needs {name.split('.')[0]}: {installing(extra)}") from error


def check_file(path: Path) -> None:
    """Refuse pipes and devices, which may never end."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no regular file: copy what it gives into one")


def without_credentials(location: str) -> str:
    """Return a path or URL without user, password and query string."""
    return without_user(re.sub(r"(://[^?]*)\?.*", r"\1", location))


def first_few(rows: np.ndarray) -> str:
    """Return the first of some numbers of rows (n,), for a message."""
    return ", ".join(map(str, rows[:N_REPORTED_ROWS]))


def natural_order(path: Path | str) -> list[Any]:
    """Return a sort key that puts part.2 before part.10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]


class MetricPoints(WrappedPoints):
    """Points (N, D) of another source in the geometry of a metric, in which distances are Euclidean."""

    def __init__(self, points: PointsSource, metric: str) -> None:
        super().__init__(points, metric)
        self.metric, self.dtype = metric, mapped_dtype(points.dtype)
        if self.nonzeros is not None and not METRICS[metric].keeps_zeros:
            self.nonzeros = None
            size = format_bytes(points.shape[0] * points.shape[1] * self.dtype.itemsize)
            sparse_metrics = ", ".join(name for name in METRICS if METRICS[name].keeps_zeros)
            self.remark = (
                f"metric {metric} leaves no zeros in {points.description}, which becomes dense: {size}; "
                f"{sparse_metrics} keep it sparse"
            )

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), mapped; DataError for rows that are not finite or that the metric cannot take."""
        return self._mapped(super().read(start, stop), start)

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) as `read` does, of a metric that keeps zeros."""
        return self._mapped(super().read_sparse(start, stop), start)

    def _mapped(self, rows: Points, start: int) -> Points:
        check_finite_block(rows, start, columns=self.column_names)
        check_rows(rows, self.metric, start)
        return map_rows(rows, self.metric)


def check_rows(rows: Points, metric: str, first_row: int = 0, with_empty: bool = True) -> None:
    """Refuse rows (n, D) that a metric cannot take; `first_row` is the number of the first one in the whole input.

    Without `with_empty`, rows that hold nothing that it compares are not looked at.
    """
    if rows.shape[0] == 0:
        return
    for refusal in METRICS[metric].refusals:
        if refusal.empty and not with_empty:
            continue
        refused = np.flatnonzero(refusal.concerns(rows))
        if len(refused):
            raise DataError(
                f"{len(refused)} of rows [{first_row}, {first_row + rows.shape[0]}) of points {refusal.why}: "
                f"first rows {first_few(first_row + refused)}. metric={metric!r} cannot take them: remove these rows, "
                "or use another metric"
            )
