"""Side data: what accompanies points, labels, weights, init, landmarks, duplicates and closest pairs, as one record."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scalemani.config.validation import check_dtype, check_shape, unmasked
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources.base import MetricPoints, PointsSource, WrappedPoints, as_opening_errors, first_few
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.labels import open_labels
from scalemani.io.sources.opening import open_points, points_in_memory, with_same_columns
from scalemani.io.sources.precomputed import DistanceMatrix, NeighborLists, missing_last, open_graph
from scalemani.io.sources.precomputed_affinities import PrecomputedAffinities
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.graph.components import Bridges
from scalemani.kernels.rows.equal_rows import first_of_equal_rows
from scalemani.kernels.rows.metrics import EUCLIDEAN, PRECOMPUTED
from scalemani.store.objects import digest

NO_CLASS = -1  # the code of a point without a label, as scikit-learn writes it, and in texts "-1"
NUMBERS_IN_TEXT = (".csv", ".txt")  # files of row numbers; points are in none of these
ROWS_AT_ONCE = 65_536  # of a source that prefers no number
LARGEST_INIT = 1e6  # a descent ends with an error where a coordinate comes beyond ten times this
LARGEST_WEIGHT = 1e18  # sums of affinities times these, over as many points as there may be, stay within float32
LEFT_OUT = -1  # instead of a point: the row is of one that was left out


@dataclass(frozen=True, eq=False)
class Labels:
    """The class of each point, its place among the sorted `names` or NO_CLASS: codes (N,) int32.

    `partial` says that points may have none; `counts` are the points of each class.
    """

    codes: np.ndarray
    names: np.ndarray
    counts: np.ndarray
    partial: bool

    @classmethod
    def of(cls, labels: np.ndarray, partial: bool) -> "Labels":
        """Return the classes of labels (N,); where they may be `partial`, those without one apart."""
        labels = np.asarray(labels)  # without the order of categories
        known = has_label(labels) if partial else ~is_absent(labels)
        if not (partial or known.all()):
            rows = np.flatnonzero(~known)
            raise DataError(
                f"labels must name the class of every point, and {len(rows)} of {len(labels)} points have none, in "
                f"row(s) {first_few(rows)}: leave these points out, or give each a class"
            )
        labels_of_points = labels[known]
        if labels_of_points.dtype.kind == "f" and not np.array_equal(labels_of_points, np.rint(labels_of_points)):
            raise DataError(
                "labels must be classes, got numbers with fractions (Unknown label type: continuous): round them, or "
                "group them first"
            )
        names, places, counts = np.unique(labels_of_points, return_inverse=True, return_counts=True)
        codes = np.full(len(labels), NO_CLASS, np.int32)
        codes[known] = places
        return cls(codes, names, counts, partial)

    @cached_property
    def digest(self) -> str:
        """The digest of the class codes (N,), which keys hold; names of classes are not in it."""
        return digest(self.codes.tobytes())

    @property
    def lonely(self) -> list[str]:
        """The names of classes of one point, where every point has one."""
        return [] if self.partial else [str(name) for name in self.names[self.counts == 1]]

    def with_codes(self, codes: np.ndarray) -> "Labels":
        """Return the labels of other points that have some of these classes, by their codes (M,)."""
        labels = Labels.of(codes, self.partial)
        return labels if self.partial else check_classes(labels)  # where they may be missing, none need be left

    def of_rows(self, rows: np.ndarray) -> "Labels":
        """Return the labels of the points at `rows` (M,), in this order; classes without a point are dropped."""
        return self.with_codes(self.codes[rows])

    def of_distinct(self, points_of_rows: np.ndarray, n_points: int) -> "Labels":
        """Return the labels of distinct points, each of which some of the rows (N,) stand for.

        A point whose rows have different classes has none; rows without a label leave the class to the others.
        """
        known = self.codes != NO_CLASS
        least = np.full(n_points, np.iinfo(np.int32).max, np.int32)
        most = np.full(n_points, NO_CLASS, np.int32)
        np.minimum.at(least, points_of_rows[known], self.codes[known])
        np.maximum.at(most, points_of_rows[known], self.codes[known])
        return self.with_codes(np.where(least == most, most, NO_CLASS))


@dataclass(frozen=True, eq=False)
class Weights:
    """How many equal points each point stands for: values (N,) float64 in input order."""

    values: np.ndarray

    @cached_property
    def digest(self) -> str:
        """The digest of the weights (N,), which keys hold."""
        return digest(self.values.tobytes())

    def fewest_neighbors(self, n_neighbors: int) -> float:
        """Return how many points any so many neighbours stand for at least."""
        return float(np.partition(self.values, n_neighbors - 1)[:n_neighbors].sum())

    def of_rows(self, rows: np.ndarray) -> "Weights":
        """Return the weights of the points at `rows` (M,), in this order."""
        return Weights(self.values[rows])


@dataclass(frozen=True, eq=False)
class Init:
    """Where a descent starts, or is pulled to: coordinates (N, d) float64, NaN for points without any."""

    coordinates: np.ndarray

    @cached_property
    def digest(self) -> str:
        """The digest of the coordinates and their number of columns, which keys hold."""
        return digest(f"{self.coordinates.shape[1]} ".encode() + self.coordinates.tobytes())

    def of_rows(self, rows: np.ndarray) -> "Init":
        """Return the starts of the points at `rows` (M,), in this order."""
        return Init(self.coordinates[rows])


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks (L, D) float64 that the user chose, as the metric maps them.

    `are_rows` says that the input was row numbers of the points.
    """

    points: np.ndarray
    are_rows: bool = False

    @cached_property
    def digest(self) -> str:
        """The digest of the landmarks and their shape, which keys hold; the kind of the input is not in it."""
        return digest(f"{self.points.shape} ".encode() + self.points.tobytes())

    def of_rows(self, rows: np.ndarray) -> "Landmarks":
        """Return the same landmarks: they need not be among the points."""
        return self


