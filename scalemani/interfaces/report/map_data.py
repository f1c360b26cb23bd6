"""What the map on a page is made of: positions as 16-bit integers, labels as codes, tiles where points are many."""

import base64
import gzip
import io
import json
import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from scalemani.io.export.writers import blocks
from scalemani.io.figures import checked_look, drawn_embedding
from scalemani.io.figures.look import RAMP_STEPS, VIRIDIS, colours_of_labels, ramp
from scalemani.io.figures.panels import GOLDEN_RATIO, SHADING, column_limits
from scalemani.io.sources import PointsSource, open_points
from scalemani.kernels.arrays.draws import sample_rows

if TYPE_CHECKING:
    from scalemani.interfaces.report.opened import ReportedRun

MOST_POINTS = 2_000_000  # all drawn, one by one
SAMPLED_POINTS = 1_000_000  # of more: drawn on top of tiles in which all are counted
MOST_AXES = 3  # to choose two of
PLANE_POINTS = 1_000_000  # beyond, the first two axes alone: each more is 2.6 bytes a point
STEPS = 2**16 - 1  # of a position
MOST_CLASSES = 4096  # of a column of texts: no legend is read to the end of more
FEW_CLASSES = 256  # beyond, texts that are different for more than half of the points are identifiers
MOST_TEXT_BYTES = 8_000_000  # of a column of identifiers in a page, compressed and in base64: 100,000 long ones
LEVELS = 255  # of values along a ramp; one more code is for points without a value
SHOWN_LETTERS = 120  # of a text
MOST_LINKED = 200_000  # points whose neighbours a page holds: some ten bytes each
NEIGHBORS = 6  # of each
LISTED_ROWS = 65_536  # of neighbours that are read at once
SIDE = 2048  # tiles a side of the finest grid: what every WebGL 2 takes as a texture
RESOLUTIONS = 4  # grids; each has half the tiles a side of the one before, down to three pixels or so a tile
PICTURE_PIXELS = 900


class MapData(NamedTuple):
    """A map for a page.

    Attributes
    ----------
    description : what a script reads as JSON: counts, limits, columns
    arrays : compressed bytes in base64 by name: `positions`, `column-0` ..., `texts-0` ... of identifiers; `rows`
        where not every row is drawn; `doubtful` where doubt was measured; `neighbors` where the run has a graph; where
        there are tiles, `counts` of the finest ones and what they show, `tiles-0` ...
    picture : a PNG in base64 that stands in where the map cannot be drawn, and on paper; None without Pillow
    """

    description: dict[str, Any]
    arrays: dict[str, str]
    picture: str | None


def tile_counts(places: np.ndarray, codes: np.ndarray, n_codes: int, side: int) -> sparse.csr_array:
    """Return how many points each tile holds of each code: (side^2, n_codes), row by row.

    Points are at places (n, 2) uint16, across and up, and have codes (n,); those of no label have one beyond.
    """
    labelled = codes < n_codes
    tiles = (places[labelled].astype(np.int32) * side >> 16) @ np.array([1, side], np.int32)
    counts = np.ones(len(tiles), np.int32)
    return sparse.csr_array((counts, (tiles, codes[labelled])), (side**2, n_codes))


def tile_codes(counts: sparse.csr_array, column: Mapping[str, Any], dtype: np.dtype) -> np.ndarray:
    """Return the codes of all tiles by a column, those of the finest grid first, row by row, and of coarser ones.

    A tile shows the class that most of its labelled points have, the first of equals, or the mean of their values; on
    each grid counted anew, of `tile_counts`: what a coarse tile shows is not that of the finer ones in it. Tiles
    without a labelled point have the code of points without a label, or the first where there are none.
    """
    side, grids = math.isqrt(counts.shape[0]), []
    for resolution in range(RESOLUTIONS):
        if resolution:
            counts, side = quartered(side) @ counts, side // 2
        counts.sum_duplicates()  # sorts the codes of a tile
        shown = np.full(side**2, column["missing"] or 0, dtype)
        if column["classes"] is None:
            n_labelled = counts.sum(axis=1)
            tiles = np.flatnonzero(n_labelled)
            shown[tiles] = np.rint((counts @ np.arange(LEVELS))[tiles] / n_labelled[tiles])
        else:
            entries = counts.tocoo()
            most = np.flatnonzero(entries.data == counts.max(axis=1).toarray().ravel()[entries.row])[::-1]
            shown[entries.row[most]] = entries.col[most]  # of equals the last that is written, the first code
        grids.append(shown)
    return np.concatenate(grids)


