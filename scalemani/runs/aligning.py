"""Rows of two sets that are the same points: which these are, how their embeddings lie, a start from one of them."""

import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scalemani.config.other_names import value_instead
from scalemani.config.stages import COMPUTED_REFERENCES, COMPUTED_STARTS
from scalemani.config.validation import check_points
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import PointsSource, open_labels, open_points
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.side_data import AccompaniedPoints, with_init
from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.measures import similarity_of
from scalemani.runs.opened import Run, open_run, opened_run

SHOWN_IDS = 5


def shared_rows(n_rows: int, n_other_rows: int, ids: tuple[Any, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (M,) of one and of another set of points that are the same points, ascending in the first.

    Parameters
    ----------
    n_rows, n_other_rows : how many rows there are
    ids : for each of the two one identifier a row, integers or strings, in an array or in a file that `open_labels`
        reads; None: rows at the same position are the same points, as far as both go

    Raises
    ------
    DataError
        For identifiers that repeat, of which there is not one a row, of two kinds, and where no row is shared.
    """
    if ids is None:
        common = np.arange(min(n_rows, n_other_rows))
        return common, common
    one, other = (checked_ids(values, count) for values, count in zip(ids, (n_rows, n_other_rows), strict=True))
    if (one.dtype.kind == "U") != (other.dtype.kind == "U"):
        raise DataError("identifiers must be of one kind, got text for one set of rows and integers for the other")
    if np.result_type(one, other).kind == "f":  # int64 and uint64, which lose digits in one type
        one, other = one.astype(object), other.astype(object)
    _, rows, other_rows = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    if len(rows) == 0:
        raise DataError(
            f"no row is shared: identifiers such as {', '.join(map(str, one[:SHOWN_IDS]))} are not among the others, "
            f"such as {', '.join(map(str, other[:SHOWN_IDS]))}"
        )
    order = np.argsort(rows)
    return rows[order], other_rows[order]


def checked_ids(identifiers: Any, count: int) -> np.ndarray:
    """Return identifiers (count,), each of which names one row; raise DataError for others."""
    ids = open_labels(identifiers, count, "identifier")
    if ids.dtype.kind not in "iuU":
        raise DataError(f"identifiers must be integers or text, got {ids.dtype}")
    if (absent := np.flatnonzero(is_absent(ids))).size:
        raise DataError(f"identifiers must name every row, and {len(absent)} rows have none, the first row {absent[0]}")
    values, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if len(values) < len(ids):
        twice = counts > 1
        shown = ", ".join(
            f"{value} (first in row {row})"
            for value, row in zip(values[twice][:SHOWN_IDS], first[twice][:SHOWN_IDS], strict=True)
        )
        raise DataError(f"identifiers must name one row each, and {int(twice.sum())} of them repeat: {shown}")
    return ids


@dataclass(frozen=True)
class Alignment:
    """The similarity x -> scale x rotation + translation, and what it leaves.

    Attributes
    ----------
    scale : of all directions alike
    rotation : (d, d), orthogonal, applied from the right; `reflected` where its determinant is negative
    translation : (d,)
    shared_rows : M, the points that both embeddings have
    residual : the root mean square distance of these points after the transform
    relative_residual : the same over the root mean square distance of the reference from its middle; in [0, 1]
    """

    scale: float
    rotation: np.ndarray
    translation: np.ndarray
    reflected: bool
    shared_rows: int
    residual: float
    relative_residual: float

    def apply(self, positions: Any) -> np.ndarray:
        """Return positions (n, d) where the transform takes them."""
        return np.asarray(self.scale * (np.asarray(positions, np.float64) @ self.rotation) + self.translation)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {**asdict(self), "rotation": self.rotation.tolist(), "translation": self.translation.tolist()}


def align(embedding: Any, reference: Any, ids: tuple[Any, Any] | None = None) -> Alignment:
    """Return the Procrustes transform of an embedding onto another: rotation or reflection, scale and translation.

    Parameters
    ----------
    embedding, reference : two runs with an embedding or their folders or URLs, or arrays (N, d) and (M, d)
    ids : one identifier a row of each, integers or text, as arrays or files of them (.npy, .npz::member, text). None:
        rows at the same position are the same points, as far as both go

    Returns
    -------
    Alignment
        `scale`, `rotation`, `translation`, the residual it leaves, and `apply` for further positions.

    Raises
    ------
    DataError
        For embeddings of different widths, identifiers that repeat or do not fit, and fewer than two shared points.
    StoreError
        For runs that are not finished or have no embedding.

    References
    ----------
    Cox and Cox, Multidimensional Scaling, 1994, chapter 5.

    Examples
    --------
    >>> alignment = align([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[5.0, 5.0], [5.0, 7.0], [3.0, 5.0]])
    >>> round(alignment.scale, 6), alignment.reflected, alignment.residual < 1e-9
    (2.0, False, True)
    """
    one, other = open_coordinates(embedding, "embedding"), open_coordinates(reference, "reference")
    if one.shape[1] != other.shape[1]:
        raise DataError(f"the embeddings have {one.shape[1]} and {other.shape[1]} columns: align equal ones")
    rows, other_rows = shared_rows(len(one), len(other), ids)
    x, r = one[rows], other[other_rows]
    there = ~(np.isnan(x[:, 0]) | np.isnan(r[:, 0]))
    count = int(there.sum())
    if count < 2:
        raise DataError(f"{count} rows have a position in both embeddings, at least 2 are needed")
    # Squares of squares of sums stay within float64 in these units, which are powers of two.
    (x, x_unit), (r, r_unit) = at_unit_scale(x[there]), at_unit_scale(r[there])
    x_mean, r_mean = x.mean(axis=0), r.mean(axis=0)
    x, r = x - x_mean, r - r_mean
    scale, rotation = similarity_of(x.T @ r, float(np.sum(x * x)))
    check_ratio(scale, r_unit - x_unit)
    left, spread = float(np.sum((scale * (x @ rotation) - r) ** 2)), float(np.sum(r * r))
    return Alignment(
        math.ldexp(scale, r_unit - x_unit),
        rotation,
        np.ldexp(r_mean - scale * (x_mean @ rotation), r_unit),
        bool(np.linalg.det(rotation) < 0),
        count,
        math.ldexp(math.sqrt(left / count), r_unit),
        math.sqrt(left / spread) if spread > 0 else 0.0,
    )


def check_ratio(scale: float, exponent: int) -> None:
    """Refuse a scale, times a power of two, that no float64 holds with all its digits."""
    power = math.frexp(scale)[1] + exponent
    if scale and not sys.float_info.min_exp <= power <= sys.float_info.max_exp:
        raise DataError(
            f"the reference is about 2^{power} times as large as the embedding, which no float64 holds: give both in "
            "units in which neither is so small"
        )


def open_coordinates(embedding: Any, name: str) -> np.ndarray:
    """Return the embedding (N, d) float64 of a run, or of a folder or URL of one, or in an array."""
    if not isinstance(embedding, Run | str | Path):
        return np.asarray(check_points(embedding, name), np.float64)
    return run_coordinates(embedding if isinstance(embedding, Run) else open_run(embedding))


def with_start(
    source: PointsSource,
    init: Any,
    ids: tuple[Any, Any] | None = None,
    part: Literal["init", "reference"] = "init",
) -> AccompaniedPoints:
    """Return points with the coordinates from which their descent starts, or of its reference, by the `part`.

    Parameters
    ----------
    source : (N, D)
    init : a run that has an embedding or where it is; or coordinates (N, d), NaN in a row for a point without any, in
        an array or in any file that points come in
    ids : one identifier for each of the points and one for each row of `init`, arrays or files of them. None:
        rows at the same position are the same points; points beyond the last row of a run start among their neighbours

    Raises
    ------
    ConfigError, StoreError, DataError
        For what is neither, runs without an embedding, and coordinates or identifiers that do not fit the points.
    """
    n_points, opened = source.shape[0], opened_run(init)
    if opened is not None:
        coordinates, name = run_coordinates(opened), f"the run {opened.store.root}"
    elif isinstance(init, str | Path):
        coordinates, name = read_coordinates(init, part), str(init)
    else:
        coordinates, name = np.asarray(init), part
    if ids is None and opened is None:
        return with_init(source, coordinates, name, part)
    rows, other_rows = shared_rows(n_points, len(coordinates), ids)
    start = np.full((n_points, *coordinates.shape[1:]), np.nan)
    start[rows] = coordinates[other_rows]
    return with_init(source, start, name, part)


def run_coordinates(run: Run) -> np.ndarray:
    """Return the embedding (N, d) of a run in the order of its input; NaN for points that it left out."""
    return run.of_input(np.asarray(run.retained_embedding[...]), np.nan)


def read_coordinates(location: str | Path, part: Literal["init", "reference"]) -> np.ndarray:
    """Return the coordinates (N, d) in a file or store, NaN among them."""
    if "://" not in str(location) and not Path(str(location).partition("::")[0]).exists():
        computed = COMPUTED_STARTS if part == "init" else COMPUTED_REFERENCES
        meant = value_instead("layout.init", str(location), computed)
        raise ConfigError(
            f"{part} must be {', '.join(computed)}, a run or a file of coordinates, got {str(location)!r}: "
            + (meant or "there is neither a run nor a file of this name")
        )
    coordinates = open_points(location)
    return coordinates.read(0, coordinates.shape[0])