@dataclass(frozen=True, eq=False)
class Duplicates:
    """The point of each row of the input, (n,) int64, LEFT_OUT for rows of points that were left out.

    `gaps` says how many rows have a gap in each column, and were left out, where these were looked for.
    """

    points_of_rows: np.ndarray
    n_points: int
    gaps: str | None = None

    @cached_property
    def digest(self) -> str:
        """The digest of the point of each row, which keys hold."""
        return digest(self.points_of_rows.data)

    def __str__(self) -> str:
        n_rows = int(np.count_nonzero(self.points_of_rows != LEFT_OUT))
        if self.gaps is not None and n_rows == self.n_points:
            return f"{len(self.points_of_rows) - n_rows} of {len(self.points_of_rows)} rows have a gap and are left out"
        return f"{n_rows} rows are {self.n_points} distinct points, each weighs as much as its rows"

    def of_rows(self, rows: np.ndarray) -> "Duplicates":
        """Return the point of each row of the input where only the points at `rows` (M,) are left, numbered anew."""
        numbers = np.full(self.n_points, LEFT_OUT)
        numbers[rows] = np.arange(len(rows))
        return self.merged(numbers, len(rows))

    def merged(self, points_of_points: np.ndarray, n_points: int) -> "Duplicates":
        """Return which of fewer distinct points each row of the input is, by those of the points (N,)."""
        return Duplicates(np.append(points_of_points, LEFT_OUT)[self.points_of_rows], n_points, self.gaps)


