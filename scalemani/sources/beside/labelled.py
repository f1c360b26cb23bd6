"""Points with a class each, for the methods that learn from labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside
from scalemani.sources.labels import open_labels
from scalemani.store.objects import digest


@dataclass(frozen=True)
class Classes:
    """The digest of the classes of all points, and how many points each class has, by the order of the labels."""

    digest: str
    counts: tuple[int, ...]


class LabelledPoints(PointsBeside):
    """A source of points that knows the class of each.

    Parameters
    ----------
    points : (N, D)
    labels : (N,) integers, whole numbers or strings, or the path of a file of them

    Attributes
    ----------
    codes : (N,) int32, the place of each label among the sorted labels
    classes : their digest and counts

    Raises
    ------
    DataError
        For other than N labels, labels that are no classes, one class, and classes of one point each.
    """

    def __init__(self, points: PointsSource, labels: Any) -> None:
        found = open_labels(labels, points.shape[0])
        if found.dtype.kind == "f" and not np.array_equal(found, np.rint(found)):
            raise DataError(
                "labels must be classes, got numbers with fractions or NaN (Unknown label type: continuous): round "
                "them, or group them first"
            )
        names, codes, counts = np.unique(found, return_inverse=True, return_counts=True)
        if len(names) < 2:
            raise DataError(f"labels must be of two classes at least, got one class, {names.tolist()}")
        if len(names) == len(found):
            raise DataError(
                f"labels must leave some class two points at least, got {len(names)} classes with one member each: "
                "labels that name single points say nothing of what varies within a class"
            )
        self.codes = codes.astype(np.int32)
        self.classes = Classes(digest(self.codes.tobytes()), tuple(counts.tolist()))
        self.lonely = [str(name) for name in names[counts == 1]]
        super().__init__(points)

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "LabelledPoints":
        return LabelledPoints(points, self.codes[rows])
