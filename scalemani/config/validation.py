"""Points at the door: which arrays are taken, as which dtype, and one clear message for those that are not."""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.errors import ConfigError, DataError, DimensionsError, ObjectsError

# Kept as they are; distances between integers are then computed exactly.
STORED_DTYPES = ("uint8", "int8", "uint16", "int16", "float32", "float64")
CAST_DTYPES = {"bool": "uint8", "float16": "float32"}

N_REPORTED_ROWS = 5
PROMISES = ("compute", "collect", "result")  # of Dask's delayed values, of polars' lazy frames, of futures
LARGEST_SEED = 2**63 - 1  # the largest integer that TOML has
LARGEST_EXACT = 2**53  # beyond, not every integer is a float64
LEAST_SQUARED, MOST_SQUARED = 1e-146, 1e150  # whose squares are float64 of full precision


def check_count(value: Any, name: str, minimum: int = 1, maximum: int | None = None, limit: str = "") -> int:
    """Return `value` as an int in [minimum, maximum]; `limit` says in words what the maximum is.

    Raises
    ------
    ConfigError
        For anything but an integer, Python's or NumPy's (True and False are none), and outside the range.
    """
    if isinstance(value, bool | np.bool) or not isinstance(value, numbers.Integral):
        raise ConfigError(f"{name} must be an integer >= {minimum}, got {value!r} ({type(value).__name__})")
    count = int(value)
    if count < minimum:
        raise ConfigError(f"{name} must be >= {minimum}, got {count}")
    if maximum is not None and count > maximum:
        raise ConfigError(f"{name} must be <= {maximum}{f' ({limit})' if limit else ''}, got {count}")
    return count


