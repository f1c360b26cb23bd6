"""What the map on a page is made of: positions as 16-bit integers, labels as codes, a density where points are many."""

import base64
import gzip
import io
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from scalemani.figures import drawn_embedding
from scalemani.figures.palette import VIRIDIS, colours_of_labels, ramp
from scalemani.figures.panels import GOLDEN_RATIO, blocks, column_limits
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.records.embeddings import StoredClustering
from scalemani.runs.opened import Run
from scalemani.sources import PointsSource, open_points

MOST_POINTS = 2_000_000  # drawn one by one; of more, so many on top of the density of all
MOST_AXES = 3  # to choose two of
PLANE_POINTS = 1_000_000  # beyond, the first two axes alone: each more is 2.6 bytes a point
STEPS = 2**16 - 1  # of a position
DENSITY_CELLS = 2048  # a side: what every WebGL 2 takes as a texture
LEVELS = 255  # of values along a ramp; one more code is for points without a value
PICTURE_PIXELS = 900


class MapData(NamedTuple):
    """A map for a page.

    Attributes
    ----------
    description : what a script reads as JSON: counts, limits, columns
    arrays : compressed bytes in base64 by name: `positions`, `column-0` ..., `rows` and `density` where there are any
    picture : a PNG in base64 that stands in where the map cannot be drawn, and on paper; None without Pillow
    """

    description: dict[str, Any]
    arrays: dict[str, str]
    picture: str | None


def map_data(run: Run, columns: Mapping[str, np.ndarray]) -> MapData | None:
    """Return the map of a run, None where it has no embedding.

    Parameters
    ----------
    run : a run, finished or not
    columns : (N,) labels or values of the points in input order, by their names
    """
    if not run.embeds or not run.group(run.last_stage).complete:
        return None
    source = open_points(run.embedding)
    n_points = source.shape[0]
    given = {name: run.of_results(values) for name, values in columns.items()}
    if StoredClustering.STAGE in run.keys:
        given["clusters of the run"] = np.asarray(run.labels[...])
    drawn = sample_rows(run.params.seed, "report/map", n_points, min(n_points, MOST_POINTS))
    n_axes = min(source.shape[1], MOST_AXES if n_points <= PLANE_POINTS else 2)
    limits = column_limits(source, n_axes)
    table, density, n_outside = quantised(source, limits, drawn)
    described = [encoded_column(name, values) for name, values in given.items()]
    arrays = {"positions": packed(table)}
    arrays |= {f"column-{number}": packed(codes[drawn]) for number, (_, codes) in enumerate(described)}
    if density is not None:
        arrays["density"] = packed(density)
    rows, input_rows = drawn, run.input_rows
    if input_rows is not None:
        rows = input_rows[drawn]
    if len(rows) < run.n_input_points:
        arrays["rows"] = packed(np.diff(rows, prepend=0).astype(np.uint32))
    description = {
        "points": len(drawn),
        "of": n_points,
        "outside": n_outside,
        "axes": axis_names(source.shape[1], limits),
        "columns": [column for column, _ in described],
        "density": DENSITY_CELLS if density is not None else 0,
    }
    return MapData(description, arrays, picture(run.embedding, next(iter(given.values()), None)))


def axis_names(width: int, limits: np.ndarray) -> list[dict[str, Any]]:
    """Return the axes to choose from; one dimension alone is spread over a second one that means nothing."""
    axes = [
        {"name": f"component {number + 1}", "low": float(low), "high": float(high)}
        for number, (low, high) in enumerate(limits)
    ]
    return axes if width > 1 else [*axes, {"name": "nothing", "low": 0.0, "high": 1.0}]


def quantised(source: PointsSource, limits: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, Any, int]:
    """Return positions (M, d) uint16 of the rows drawn, the density of all points, and how many are put on the rim.

    Parameters
    ----------
    source : the embedding (N, d'), read by blocks
    limits : (d, 2), what is shown; points outside are put on its rim
    drawn : (M,) rows, ascending
    """
    n_points, n_axes = source.shape[0], max(2, len(limits))
    table = np.empty((len(drawn), n_axes), np.uint16)
    counts = np.zeros(DENSITY_CELLS**2, np.uint32) if len(drawn) < n_points else None
    n_outside = 0
    for start, rows in blocks(source):
        shares = (rows[:, : len(limits)] - limits[:, 0]) / (limits[:, 1] - limits[:, 0])
        n_outside += int(np.count_nonzero(((shares < 0) | (shares > 1)).any(axis=1)))
        if len(limits) == 1:
            shares = np.column_stack([shares, np.arange(start, start + len(rows)) * GOLDEN_RATIO % 1])
        steps = np.rint(np.clip(shares, 0, 1) * STEPS).astype(np.uint16)
        first, last = np.searchsorted(drawn, [start, start + len(rows)])
        table[first:last] = steps[drawn[first:last] - start]
        if counts is not None:
            cells = steps[:, :2].astype(np.int64) * DENSITY_CELLS // (STEPS + 1)
            np.add.at(counts, cells[:, 1] * DENSITY_CELLS + cells[:, 0], 1)
    return table, None if counts is None else density_levels(counts), n_outside


def density_levels(counts: np.ndarray) -> np.ndarray:
    """Return counts as their logarithms, from 0 for none to 255 for the most: uint8."""
    return np.ceil(np.log1p(counts) / np.log1p(counts.max()) * 255).astype(np.uint8)


def encoded_column(name: str, values: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """Return the description of a column and the code (N,) of each point: that of its class, or of its value."""
    found = colours_of_labels(values, len(values))
    index, table, missing = found.index, found.colours, found.missing
    if not found.classes:
        index = np.where(index == missing, LEVELS, index * (LEVELS - 1) // (len(ramp(VIRIDIS)) - 1))
        table, missing = np.concatenate([ramp(VIRIDIS, LEVELS), table[-1:]]), LEVELS
    codes = index.astype(np.uint8 if len(table) <= 256 else np.uint16)
    described = {
        "name": name,
        "classes": list(found.classes) or None,
        "limits": list(found.limits),
        "missing": missing,
        "counts": np.bincount(codes, minlength=len(table)).tolist(),
        "colours": ["#" + bytes(np.rint(colour * 255).astype(np.uint8)).hex() for colour in table],
    }
    return described, codes


def packed(values: np.ndarray) -> str:
    """Return little-endian integers as compressed bytes in base64, all first bytes before all second ones.

    Bytes of one kind next to each other compress better: the high ones of positions are alike, the low ones noise.
    """
    columns = values.reshape(len(values), -1)
    planes = np.ascontiguousarray(columns.T).astype(columns.dtype.newbyteorder("<")).view(np.uint8)
    planes = planes.reshape(columns.shape[1], len(values), columns.dtype.itemsize).transpose(0, 2, 1)
    return base64.b64encode(gzip.compress(np.ascontiguousarray(planes).tobytes(), 6, mtime=0)).decode()


def picture(embedding: Any, labels: np.ndarray | None, size: int = PICTURE_PIXELS) -> str | None:
    """Return a picture of an embedding as PNG in base64, None without the extra `figures`."""
    if find_spec("PIL") is None or find_spec("matplotlib") is None:
        return None
    file = io.BytesIO()
    drawn_embedding(embedding, labels, size)[0].save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()