@dataclass(frozen=True, eq=False)
class PrecomputedLists:
    """Neighbour lists of another library: indices (N, k) int32 and distances (N, k) float32 of any form.

    Indices are rows of the points, -1 behind them where fewer are known.
    """

    indices: np.ndarray
    distances: np.ndarray

    @cached_property
    def digest(self) -> str:
        """The digest of indices, distances and their shape, which keys hold."""
        return digest(f"{self.indices.shape} ".encode() + self.indices.tobytes() + self.distances.tobytes())

    def of_rows(self, rows: np.ndarray) -> "PrecomputedLists":
        """Return the lists of some points, without the others."""
        numbers = np.full(len(self.indices) + 1, LEFT_OUT, np.int32)  # the last one is that of entries without a row
        numbers[rows] = np.arange(len(rows))
        return PrecomputedLists(*missing_last(numbers[self.indices[rows]], self.distances[rows]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """The closest pairs of points of pieces of neighbour lists, where the input is the distances between all points."""

    bridges: Bridges

    @cached_property
    def digest(self) -> str:
        """The digest of the pairs and their distances, which keys hold."""
        return digest(b"".join(part.tobytes() for part in self.bridges))

    def of_rows(self, rows: np.ndarray) -> None:
        """Return none: some of the points are those of one piece."""


@dataclass(frozen=True, eq=False)
class SideData:
    """What accompanies points (N, D), each part None where there is none; all of it is in this process."""

    labels: Labels | None = None
    weights: Weights | None = None
    init: Init | None = None
    reference: Init | None = None
    landmarks: Landmarks | None = None
    duplicates: Duplicates | None = None
    lists: PrecomputedLists | None = None
    pairs: Pairs | None = None

    def of_rows(self, rows: np.ndarray) -> "SideData":
        """Return what accompanies some of the points, by their rows (M,)."""
        return SideData(**{name: part.of_rows(rows) for name, part in vars(self).items() if part is not None})


class AccompaniedPoints(WrappedPoints):
    """Points (N, D) of another source with their side data."""

    def __init__(self, points: PointsSource, side: SideData) -> None:
        super().__init__(points, side)
        self.side, self.remote, self.file = side, False, None  # side data are in this process


def points_of(source: PointsSource) -> PointsSource:
    """Return the points themselves, without their side data."""
    return source.points if isinstance(source, AccompaniedPoints) else source


def side_data_of(source: PointsSource) -> SideData:
    """Return the side data of a source; empty where it is no `AccompaniedPoints`."""
    return source.side if isinstance(source, AccompaniedPoints) else SideData()


def with_side_data(source: PointsSource, **parts: Any) -> AccompaniedPoints:
    """Return points with more side data than they have, parts of `SideData` by name."""
    return AccompaniedPoints(points_of(source), replace(side_data_of(source), **parts))


def with_labels(source: PointsSource, labels: Any, partial: bool = False) -> AccompaniedPoints:
    """Return points (N, D) with the class of each, from labels (N,) or the path of a file of them.

    With `partial`, -1, NaN and empty strings are points without a label; else -1 is a class like others, and points
    without a label are refused.
    """
    return with_side_data(source, labels=check_classes(Labels.of(open_labels(labels, source.shape[0]), partial)))


def with_weights(source: PointsSource, weights: Any) -> AccompaniedPoints:
    """Return points with the weight of each, (N,) real numbers of at least one, or the path of a file of them."""
    where, n_points = str(weights) if isinstance(weights, str | Path) else "weights", source.shape[0]
    return with_side_data(
        source, weights=Weights(check_weights(open_labels(weights, n_points, "weight"), n_points, where))
    )


def with_lists(source: PointsSource, graph: Any) -> AccompaniedPoints:
    """Return points (N, D) with neighbour lists of another library, as `metric="precomputed"` takes lists of any form.

    Lists may miss entries, and distances may be squares, inner products or those of codes: they are computed anew.
    """
    if isinstance(points_of(source), NeighborLists | DistanceMatrix | PrecomputedAffinities):
        raise ConfigError("graph accompanies points, and precomputed input replaces them: leave out one")
    return with_side_data(source, lists=PrecomputedLists(*open_graph(graph, source.shape[0])))


def with_init(
    source: PointsSource, coordinates: Any, name: str = "init", part: Literal["init", "reference"] = "init"
) -> AccompaniedPoints:
    """Return points with coordinates (N, d) of the start or the reference, rows of NaN for those without any.

    Errors call them `name`.
    """
    values = np.asarray(unmasked(coordinates, name))
    check_dtype(values.dtype, name)
    check_shape(values.shape, name)
    n_points = source.shape[0]
    if len(values) != n_points:
        raise DataError(
            f"{name} has {len(values)} rows for {n_points} points: give each point one, of NaN where it has no start"
        )
    initial = np.array(values, np.float64, order="C")
    unknown = np.isnan(initial)
    without = unknown.all(axis=1)
    wrong = np.flatnonzero((unknown.any(axis=1) & ~without) | (np.abs(initial) > LARGEST_INIT).any(axis=1))
    if len(wrong):
        raise DataError(
            f"{name} must hold finite numbers up to {LARGEST_INIT:g}, or NaN in all columns of a row, and "
            f"does not in {len(wrong)} rows: first {first_few(wrong)}"
        )
    if without.all():
        raise DataError(f"{name} has coordinates for none of the {n_points} points: give those of one at least")
    initial[without] = np.nan  # of one sign and payload
    return with_side_data(source, **{part: Init(initial)})


def with_landmarks(source: PointsSource, landmarks: Any, metric: str = EUCLIDEAN) -> AccompaniedPoints:
    """Return points (N, D) with distinct landmarks (L, D), L >= 2, which need not be among the points.

    Integers (L,), or (L, 1) where points have other columns, are the row numbers of landmarks among the points.
    `metric`, a name of `METRICS`, is that in which points and landmarks are compared.
    """
    if metric == PRECOMPUTED or isinstance(points_of(source), PrecomputedAffinities):
        raise ConfigError("landmarks stand among points, and precomputed input replaces them: leave out one")
    numbers = row_numbers(landmarks, source.shape)
    if numbers is not None:
        landmarks = rows_at(source, np.sort(numbers))
    else:
        _, landmarks = with_same_columns(source, landmarks)
    selected = points_in_memory(landmarks, "landmarks", metric).astype(np.float64)
    if selected.shape[1] != source.shape[1]:
        raise DataError(
            f"landmarks have {selected.shape[1]} columns, points {source.shape[1]}; they must have the same"
        )
    check_distinct(selected)
    if len(selected) < 2:
        raise DataError("landmarks has 1 row, at least 2 are needed: give more landmarks")
    return with_side_data(source, landmarks=Landmarks(selected, numbers is not None))


def row_numbers(landmarks: Any, shape: tuple[int, int]) -> np.ndarray | None:
    """Return the rows (L,) of landmarks that are named by their numbers among points of a shape (N, D); else None.

    They are integers in one column, or in an array of one dimension, or the path of a file of these.
    """
    numbers = whole_column(landmarks, shape[1])
    return None if numbers is None else check_numbers(numbers, shape[0])


def whole_column(landmarks: Any, n_features: int) -> np.ndarray | None:
    """Return landmarks that are integers in one column, or in an array of one dimension; None of others."""
    if isinstance(landmarks, str | Path):
        path = str(landmarks)
        if path.lower().endswith(NUMBERS_IN_TEXT) and "://" not in path:
            landmarks = numbers_in_text(path)
        elif path.lower().endswith(".npy") and "://" not in path and Path(path).is_file():
            with as_opening_errors(path):
                landmarks = np.load(path, mmap_mode="r")
        elif n_features == 1 or open_points(landmarks).shape[1] != 1:
            return None
        else:
            landmarks = points_in_memory(landmarks, "landmarks")
    shape = np.shape(landmarks)
    if len(shape) != 1 and (len(shape) != 2 or shape[1] != 1 or n_features == 1):
        return None
    values = np.asarray(landmarks).ravel()
    whole = values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool(np.all(values == np.rint(values))))
    return values.astype(np.int64) if whole else None


def numbers_in_text(path: str) -> np.ndarray:
    """Return the row numbers (L,) of a file of text, one a line."""
    try:
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"landmarks in {path} are no row numbers, one a line: {error}") from error