def check_tolerance(tolerance: Any) -> float:
    """Return a tolerance in (0, 1), or raise ConfigError."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, numbers.Real) or not 0 < float(tolerance) < 1:
        raise ConfigError(f"tolerance must be a number above 0 and below 1, got {tolerance!r}")
    return float(tolerance)


def check_flag(value: Any, name: str) -> bool:
    """Return `value` as a bool; raises ConfigError for what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_seed(random_state: Any) -> int:
    """Return the seed of a run: an integer in [0, 2**63) as it is, None or a NumPy generator by drawing one.

    Raises
    ------
    ConfigError
        For negative and larger integers and everything else.
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return check_count(random_state, "random_state", 0, LARGEST_SEED, "63 bits")


def check_dtype(dtype: Any, name: str = "points") -> np.dtype:
    """Return the native dtype in which points of `dtype` are stored.

    uint8, int8, uint16, int16, float32 and float64 stay; bool becomes uint8, float16 and bfloat16 float32; every other
    real number (int32, int64, unsigned, long double) becomes float64.

    Raises
    ------
    DataError
        For complex numbers, objects, strings, dates and structured dtypes.
    """
    input_dtype = np.dtype(dtype)
    if input_dtype.kind == "V" and np.can_cast(input_dtype, np.float32):  # bfloat16 and others of ml_dtypes
        return np.dtype(np.float32)
    if input_dtype.kind == "c":
        raise DataError(
            f"Complex data not supported: {name} has dtype {input_dtype}; pass real and imaginary parts as columns"
        )
    if input_dtype.kind not in "biuf":
        remedy = f"Convert it, for example with numpy.asarray({name}, dtype=numpy.float64)"
        if input_dtype.kind == "V" and input_dtype.names is None:
            remedy = "NumPy stores bfloat16 so: give array.view(ml_dtypes.bfloat16), or save it as float32"
        raise DataError(
            f"{name} must have a numeric dtype, got {input_dtype}; allowed: bool, integers and floats up to 64 bits. "
            f"{remedy}"
        )
    native = input_dtype.newbyteorder("=").name
    return np.dtype(native if native in STORED_DTYPES else CAST_DTYPES.get(native, "float64"))


def with_nan(dtype: np.dtype) -> np.dtype:
    """Return the dtype of points of `dtype`, a result of `check_dtype`, with NaN for gaps."""
    return np.dtype(np.result_type(dtype, np.float32))


def check_shape(shape: tuple[int, ...], name: str = "points", min_rows: int = 1) -> None:
    """Refuse anything but a table of at least `min_rows` rows and one column, with a DataError."""
    if len(shape) != 2:
        raise DimensionsError(
            f"Expected 2D array, got {len(shape)}D array instead for {name}: shape {shape}. Reshape your data to "
            "(n_points, n_columns): .reshape(-1, 1) for a single column, .reshape(1, -1) for a single point"
        )
    n_rows, n_columns = shape
    if n_columns == 0:
        raise DataError(f"Found {name} with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if n_rows < min_rows:
        raise DataError(
            f"Found {name} with {n_rows} sample(s) (shape={shape}) while a minimum of {min_rows} is required."
        )


def check_finite_block(block: Any, first_row: int = 0, name: str = "points", columns: Sequence[Any] = ()) -> None:
    """Refuse NaN and infinity in rows [first_row, first_row + len(block)) with their rows, columns and number.

    Parameters
    ----------
    block : (n, D) array or sparse rows of real numbers; integers pass at once
    first_row : global row of `block[0]`, so that messages name rows of the whole input
    columns : names of the columns; where there are none, they are called by their numbers
    """
    if block.dtype.kind != "f" or block.size == 0:
        return
    if sp.issparse(block):  # one row that has such a value is dense for the message
        bad = np.flatnonzero(~np.isfinite(block.data))
        if len(bad):
            row = row_of_nonzero(block, int(bad[0]))
            check_finite_block(block[row].toarray(), first_row + row, name, columns)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum()):  # many times faster than isfinite of every element, which then need not run
            return
    bad = ~np.isfinite(block)
    n_bad = int(np.count_nonzero(bad))
    if n_bad == 0:  # only the sum overflowed
        return
    n_nan = int(np.count_nonzero(np.isnan(block)))
    rows = np.flatnonzero(bad.any(axis=1))
    labels = columns if len(columns) == block.shape[1] else range(block.shape[1])
    empty = [str(labels[column]) for column in np.flatnonzero(np.isnan(block).all(axis=0)).tolist()]
    first_column = labels[int(np.argmax(bad[rows[0]]))]
    listed = ", ".join(str(first_row + row) for row in rows[:N_REPORTED_ROWS])
    whole = f"; nothing but NaN in column(s) {', '.join(empty[:N_REPORTED_ROWS])}" if empty else ""
    raise DataError(
        f"{name} must be finite, got {n_bad} values that are not ({n_nan} NaN, {n_bad - n_nan} inf) in rows "
        f"[{first_row}, {first_row + len(block)}): the first at row {first_row + rows[0]}, column {first_column}; "
        f"{len(rows)} rows concerned, first {listed}{whole}. Remove these rows or fill in the values"
    )


def refuse_gaps(gaps: np.ndarray, first_row: int, name: str, what: str = "values that are missing") -> None:
    """Refuse values that are missing, (n, ...) bool, in rows [first_row, first_row + n)."""
    if gaps.any():
        first, *others = np.argwhere(gaps)[0].tolist()
        place = "".join(f", column {column}" for column in others)
        raise DataError(
            f"{name} has {np.count_nonzero(gaps)} {what} in rows [{first_row}, {first_row + len(gaps)}), the first in "
            f"row {first_row + first}{place}: fill them in, as with .filled(value) where they are masked, or remove "
            "their rows"
        )


def row_of_nonzero(rows: sp.csr_matrix, entry: int) -> int:
    """Return the row that a nonzero of sparse rows is in, by its number."""
    return int(np.flatnonzero(rows.indptr <= entry)[-1])


def check_exact(block: Any, first_row: int = 0, name: str = "points", columns: Sequence[Any] | None = None) -> None:
    """Refuse integers in rows [first_row, first_row + len(block)) that would lose digits in float64.

    Points that differ in these digits alone would become equal.

    Parameters
    ----------
    block : (n, D) array or sparse rows of real numbers; other than integers of 64 bits pass at once
    first_row : global row of `block[0]`, so that messages name rows of the whole input
    columns : names of the columns; None: they are called by their numbers
    """
    if block.dtype.kind not in "iu" or block.dtype.itemsize < 8 or block.size == 0:
        return
    if sp.issparse(block):  # one row that has such a value is dense for the message
        large = np.flatnonzero((block.data > LARGEST_EXACT) | (block.data < -LARGEST_EXACT))
        if len(large):
            row = row_of_nonzero(block, int(large[0]))
            check_exact(block[row].toarray(), first_row + row, name, columns)
        return
    if int(block.max()) <= LARGEST_EXACT and int(block.min()) >= -LARGEST_EXACT:
        return
    large = (block > LARGEST_EXACT) | (block < -LARGEST_EXACT)
    rows = np.flatnonzero(large.any(axis=1))
    column = int(np.argmax(large[rows[0]]))
    label = column if columns is None else columns[column]
    raise lost_digits(name, rows, (first_row, first_row + len(block)), label)


def lost_digits(name: str, rows: np.ndarray, bounds: tuple[int, int], column: Any) -> DataError:
    """Return the error of integers that lose digits, in some rows (m,) of rows [start, stop) of a column."""
    start, stop = bounds
    return DataError(
        f"{name} has integers beyond 2**53, which lose digits in float64, in {len(rows)} of rows [{start}, {stop}), "
        f"the first at row {start + rows[0]}, column {column}: subtract the least value of each column, or convert "
        "them to float64 yourself"
    )


def check_exact_columns(original: Any, table: np.ndarray, name: str = "points") -> None:
    """Refuse integers that have lost digits where columns or rows of several types became one table of float64.

    Parameters
    ----------
    original : (n, D) a data frame, a list of rows, or an array of Python objects
    table : (n, D) what NumPy made of it
    """
    if table.dtype != np.float64 or table.ndim != 2 or not table.size or is_array_of_numbers(original):
        return
    if table.min() > -LARGEST_EXACT and table.max() < LARGEST_EXACT:
        return
    large = np.abs(table) >= LARGEST_EXACT
    for column in np.flatnonzero(large.any(axis=0)).tolist():
        rows = np.flatnonzero(large[:, column])
        wide = [is_wide_integer(value) for value in column_values(original, column, rows)]
        if any(wide):
            label = getattr(original, "columns", range(table.shape[1]))[column]
            raise lost_digits(name, rows[wide], (0, len(table)), label)


def is_wide_integer(value: Any) -> bool:
    """Return whether a value is an exact number beyond those integers that a float64 can distinguish."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, Decimal) and value.is_finite())
    return whole and abs(int(value)) > LARGEST_EXACT


