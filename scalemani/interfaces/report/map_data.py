"""What the map on a page is made of: positions as 16-bit integers, labels as codes, tiles where points are many."""

import base64
import gzip
import io
import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from scalemani.io.export.writers import blocks
from scalemani.io.figures import checked_look, drawn_embedding
from scalemani.io.figures.look import VIRIDIS, colours_of_labels, ramp
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
MOST_TEXT_BYTES = 1_000_000  # of a column of identifiers in a page, compressed and in base64
LEVELS = 255  # of values along a ramp; one more code is for points without a value
SHOWN_LETTERS = 120  # of a text
SIDE = 2048  # tiles a side of the finest grid: what every WebGL 2 takes as a texture
RESOLUTIONS = 4  # grids; each has half the tiles a side of the one before, down to three pixels or so a tile
PICTURE_PIXELS = 900


class MapData(NamedTuple):
    """A map for a page.

    Attributes
    ----------
    description : what a script reads as JSON: counts, limits, columns
    arrays : compressed bytes in base64 by name: `positions`, `column-0` ..., `texts-0` ... of identifiers; `rows`
        where not every row is drawn; where there are tiles, `counts` of the finest ones and what they show, `tiles-0`
        ...
    picture : a PNG in base64 that stands in where the map cannot be drawn, and on paper; None without Pillow
    """

    description: dict[str, Any]
    arrays: dict[str, str]
    picture: str | None


class Tiles:
    """Every point counted in tiles, and what the points of each tile are by each column of labels or values.

    Counts sum up to the points. A tile shows the class that most of its labelled points have, or the mean of their
    values; on each of the RESOLUTIONS grids counted anew: what a coarse tile shows is not that of the finer ones in it.
    """

    def __init__(self, n_classes: list[int | None], side: int = SIDE) -> None:
        """Take the classes of each column, None for one of values, and the tiles a side of the finest grid."""
        self.n_classes, self.side = n_classes, side
        self.counts = np.zeros(side**2, np.int64)
        self.tables = [
            np.zeros((side**2, 2)) if number is None else sparse.csr_array((side**2, number), dtype=np.int64)
            for number in n_classes
        ]  # sums of levels and how many points have one; or points by class

    def add(self, places: np.ndarray, codes: list[np.ndarray]) -> None:
        """Count points at places (n, 2) uint16, across and up, with codes (n,) by each column."""
        cells = places.astype(np.int64) * self.side >> 16
        tiles = cells[:, 1] * self.side + cells[:, 0]
        self.counts += np.bincount(tiles, minlength=self.side**2)
        for number, (n_classes, found) in enumerate(zip(self.n_classes, codes, strict=True)):
            has_label = found < (LEVELS if n_classes is None else n_classes)
            labelled, known = tiles[has_label], found[has_label]
            if n_classes is None:
                for k, weights in enumerate((known, None)):
                    self.tables[number][:, k] += np.bincount(labelled, weights, self.side**2)
            else:
                pairs = labelled.astype(np.int32), known.astype(np.int32)
                self.tables[number] += sparse.csr_array(
                    (np.ones(len(known), np.int64), pairs), self.tables[number].shape
                )

    def shown(self, number: int, dtype: np.dtype, missing: int | None) -> np.ndarray:
        """Return the codes of all tiles by a column, those of the finest grid first, row by row, and of coarser ones.

        Tiles without a labelled point have the code of points without a label, or the first where there are none.
        """
        table, side, grids = self.tables[number], self.side, []
        for resolution in range(RESOLUTIONS):
            if resolution:
                table, side = quartered(side) @ table, side // 2
            grids.append(np.full(side**2, missing or 0, dtype))
            tiles, codes = mean_codes(table) if self.n_classes[number] is None else most_frequent(table)
            grids[-1][tiles] = codes
        return np.concatenate(grids)


def map_data(run: "ReportedRun", labels: Mapping[str, np.ndarray]) -> MapData | None:
    """Return the map of a run with labels or values (N,) of its points by name; None where it has no embedding."""
    if run._n_drawn is None:
        return None
    embedding = run._drawn()
    source, columns = open_points(embedding.positions), embedding.columns(labels)
    n_points = source.shape[0]
    n_drawn = n_points if n_points <= MOST_POINTS else SAMPLED_POINTS
    drawn = sample_rows(run.params.seed, "report/map", n_points, n_drawn)
    found = map_of(source, columns, drawn, embedding.rows)
    return found._replace(picture=picture(embedding.positions, next(iter(columns.values()), None)))