def map_data(
    run: "ReportedRun",
    labels: Mapping[str, np.ndarray],
    most_points: int = MOST_POINTS,
    sampled_points: int = SAMPLED_POINTS,
    positions: Any = None,
) -> MapData | None:
    """Return the map of a run with labels or values (N,) of its points by name; None where it has no embedding.

    Of more points than `most_points`, so many are drawn on top of tiles in which all are counted. Points are drawn at
    other `positions` (N, d) where there are some, or at those of a file.
    """
    if run._n_drawn is None:
        return None
    embedding = run._drawn()
    places = embedding.at(positions)
    source, columns = open_points(places), embedding.columns(labels)
    n_points = source.shape[0]
    n_drawn = n_points if n_points <= most_points else sampled_points
    drawn = sample_rows(run.params.seed, "report/map", n_points, n_drawn)
    data = map_of(source, columns, drawn, embedding.rows, axis="component" if positions is None else "position")
    if embedding.doubtful is not None and positions is None:
        data = with_doubtful(data, embedding.doubtful()[drawn])
    if n_drawn == n_points <= MOST_LINKED and embedding.neighbors is not None:
        data = with_neighbors(data, embedding.neighbors())
    return data._replace(picture=picture(places, next(iter(columns.values()), None)))


def with_doubtful(data: MapData, doubtful: np.ndarray) -> MapData:
    """Return a map with a box by which points are ringed, of the drawn ones (M,) that could as well lie elsewhere."""
    description = data.description | {"doubtful": int(np.count_nonzero(doubtful))}
    return data._replace(description=description, arrays=data.arrays | {"doubtful": packed(doubtful.astype(np.uint8))})


def with_neighbors(data: MapData, neighbors: Any) -> MapData:
    """Return a map of all points with the nearest of their neighbours (N, k), in order; -1 and N stand for none."""
    n_points = neighbors.shape[0]
    width = min(NEIGHBORS, neighbors.shape[1])
    if n_points != data.description["points"]:
        return data
    nearest = np.concatenate(
        [np.asarray(neighbors[start : start + LISTED_ROWS])[:, :width] for start in range(0, n_points, LISTED_ROWS)]
    )
    table = np.where(nearest < 0, n_points, nearest).astype(np.uint16 if n_points < STEPS else np.uint32)
    description = data.description | {"neighbors": width}
    return data._replace(description=description, arrays=data.arrays | {"neighbors": packed(table)})


def map_of(
    source: PointsSource,
    columns: Mapping[str, np.ndarray],
    drawn: np.ndarray,
    rows: np.ndarray | None = None,
    side: int = SIDE,
    text_bytes: int = MOST_TEXT_BYTES,
    axis: str = "component",
) -> MapData:
    """Return the map of an embedding (N, d) with labels or values (N,) by name, without a picture.

    `drawn` (M,) are the rows that are drawn, ascending; where M < N, tiles count all points. `rows` (N,) are the
    numbers of the points on the page, None where they are those of the rows; `axis` is what a column is called.
    """
    n_points = source.shape[0]
    tiled = len(drawn) < n_points
    n_axes = min(source.shape[1], 2 if tiled or n_points > PLANE_POINTS else MOST_AXES)  # tiles lie in a plane of two
    limits, axes = column_limits(source, n_axes), [f"{axis} {number + 1}" for number in range(n_axes)]
    if n_axes == 1:  # is spread over a second one
        limits, axes = np.append(limits, [[0.0, 1.0]], axis=0), [*axes, "nothing"]
    shown = {name: values for name, values in columns.items() if not is_identifier(values)}
    encoded = [encoded_column(name, values) for name, values in shown.items()]
    counted = [(np.broadcast_to(np.uint8(0), n_points), 1)]  # all points
    counted += [(codes, len(column["classes"] or range(LEVELS))) for column, codes in encoded]
    table, n_outside, counts = quantised(source, limits, drawn, counted if tiled else [], side)
    arrays = {"positions": packed(table)}
    arrays |= {f"column-{number}": packed(codes[drawn]) for number, (_, codes) in enumerate(encoded)}
    if tiled:
        arrays["counts"] = packed(counts[0].toarray().astype(np.uint32))
        for number, (tiles, (column, codes)) in enumerate(zip(counts[1:], encoded, strict=True)):
            arrays[f"tiles-{number}"] = packed(tile_codes(tiles, column, codes.dtype))
    texts = {name: packed_texts(values[drawn]) for name, values in columns.items() if name not in shown}
    listed = [name for name, packed in texts.items() if len(packed) <= text_bytes]
    arrays |= {f"texts-{number}": texts[name] for number, name in enumerate(listed)}
    if rows is not None or tiled:
        numbers = drawn if rows is None else rows[drawn]
        arrays["rows"] = packed(np.diff(numbers, prepend=0).astype(np.uint32))
    description = {
        "points": len(drawn),
        "of": n_points,
        "outside": n_outside,
        "axes": [
            {"name": name, "low": low, "high": high} for name, (low, high) in zip(axes, limits.tolist(), strict=True)
        ],
        "columns": [column for column, _ in encoded],
        "texts": listed,
        "left_out": [name for name in texts if name not in listed],
        "neighbors": 0,
        "doubtful": None,
        "tiles": {"side": side, "resolutions": RESOLUTIONS} if tiled else None,
        "shading": SHADING,
    }
    return MapData(description, arrays, None)


