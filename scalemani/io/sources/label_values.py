"""Values of labels as one type of NumPy's, in which labels that differ stay different, and their categories."""

import numbers
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np

from scalemani.config.validation import LARGEST_EXACT, is_wide_integer
from scalemani.errors import DataError, warn

INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,19})", re.ASCII)  # as they are written: 007 and 1_0 are names
NUMBER = re.compile(r"[+-]?(?=\.?\d)(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
MISSING = ("", "nan")
GAPS_AMONG_TEXTS = ("NA", "N/A", "#N/A", "#NA", "<NA>", "NULL", "null", "n/a")  # as pandas reads them, but "None"
GAPS = ("na", "n/a", "#n/a", "#na", "<na>", "null", "none")  # of R, spreadsheets, databases, pandas and Python
INFINITE = ("inf", "+inf", "-inf", "infinity", "-infinity")
FAMILIES = (str, bytes, (bool, np.bool_))  # types of values that are no numbers
TIMES = (date, timedelta)  # datetimes and time stamps of pandas are dates
NOT_AVAILABLE = "NAType"  # of pandas, which has no truth value


class OrderedLabels(np.ndarray):
    """Texts (N,) whose categories have an order or colours (#rrggbb), which rows chosen from them keep."""

    categories: tuple[str, ...] = ()
    colours: Mapping[str, str] = MappingProxyType({})

    def __array_finalize__(self, origin: Any) -> None:
        self.categories = getattr(origin, "categories", ())
        self.colours = getattr(origin, "colours", MappingProxyType({}))


class Measured(np.ndarray):
    """Numbers (N,) that are measured, as the counts of a gene are: values however few differ, and no classes."""


def categories_of(labels: Any) -> tuple[str, ...]:
    """Return the ordered categories of labels; none where their order is that of texts.

    `labels` is anything with `categories` or a dtype that has them: `OrderedLabels`, categorical columns.
    """
    categories = getattr(labels, "categories", None)
    if categories is None:
        categories = getattr(getattr(labels, "dtype", None), "categories", None)
    names = () if categories is None else tuple(map(str, categories))
    return () if names == tuple(sorted(names)) else names


def colours_of_categories(labels: Any) -> Mapping[str, str]:
    """Return the colours (#rrggbb) of labels by their categories; empty where these have none."""
    return labels.colours if isinstance(labels, OrderedLabels) else MappingProxyType({})


def with_categories(
    labels: np.ndarray, categories: Sequence[Any], colours: Mapping[str, str] = MappingProxyType({})
) -> np.ndarray:
    """Return labels (N,) of texts with the order of their categories, and the colours of these; others as they are."""
    if not (len(categories) or colours) or labels.dtype.kind not in "UO":
        return labels
    ordered = labels.view(OrderedLabels)
    ordered.categories, ordered.colours = tuple(map(str, categories)), colours
    return ordered


def values_of_texts(texts: Sequence[str], where: str = "labels") -> np.ndarray:
    """Return texts (N,) as integers where all are; else as numbers where all are, missing ones as NaN; else as texts.

    Missing are empty texts and `nan`, which among texts are empty, and with a warning the words for a gap: each of GAPS
    among numbers alone, each of GAPS_AMONG_TEXTS among texts. Codes such as 007, and integers that a float64 does not
    hold among numbers with fractions, stay texts.
    """
    if texts and all(map(INTEGER.fullmatch, texts)):
        numbers = [int(text) for text in texts]
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= min(numbers) and max(numbers) <= np.iinfo(kind).max:
                return np.array(numbers, kind)
    without_nan = ["" if text.casefold() in MISSING else text for text in texts]
    gaps = [text for text in without_nan if text.casefold() in GAPS]
    filled = ["" if text.casefold() in GAPS else text for text in without_nan] if gaps else without_nan
    if all(not text or is_number(text) for text in filled) and (any(filled) or not gaps):
        if gaps:
            warn(f"{where}: {len(gaps)} of {len(texts)} values are {gaps[0]} among numbers: they are taken as missing")
        return np.array([float(text) if text else np.nan for text in filled])
    words = [text for text in without_nan if text in GAPS_AMONG_TEXTS]
    if words:
        warn(f"{where}: {len(words)} of {len(texts)} values are {words[0]}: they are taken as missing")
    return np.array(["" if text in GAPS_AMONG_TEXTS else text for text in without_nan], dtype=str)


def is_number(text: str) -> bool:
    """Return whether a text is written as a number that a float64 holds, up to the rounding of fractions."""
    if text.casefold() in INFINITE:
        return True
    if NUMBER.fullmatch(text) is None:
        return False
    value = float(text)
    if "e" in text.casefold() or abs(value) < LARGEST_EXACT:
        return abs(value) != np.inf
    return Decimal(text) == Decimal(value)


def values_of(labels: Any, where: str) -> np.ndarray:
    """Return labels as an array of numbers, truth values or texts, in which None, NaN and NA are missing.

    Arrays of one type stay as they are. Values of several types, and integers that no NumPy type holds together,
    become texts; labels that differ and have the same text, as 1 and "1", are refused, and so are times.
    """
    if np.ma.isMaskedArray(labels):
        labels = with_missing(labels.data, np.ma.getmaskarray(labels))
    try:
        values = np.asarray(labels)
        values = values.astype(object) if values.dtype.kind == "T" else values  # texts of any length
        rounded = values.dtype.kind == "f" and bool(np.any(np.abs(values) >= LARGEST_EXACT))
        listed = getattr(labels, "to_pylist", getattr(labels, "to_list", None))  # of Arrow, of polars and pandas
        if isinstance(labels, list | tuple):
            objects = np.array(labels, dtype=object)
        elif rounded and listed is not None:
            objects = np.array(listed(), dtype=object)
        else:
            objects = values
    except (ValueError, OverflowError) as error:
        raise DataError(f"{where} must have one value a point: {error}") from error
    refuse_times(values.dtype.name if values.dtype.kind in "mM" else "", where)
    flat = objects.ravel() if objects.ndim == 2 and 1 in objects.shape else objects
    if objects.dtype != object or flat.ndim != 1 or not len(flat):
        return values
    kinds = set(map(type, flat.tolist()))
    refuse_times(next((kind.__name__ for kind in kinds if issubclass(kind, TIMES)), ""), where)
    if any(issubclass(kind, Collection) and not issubclass(kind, str | bytes) for kind in kinds):
        return values
    # NumPy makes one type of several, by which labels that differ can be equal.
    families = {next((one for one in FAMILIES if issubclass(kind, one)), None) for kind in kinds}
    wide = rounded and any(map(is_wide_integer, flat.tolist()))
    return texts_of(flat.tolist(), where) if values.dtype == object or len(families) > 1 or wide else values


def refuse_times(name: str, where: str) -> None:
    """Raise DataError for labels that are times; `name` is that of their type, empty where they are none."""
    if not name:
        return
    unit = "timedelta64[ms]" if "delta" in name else "datetime64[ms]"
    raise DataError(
        f"{where} must be numbers or strings, got times ({name}): for colours in their order give seconds, "
        f"times = numpy.array(times, '{unit}'); (times - numpy.{unit[:-4]}(0, 'ms')) / numpy.timedelta64(1, 's'), for "
        "classes give texts"
    )


def with_missing(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return labels (N,) of which some are missing: NaN among numbers, None among texts and wide integers."""
    if not missing.any():
        return values
    wide = values.dtype.kind in "iu" and bool(np.any(values > LARGEST_EXACT) or np.any(values < -LARGEST_EXACT))
    filled = values.astype(np.float64 if values.dtype.kind in "biuf" and not wide else object)
    filled[missing] = None
    return filled


def texts_of(values: Sequence[Any], where: str) -> np.ndarray:
    """Return the texts of labels (N,) of any types; refuse labels that differ and have the same one."""
    if set(map(type, values)) <= {str, type(None)}:
        return np.array([value or "" for value in values], dtype=str)
    firsts: dict[str, Any] = {}
    spelled: dict[Any, str] = {}  # equal numbers are one label, such as 1 and 1.0
    texts = []
    for value in values:
        text = "" if is_missing(value) else str(value)
        if text and isinstance(value, numbers.Number) and not isinstance(value, bool):
            text = spelled.setdefault(value, text)
        first = firsts.setdefault(text, value)
        if text and type(first) is not type(value) and first != value:
            raise DataError(
                f"{where} has {first!r} ({type(first).__name__}) and {value!r} ({type(value).__name__}), which have "
                "the same text: give all labels in one type, as numbers or as strings"
            )
        texts.append(text)
    return np.array(texts, dtype=str)


def is_missing(value: Any) -> bool:
    """Return whether a label is none: None, NaN, NaT, or NA of pandas."""
    return value is None or type(value).__name__ == NOT_AVAILABLE or bool(value != value)


def is_absent(labels: np.ndarray) -> np.ndarray:
    """Return which labels (N,) of one type are none, NaN, NaT and empty texts, (N,) bool."""
    values = np.asarray(labels)  # without the order of categories
    if values.dtype.kind in "fmM":
        return np.asarray(values != values)
    return np.asarray(values == values.dtype.type()) if values.dtype.kind in "SU" else np.zeros(len(values), bool)