def check_numbers(numbers: np.ndarray, n_points: int) -> np.ndarray:
    """Return row numbers of landmarks; raise DataError for rows that are not there, and for repeated ones."""
    outside = np.flatnonzero((numbers < 0) | (numbers >= n_points))
    if len(outside):
        raise DataError(
            f"landmarks name row {numbers[outside[0]]} (at place {outside[0]}), and the {n_points} points have rows 0 "
            f"to {n_points - 1}: give rows of the points"
        )
    rows, counts = np.unique(numbers, return_counts=True)
    if counts.max(initial=1) > 1:
        repeated = rows[counts > 1]
        raise DataError(
            f"landmarks name row {repeated[0]} {counts.max()} times, {len(repeated)} rows in all more than once: name "
            "each row once"
        )
    return numbers


def rows_at(source: PointsSource, rows: np.ndarray) -> np.ndarray:
    """Return points (L, D) at ascending rows, read with those next to them; raise DataError for one with a gap."""
    parts = []
    for some in slices(source.shape[0], source.preferred_rows or ROWS_AT_ONCE):
        rows_here = rows[np.searchsorted(rows, some.start) : np.searchsorted(rows, some.stop)]
        if len(rows_here):
            parts.append(source.read(some.start, some.stop)[rows_here - some.start])
    points = np.concatenate(parts) if parts else np.empty((0, source.shape[1]))
    gaps = rows[np.isnan(points).any(axis=1)] if points.dtype.kind == "f" else rows[:0]
    if len(gaps):
        raise DataError(f"landmarks name row {gaps[0]}, which has a gap, and {len(gaps) - 1} more: name other rows")
    return points