def is_identifier(values: np.ndarray) -> bool:
    """Return whether labels (N,) are texts of which there are too many for classes."""
    most = min(MOST_CLASSES, max(FEW_CLASSES, len(values) // 2))
    return values.dtype.kind == "U" and len(np.unique(values)) > most


def quantised(
    source: PointsSource, limits: np.ndarray, drawn: np.ndarray, counted: list[tuple[np.ndarray, int]], side: int
) -> tuple[np.ndarray, int, list[Any]]:
    """Return positions (M, d) uint16 of the drawn rows (M,) within limits (d, 2), and the number of points outside.

    Points outside lie on the rim. The last are the `tile_counts` of all points by each of the codes (N,) that are
    `counted`, with how many codes there are. Of one component, the second axis spreads points evenly.
    """
    table, n_outside, counts = np.empty((len(drawn), len(limits)), np.uint16), 0, [0 for _ in counted]
    for start, rows in blocks(source):
        numbers = np.arange(start, start + len(rows))
        spread = np.column_stack([rows, numbers * GOLDEN_RATIO % 1]) if rows.shape[1] == 1 else rows
        shares = (spread[:, : len(limits)] - limits[:, 0]) / np.ptp(limits, axis=1)
        n_outside += int(np.count_nonzero(((shares < 0) | (shares > 1)).any(axis=1)))
        steps = np.rint(np.clip(shares, 0, 1) * STEPS).astype(np.uint16)
        first, last = np.searchsorted(drawn, [start, start + len(rows)])
        table[first:last] = steps[drawn[first:last] - start]
        for number, (codes, n_codes) in enumerate(counted):
            counts[number] += tile_counts(steps[:, :2], codes[numbers], n_codes, side)
    return table, n_outside, counts


def encoded_column(name: str, values: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """Return the description of a column and the code (N,) of each point: that of its class, or of its value."""
    colours = colours_of_labels(values, len(values))
    index, table, missing = colours.index, colours.colours, colours.missing
    if not colours.classes:
        index = np.where(index == missing, LEVELS, index * (LEVELS - 1) // (RAMP_STEPS - 1))
        table, missing = np.concatenate([ramp(VIRIDIS, LEVELS), table[-1:]]), LEVELS
    codes = index.astype(np.uint8 if len(table) <= 256 else np.uint16)
    described = {
        "name": name,
        "classes": list(colours.classes) or None,
        "limits": colours.limits,
        "missing": missing,
        "counts": np.bincount(codes, minlength=len(table)).tolist(),
        "colours": [f"#{bytes(colour).hex()}" for colour in np.rint(table * 255).astype(np.uint8)],
    }
    return described, codes


def quartered(side: int) -> sparse.csr_array:
    """Return the matrix (side^2 / 4, side^2) that adds up the tiles of a grid which lie in one of the next."""
    half = sparse.kron(sparse.eye_array(side // 2, dtype=np.int32), np.ones((1, 2), np.int32))
    return sparse.csr_array(sparse.kron(half, half))


def packed(values: np.ndarray) -> str:
    """Return little-endian integers as compressed bytes in base64, all first bytes before all second ones.

    Bytes of one kind next to each other compress better: the high ones of positions are alike, the low ones noise.
    """
    columns = values.reshape(len(values), -1)
    planes = np.ascontiguousarray(columns.T).astype(columns.dtype.newbyteorder("<")).view(np.uint8)
    planes = planes.reshape(columns.shape[1], len(values), columns.dtype.itemsize).transpose(0, 2, 1)
    return compressed(np.ascontiguousarray(planes).tobytes())


def packed_texts(values: np.ndarray) -> str:
    """Return the beginnings of texts (N,) as a compressed list of JSON in base64."""
    beginnings = [text if len(text) <= SHOWN_LETTERS else f"{text[: SHOWN_LETTERS - 1]}…" for text in values.tolist()]
    return compressed(json.dumps(beginnings, ensure_ascii=False).encode("utf-8", "replace"))


def compressed(content: bytes) -> str:
    """Return bytes as a page holds them: compressed, in base64."""
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


def picture(embedding: Any, labels: np.ndarray | None, size: int = PICTURE_PIXELS) -> str | None:
    """Return a picture of an embedding as PNG in base64, None without the extra `figures`."""
    if not all(map(find_spec, ("PIL", "matplotlib"))):
        return None
    file = io.BytesIO()
    drawn_embedding(embedding, labels, checked_look(size))[0].save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()
