"""Points with a class each, or some of them, for what learns from labels."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside
from scalemani.sources.labels import open_labels
from scalemani.store.objects import digest

NO_CLASS = -1  # the code of a point without a label
NO_LABEL = ("", "-1")  # in texts, in which scikit-learn's -1 for unlabelled points may be written too


@dataclass(frozen=True)
class Classes:
    """The digest of the classes of all points, and how many points each class has, by the order of the labels."""

    digest: str
    counts: tuple[int, ...]


class Coded(NamedTuple):
    """The class of each point as its place among the names, (N,) int32 or NO_CLASS; names and counts of the classes."""

    codes: np.ndarray
    names: np.ndarray
    counts: np.ndarray

    @classmethod
    def of_labels(cls, labels: np.ndarray, partial: bool) -> "Coded":
        """Return the classes of labels (N,); where they may be `partial`, those without one apart."""
        labels = np.asarray(labels)  # without the order of categories
        known = has_label(labels) if partial else np.ones(len(labels), bool)
        given = labels[known]
        if given.dtype.kind == "f" and not np.array_equal(given, np.rint(given)):
            raise DataError(
                "labels must be classes, got numbers with fractions or NaN (Unknown label type: continuous): round "
                "them, or group them first"
            )
        names, places, counts = np.unique(given, return_inverse=True, return_counts=True)
        codes = np.full(len(labels), NO_CLASS, np.int32)
        codes[known] = places
        return cls(codes, names, counts)


class LabelledPoints(PointsBeside):
    """A source of points that knows the class of each.

    Parameters
    ----------
    points : (N, D)
    labels : (N,) integers, whole numbers or strings, or the path of a file of them
    partial : whether -1, NaN and empty strings say that a point has no label; else these are classes as others, or
        refused

    Attributes
    ----------
    codes : (N,) int32, the place of each label among the sorted labels, -1 where there is none
    classes : their digest and counts

    Raises
    ------
    DataError
        For other than N labels, labels that are no classes, fewer than two classes, and classes of one point each.
    """

    def __init__(self, points: PointsSource, labels: Any, partial: bool = False) -> None:
        super().__init__(points)
        self.partial = partial
        found = check_classes(Coded.of_labels(open_labels(labels, self.shape[0]), partial))
        self.lonely = [] if partial else [str(name) for name in found.names[found.counts == 1]]
        self._keep(found)

    def _keep(self, found: Coded) -> None:
        self.codes = found.codes
        self.classes = Classes(digest(found.codes.tobytes()), tuple(found.counts.tolist()))

    def with_codes(self, points: PointsSource, codes: np.ndarray) -> "LabelledPoints":
        """Return another source of points (M, D) that have some of these classes, by their codes (M,)."""
        if not self.partial:
            return LabelledPoints(points, codes)
        other = self.with_rows_of(points)
        other._keep(Coded.of_labels(codes, partial=True))  # of these points alone there may be one class, or none
        return other

    def of_distinct(self, points: PointsSource, points_of_rows: np.ndarray) -> "LabelledPoints":
        """Return a source of distinct points (M, D) with the class of the rows (N,) that each stands for.

        A point whose rows have different classes has none; rows without a label leave the class to the others.
        """
        known = self.codes != NO_CLASS
        least = np.full(points.shape[0], np.iinfo(np.int32).max, np.int32)
        most = np.full(points.shape[0], NO_CLASS, np.int32)
        np.minimum.at(least, points_of_rows[known], self.codes[known])
        np.maximum.at(most, points_of_rows[known], self.codes[known])
        return self.with_codes(points, np.where(least == most, most, NO_CLASS))

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "LabelledPoints":
        return self.with_codes(points, self.codes[rows])


def has_label(labels: np.ndarray) -> np.ndarray:
    """Return where labels (N,) of one kind are there: neither -1, NaN nor empty, (N,) bool."""
    if labels.dtype.kind == "U":
        return ~np.isin(labels, NO_LABEL)
    if labels.dtype.kind == "f":
        return ~(np.isnan(labels) | (labels == NO_CLASS))
    return np.asarray(labels != NO_CLASS)


def check_classes(found: Coded) -> Coded:
    """Return classes; raise DataError where there is one or none, or one for each point."""
    n_classes = len(found.names)
    if n_classes < 2:
        many = "one class" if n_classes else "none"
        raise DataError(f"labels must be of two classes at least, got {many}, {found.names.tolist()}")
    if n_classes == len(found.codes):
        raise DataError(
            f"labels must leave some class two points at least, got {n_classes} classes with one member each: labels "
            "that name single points say nothing of what varies within a class"
        )
    return found