def map_of(
    source: PointsSource,
    columns: Mapping[str, np.ndarray],
    drawn: np.ndarray,
    rows: np.ndarray | None = None,
    side: int = SIDE,
    text_bytes: int = MOST_TEXT_BYTES,
) -> MapData:
    """Return the map of an embedding (N, d) with labels or values (N,) by name, without a picture.

    `drawn` (M,) are the rows that are drawn, ascending; where M < N, tiles count all points. `rows` (N,) are the
    numbers of the points on the page, None where they are those of the rows.
    """
    n_points = source.shape[0]
    solid = len(drawn) == n_points <= PLANE_POINTS  # tiles lie in the plane of two axes
    n_axes = min(source.shape[1], MOST_AXES if solid else 2)
    limits = column_limits(source, n_axes)
    shown = {name: values for name, values in columns.items() if not is_identifier(values)}
    described = [encoded_column(name, values) for name, values in shown.items()]
    widths = [None if column["classes"] is None else len(column["classes"]) for column, _ in described]
    tiles = Tiles(widths, side) if len(drawn) < n_points else None
    table, n_outside = quantised(source, limits, drawn, [codes for _, codes in described], tiles)
    arrays = {"positions": packed(table)}
    arrays |= {f"column-{number}": packed(codes[drawn]) for number, (_, codes) in enumerate(described)}
    if tiles is not None:
        arrays["counts"] = packed(tiles.counts.astype(np.uint32))
        for number, (column, codes) in enumerate(described):
            arrays[f"tiles-{number}"] = packed(tiles.shown(number, codes.dtype, column["missing"]))
    texts = {name: packed_texts(values[drawn]) for name, values in columns.items() if name not in shown}
    told = [name for name, packed in texts.items() if len(packed) <= text_bytes]
    arrays |= {f"texts-{number}": texts[name] for number, name in enumerate(told)}
    if rows is not None or tiles is not None:
        numbers = drawn if rows is None else rows[drawn]
        arrays["rows"] = packed(np.diff(numbers, prepend=0).astype(np.uint32))
    description = {
        "points": len(drawn),
        "of": n_points,
        "outside": n_outside,
        "axes": axis_names(source.shape[1], limits),
        "columns": [column for column, _ in described],
        "texts": told,
        "left_out": [name for name in texts if name not in told],
        "tiles": None if tiles is None else {"side": side, "resolutions": RESOLUTIONS},
        "shading": SHADING,
    }
    return MapData(description, arrays, None)


def is_identifier(values: np.ndarray) -> bool:
    """Return whether labels (N,) are texts of which there are too many for classes."""
    most = min(MOST_CLASSES, max(FEW_CLASSES, len(values) // 2))
    return values.dtype.kind == "U" and len(np.unique(values)) > most


def axis_names(width: int, limits: np.ndarray) -> list[dict[str, Any]]:
    """Return the axes to choose from; one dimension alone is spread over a second one that means nothing."""
    axes = [
        {"name": f"component {number + 1}", "low": float(low), "high": float(high)}
        for number, (low, high) in enumerate(limits)
    ]
    return axes if width > 1 else [*axes, {"name": "nothing", "low": 0.0, "high": 1.0}]


def quantised(
    source: PointsSource, limits: np.ndarray, drawn: np.ndarray, codes: list[np.ndarray], tiles: Tiles | None
) -> tuple[np.ndarray, int]:
    """Return positions (M, d) uint16 of the drawn rows (M,) within limits (d, 2), and the number of points outside.

    Points outside lie on the rim. `tiles`, if any, count all points with their codes (N,) of each column.
    """
    table = np.empty((len(drawn), max(2, len(limits))), np.uint16)
    n_outside = 0
    for start, rows in blocks(source):
        stop = start + len(rows)
        shares = (rows[:, : len(limits)] - limits[:, 0]) / (limits[:, 1] - limits[:, 0])
        n_outside += int(np.count_nonzero(((shares < 0) | (shares > 1)).any(axis=1)))
        if len(limits) == 1:
            shares = np.column_stack([shares, np.arange(start, stop) * GOLDEN_RATIO % 1])
        steps = np.rint(np.clip(shares, 0, 1) * STEPS).astype(np.uint16)
        first, last = np.searchsorted(drawn, [start, stop])
        table[first:last] = steps[drawn[first:last] - start]
        if tiles is not None:
            tiles.add(steps[:, :2], [column[start:stop] for column in codes])
    return table, n_outside


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
        "limits": found.limits,
        "missing": missing,
        "counts": np.bincount(codes, minlength=len(table)).tolist(),
        "colours": ["#" + bytes(np.rint(colour * 255).astype(np.uint8)).hex() for colour in table],
    }
    return described, codes


def quartered(side: int) -> sparse.csr_array:
    """Return the matrix (side^2 / 4, side^2) that adds up the tiles of a grid which lie in one of the next."""
    half = sparse.kron(sparse.eye_array(side // 2, dtype=np.int64), np.ones((1, 2), np.int64))
    return sparse.csr_array(sparse.kron(half, half))


def mean_codes(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tiles (t,) with values, and the mean level (t,) of each, of sums and counts (n, 2)."""
    tiles = np.flatnonzero(table[:, 1])
    return tiles, np.rint(table[tiles, 0] / table[tiles, 1]).astype(np.int64)


def most_frequent(table: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the tiles (t,) with labelled points, and the most frequent class (t,) of each; the first of equals."""
    table.sum_duplicates()  # sorts the classes of a tile
    tiles = np.flatnonzero(np.diff(table.indptr))
    if not len(tiles):
        return tiles, tiles
    starts, sizes = table.indptr[tiles], np.diff(table.indptr)[tiles]
    most = np.flatnonzero(table.data == np.repeat(np.maximum.reduceat(table.data, starts), sizes))
    return tiles, table.indices[most[np.searchsorted(most, starts)]]


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
    found = [text if len(text) <= SHOWN_LETTERS else f"{text[: SHOWN_LETTERS - 1]}…" for text in values.tolist()]
    return compressed(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))


def compressed(content: bytes) -> str:
    """Return bytes as a page holds them: compressed, in base64."""
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


def picture(embedding: Any, labels: np.ndarray | None, size: int = PICTURE_PIXELS) -> str | None:
    """Return a picture of an embedding as PNG in base64, None without the extra `figures`."""
    if find_spec("PIL") is None or find_spec("matplotlib") is None:
        return None
    file = io.BytesIO()
    drawn_embedding(embedding, labels, checked_look(size))[0].save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()