def is_array_of_numbers(table: Any) -> bool:
    """Return whether a table has one type of numbers, by its dtype."""
    dtype = getattr(table, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def column_values(table: Any, column: int, rows: np.ndarray) -> list[Any]:
    """Return the values of a column of a table in some rows (m,), in the types of the input."""
    if hasattr(table, "iloc"):  # a frame of pandas
        return np.asarray(table.iloc[:, column])[rows].tolist()
    if hasattr(table, "to_series"):  # one of polars
        return np.asarray(table.to_series(column))[rows].tolist()
    return [table[row][column] for row in rows.tolist()]


def check_magnitude(minima: np.ndarray, maxima: np.ndarray, dtype: Any, name: str = "points") -> int:
    """Refuse columns whose squared distances overflow, vanish or are all zero; return the number of constant columns.

    Parameters
    ----------
    minima, maxima : (D,) least and greatest value of each column over all points

    Raises
    ------
    DataError
        When all points are equal ("zero variance"), or when squared distances overflow or underflow.
    """
    stored = np.dtype(dtype)
    limits = np.finfo(stored if stored.kind == "f" else np.float64)
    with np.errstate(over="ignore"):
        spans = np.asarray(maxima, dtype=np.float64) - np.asarray(minima, dtype=np.float64)
    widest = float(spans.max())
    if widest == 0:
        raise DataError(
            f"{name} have zero variance: all rows are equal in all {len(spans)} columns. If they differed before "
            "a conversion to float32, pass float64 or subtract the mean first"
        )
    largest = max(float(np.abs(minima).max()), float(np.abs(maxima).max()))
    if max(widest, largest) > float(np.sqrt(limits.max / (4 * len(spans)))):
        raise DataError(
            f"squared distances between {name} overflow {stored}: the largest value is {largest:.3g}; "
            f"divide {name} by a constant" + ("" if stored == np.float64 else " or pass float64")
        )
    if widest < float(np.sqrt(limits.tiny / limits.eps)):
        raise DataError(
            f"squared distances between {name} underflow {stored}: the widest column spans {widest:.3g}; "
            f"multiply {name} by a constant" + ("" if stored == np.float64 else " or pass float64")
        )
    return int(np.count_nonzero(spans == 0))


def check_squares(largest: float, name: str) -> None:
    """Refuse values, `largest` their largest, whose squares overflow or vanish in float64; zeros may be."""
    if largest > 0 and not LEAST_SQUARED <= largest < MOST_SQUARED:
        raise DataError(f"squares of {name} leave float64: the largest is {largest:.3g}; multiply {name} by a constant")


def refuse_scalar(values: Any, name: str) -> None:
    """Refuse what NumPy takes for one object: a future, a lazy data frame, a generator; numbers are refused later."""
    for method in PROMISES:
        if callable(getattr(type(values), method, None)):
            kind = type(values).__name__
            raise DataError(f"{name} is a {kind}, which holds no rows yet: pass {name}.{method}()")
    if not isinstance(values, numbers.Number) and not hasattr(values, "__array__"):
        listed = isinstance(values, Iterable) and not isinstance(values, Mapping)  # a list of a mapping has its keys
        rows = "numpy.array(list(rows))" if listed else "an array"
        raise DataError(
            f"{name} is a {type(values).__name__}, which is no table with rows of numbers: give {rows} of shape "
            "(n_points, n_columns)"
        )


def unmasked(values: Any, name: str, gaps: bool = False, first_row: int = 0) -> Any:
    """Return values without a mask, those that are masked as NaN where there may be `gaps`; else refuse them.

    Parameters
    ----------
    values : a masked array or a list of some; others stay as they are
    first_row : number of the first of them in the whole input
    """
    if isinstance(values, list | tuple) and any(map(np.ma.isMaskedArray, values)):
        if len({np.shape(row) for row in values}) > 1:
            return values  # no table
        values = np.ma.array(values)
    if not np.ma.isMaskedArray(values) or values.dtype.names is not None:
        return values
    masked = np.ma.getmaskarray(values)
    if not gaps:
        refuse_gaps(masked, first_row, name, "masked values")
    if not masked.any():
        return values.data
    if values.ndim == 2:
        check_exact(values.filled(0), first_row, name)
    dtype = values.dtype if values.dtype == object else with_nan(check_dtype(values.dtype, name))
    return np.ma.filled(values.astype(dtype), np.nan)


def unreadable_tensor(values: Any, name: str, error: Exception) -> Exception:
    """Return the error of a tensor, or a list of some, that gives NumPy no array; of anything else the same error."""
    tensor = values[0] if isinstance(values, list | tuple) and values else values
    if not hasattr(tensor, "detach"):
        return error
    if "meta" in str(getattr(tensor, "device", "")):
        return DataError(f"{name} is a tensor on the device meta, which holds no values: give one that does")
    dense = ".to_dense()" if "sparse" in str(getattr(tensor, "layout", "")) else ""
    wide = ".float()" if "float16" in str(getattr(tensor, "dtype", "")) else ""  # NumPy has no bfloat16
    line = f"tensor.detach(){dense}.cpu(){wide}.numpy()"
    return DataError(f"{name} is a {type(tensor).__name__} that NumPy cannot read ({error}): give {line}")


def check_points(
    points: Any, name: str = "points", min_rows: int = 1, convert_objects: bool = False, gaps: bool = False
) -> np.ndarray:
    """Return `points` as a finite, native, real (N, D) array, without a copy where none is needed.

    Parameters
    ----------
    points : array-like (N, D) of real numbers: an array of any order or strides, a list of lists, a data frame
    gaps : whether values may be missing, which are then NaN; what is not finite is looked at later

    Returns
    -------
    (N, D) array, dtype as in `check_dtype`

    Raises
    ------
    DataError
        For sparse and masked input, other dtypes, other shapes, NaN and infinity: saying which and where.
    """
    if hasattr(type(points), "tocsr") or type(points).__module__.startswith(("scipy.sparse", "sparse")):
        raise DataError(
            f"{name} is a sparse {type(points).__name__}, which is not supported: pass {name}.toarray() if it fits "
            "in memory, or reduce it first, for example with sklearn.decomposition.TruncatedSVD"
        )
    points = unmasked(points, name, gaps)
    try:
        table = np.asarray(points)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{name} is not a table: its rows differ in length ({error})") from error
    except (TypeError, RuntimeError) as error:
        raise unreadable_tensor(points, name, error) from error
    if table.ndim == 0:
        refuse_scalar(points, name)
    if table.dtype == object and (convert_objects or gaps):
        check_shape(table.shape, name, min_rows)
        try:
            table = table.astype(np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            refusal = ObjectsError if isinstance(error, TypeError) else DataError
            raise refusal(f"{name} must have a numeric dtype, got objects that are no numbers ({error})") from error
    dtype = check_dtype(table.dtype, name)
    check_shape(table.shape, name, min_rows)
    check_exact(table, 0, name, getattr(points, "columns", None))
    check_exact_columns(points, table, name)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, and is then reported as such
        table = table.astype(dtype, copy=False)
    if not gaps:
        check_finite_block(table, 0, name, list(getattr(points, "columns", ())))
    return table