def map_points(metric: str, points: PointsSource) -> PointsSource:
    """Return points in the geometry of a metric, a name of `METRICS`; Euclidean ones stay."""
    if isinstance(points, PrecomputedAffinities):
        if metric not in (EUCLIDEAN, PRECOMPUTED):
            raise ConfigError(f"affinities are precomputed, and metric={metric!r} compares points: leave out one")
        return points
    if isinstance(points, NeighborLists | DistanceMatrix) != (metric == PRECOMPUTED):
        raise ConfigError(
            "neighbour lists go with metric='precomputed', and points with another metric: this metric is "
            f"{metric!r}, and the input is {points.description}"
        )
    return points if metric in (EUCLIDEAN, PRECOMPUTED) else MetricPoints(points, metric)


def has_label(labels: np.ndarray) -> np.ndarray:
    """Return where labels (N,) of one kind are there: neither -1, NaN nor empty, (N,) bool."""
    return ~(is_absent(labels) | (labels == (str(NO_CLASS) if labels.dtype.kind == "U" else NO_CLASS)))


def check_classes(labels: Labels) -> Labels:
    """Return classes; raise DataError where there is one or none, or one for each point."""
    n_classes = len(labels.names)
    if n_classes < 2:
        many = "one class" if n_classes else "none"
        raise DataError(f"labels must be of two classes at least, got {many}, {labels.names.tolist()}")
    if n_classes == len(labels.codes):
        raise DataError(
            f"labels must leave some class two points at least, got {n_classes} classes with one member each: labels "
            "that name single points say nothing of what varies within a class"
        )
    return labels


def check_weights(weights: Any, n_points: int, where: str = "sample_weight") -> np.ndarray:
    """Return the weights (N,) float64 of points, finite and at least one: how many equal points each stands for."""
    values = np.asarray(weights)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{where} must be real numbers, got dtype {values.dtype}: give each point how often it counts")
    if values.shape != (n_points,):
        raise DataError(
            f"{where} must have one weight a point, ({n_points},), got shape {values.shape}: give them in the points' "
            "order"
        )
    counts = values.astype(np.float64)
    wrong = np.flatnonzero(~((counts >= 1.0) & (counts <= LARGEST_WEIGHT)))
    if len(wrong):
        raise DataError(
            f"{where} must be finite, at least 1 and at most {LARGEST_WEIGHT:g}, as a weight counts the equal points "
            f"that one stands for: {len(wrong)} are not, in row(s) {first_few(wrong)}; the first is {values[wrong[0]]}"
            ". Leave points of weight zero out, divide smaller weights by the least, and larger ones by what they share"
        )
    return counts


def check_distinct(landmarks: np.ndarray) -> None:
    """Refuse landmarks (L, D) of which some are repeated."""
    distinct = first_of_equal_rows(landmarks)
    if len(distinct) < len(landmarks):
        repeated = int(np.setdiff1d(np.arange(len(landmarks)), distinct)[0])
        raise DataError(
            f"landmarks must be distinct, got {len(landmarks) - len(distinct)} repeated rows, the first of them row "
            f"{repeated}; select them with select_landmarks, or pass numpy.unique(landmarks, axis=0)"
        )
