"""One pass over the source before anything is written: what the points are, and that they can be used."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.limits import check_limit
from scalemani.config.params import LANDMARKS
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.config.units import format_bytes
from scalemani.config.validation import check_finite_block, check_magnitude, check_shape
from scalemani.engine.context import PointsInput
from scalemani.engine.memory_model import Batch, Memory
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, MemoryBudgetError
from scalemani.io.sources import NeighborLists, PointsSource, PrecomputedAffinities, names_of
from scalemani.io.sources.base import read_rows
from scalemani.io.sources.side_data import SideData, points_of, side_data_of
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.equal_rows import DIGEST_WORDS, digests_of_rows
from scalemani.stages.arrays.points import UNREAD, stored_parts, tile_digests
from scalemani.store.arrays import encoded_bytes
from scalemani.store.objects import digest

FAR = 1000.0  # times as far from the median as most rows: beyond what heavy tails do in a block
MOST = 0.9  # of the rows
BLOCK_BYTES = 16 * 2**20
BLOCKS_IN_MEMORY = 128  # at least, of the points: what a task makes of its block takes some ten times as much
COPIES_AT_WORK = 3  # a block, and the buffers of what reads and digests it
LEAST_BLOCKS = 8  # small data are cut too, so that every core has work
MOST_BLOCK_ROWS = 65_536
SHOWN_CLASSES = 5
LEAST_POINTS = 3  # of which a graph and an embedding say something
SAMPLED_POINTS, LEAST_SAMPLED = 8192, 1024  # by which the search for neighbours is chosen
SAMPLED_BYTES = 32 * 2**20  # at most
SAMPLING_MARGIN = 1.1  # of the encoded size of a tile a block, for that of all tiles


class Outlier(NamedTuple):
    """A row, the column in which it lies far out, its value there, and how many times as far out as most rows."""

    row: int
    column: int
    value: float
    times: float


def outlying_row(rows: np.ndarray, minima: np.ndarray, maxima: np.ndarray, first_row: int = 0) -> Outlier | None:
    """Return the row that lies farthest from the median of the widest column, None where it is not far out.

    Parameters
    ----------
    rows : (n, D) real, finite, numbered from `first_row` on
    minima, maxima : (D,) of the columns
    """
    with np.errstate(over="ignore"):
        column = int(np.argmax(np.asarray(maxima, np.float64) - np.asarray(minima, np.float64)))
        values = rows[:, column].astype(np.float64)
        away = np.abs(values - np.median(values))
        usual, row = float(np.quantile(away, MOST, method="lower")), int(np.argmax(away))
        times = float(away[row]) / usual if usual else 0.0
    return Outlier(first_row + row, column, float(values[row]), times) if times > FAR else None


class SeenRows(NamedTuple):
    """What was seen of some rows.

    Digests of tiles, least and largest value of each feature (D,), how many rows of a sample take how many bytes
    as they are stored, the nonzeros of sparse rows, the dense row that lies farthest out in its block, if one does, the
    sampled rows of each block, and `distinct_digests` of the rows.
    """

    tiles: list[str]
    minima: np.ndarray
    maxima: np.ndarray
    sampled_rows: int
    sampled_bytes: int
    nonzeros: int
    outlier: Outlier | None
    sample: list[Points]
    distinct: np.ndarray


@dataclass(frozen=True)
class Survey:
    """What one pass over the source measured: all that later steps know of the points.

    `points` are the source with what the stage `points` checks and stores of it: digests by tile, UNREAD of what the
    survey of an earlier run has read, constant features, and the extremes of all features.
    `content` identifies the points in any file, of points that were appended to a run those behind it;
    `stored_row_bytes` is about what one takes as stored;
    `distinct_points` are counted up to the landmarks of a run by default; where there are as many, it is all points.
    `affinity_components` are the numbers of points in each component of precomputed affinities, largest first.
    `side` is what accompanies the points; `sample` (m, D) some of them, as read, None of few or appended ones.
    """

    dimensions: Dimensions
    points: PointsInput = field(compare=False, repr=False)
    content: str
    stored_row_bytes: float
    distinct_points: int
    side: SideData = field(default_factory=SideData)
    affinity_components: tuple[int, ...] = ()
    sample: Points | None = field(default=None, compare=False, repr=False)


def default_block_rows(n_points: int, row_bytes: int, memory: int | None = None) -> int:
    """Return the rows a block: a multiple of the tile, some 16 MiB of points or less where a process has little memory.

    There are some blocks for every core.
    """
    block_bytes = BLOCK_BYTES if memory is None else min(BLOCK_BYTES, memory // BLOCKS_IN_MEMORY)
    rows = min(block_bytes // max(row_bytes, 1), -(-n_points // LEAST_BLOCKS), MOST_BLOCK_ROWS)
    return max(TILE_ROWS, rows // TILE_ROWS * TILE_ROWS)


def checked_block_rows(block_rows: int, n_points: int) -> int:
    """Return the requested rows a block, no more than hold all points."""
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1 or block_rows % TILE_ROWS:
        raise ConfigError(f"block_rows must be a multiple of {TILE_ROWS} above zero, got {block_rows!r}")
    return min(block_rows, -(-n_points // TILE_ROWS) * TILE_ROWS)


def survey(
    source: PointsSource, executor: Executor, block_rows: int | None = None, before: Mapping[str, Any] | None = None
) -> Survey:
    """Read all points once: digests by tile, finiteness, constant features.

    Parameters
    ----------
    source : (N, D), the points
    block_rows : rows a block; None chooses them
    before : the extremes of the first points, as these were stored: of blocks of them alone, no more is read again
        than shows that there are as many distinct points as landmarks by default

    Raises
    ------
    DataError
        For NaN, infinity, equal points and values whose squared distances overflow or vanish, before anything is
        written.
    """
    check_shape(source.shape, source.description, LEAST_POINTS)
    (n_points, n_features), dtype = source.shape, np.dtype(source.dtype)
    dimensions = dimensions_of(source, executor, block_rows)
    note_changes(source, dimensions, block_rows, executor)
    n_before = 0 if before is None else before["n_points"]
    first = n_before // dimensions.block_rows
    sampled = np.empty(0, np.int64) if before is not None else sampled_points(dimensions)
    look, blocks = functools.partial(survey_block, source, dimensions, sampled), range(first, dimensions.n_blocks)
    executor.progress.start("reading", len(blocks))
    if executor.reads_on_workers(source):
        seen = executor.fold(
            look, combine_seen, blocks, batch=Batch("reading", "reading", memory_of_reading(dimensions))
        )
    else:
        seen = executor.fold_here(look, combine_seen, blocks, source.sequential)
    tiles = [UNREAD] * (first * dimensions.block_rows // TILE_ROWS) + seen.tiles
    minima, maxima = seen.minima, seen.maxima
    if before is not None:
        minima = np.minimum(np.array(before["minima"], dtype), minima)
        maxima = np.maximum(np.array(before["maxima"], dtype), maxima)
    # Of lists and affinities, no column is a coordinate.
    side, bare_source = side_data_of(source), points_of(source)
    instead = isinstance(bare_source, NeighborLists | PrecomputedAffinities)
    constant = 0 if instead else check_magnitude(minima, maxima, dtype)
    if side.landmarks is not None:
        lowest, highest = side.landmarks.points.min(axis=0), side.landmarks.points.max(axis=0)
        both = np.minimum(minima, lowest), np.maximum(maxima, highest)
        check_magnitude(*both, np.float64, "points and landmarks")
    warn_of_values(source, constant, None if instead else seen.outlier, executor)
    kind = f"{dtype.str} sparse" if dimensions.sparse else dtype.str
    content = digest(f"{n_points} {n_features} {kind} {' '.join(tiles[n_before // TILE_ROWS :])}".encode())
    stored = SAMPLING_MARGIN * seen.sampled_bytes / seen.sampled_rows
    distinct = with_earlier_rows(seen.distinct, source, dimensions.rows(first)[0], dimensions.sparse)
    n_distinct = len(distinct) if len(distinct) < LANDMARKS else n_points
    if dimensions.sparse:
        dimensions = replace(dimensions, nonzeros=seen.nonzeros)
    components = tuple(bare_source.component_sizes.tolist()) if isinstance(bare_source, PrecomputedAffinities) else ()
    extremes = {"n_points": n_points, "minima": minima.tolist(), "maxima": maxima.tolist()}
    points = PointsInput(source, tuple(tiles), constant, extremes)
    has_sample = len(sampled) and not instead
    sample = None
    if has_sample:
        sample = sp.vstack(seen.sample, "csr") if dimensions.sparse else np.concatenate(seen.sample)
    return Survey(dimensions, points, content, stored, n_distinct, side, components, sample)


def memory_of_reading(dimensions: Dimensions) -> Memory:
    """Return what reading takes: a block."""
    return Memory(task={"points of a block": COPIES_AT_WORK * dimensions.block_rows * dimensions.row_bytes})


def sampled_points(dimensions: Dimensions) -> np.ndarray:
    """Return the rows (m,), ascending, that the sample has of the points; none of few points, or of too wide ones."""
    few, count = NeighborsParams.exact_below, min(SAMPLED_POINTS, SAMPLED_BYTES // max(1, dimensions.row_bytes))
    if dimensions.n_points <= few or count < LEAST_SAMPLED:
        return np.empty(0, np.int64)
    return sample_rows(0, "survey/sample", dimensions.n_points, count)


def dimensions_of(source: PointsSource, executor: Executor, block_rows: int | None) -> Dimensions:
    """Return the shape of points and their blocks, of sparse ones with about how many nonzeros they have.

    Refuses what `check_dimensions` does, before any row is read.
    """
    n_points, n_features = source.shape
    unblocked = Dimensions(n_points, n_features, np.dtype(source.dtype).name, TILE_ROWS, source.nonzeros)
    if block_rows is None:
        rows = default_block_rows(n_points, unblocked.row_bytes, executor.least_memory)
    else:
        rows = checked_block_rows(block_rows, n_points)
    blocks = replace(unblocked, block_rows=rows)
    check_dimensions(blocks, executor, source)
    return blocks


def note_changes(source: PointsSource, dimensions: Dimensions, block_rows: int | None, executor: Executor) -> None:
    """Note what differs from the input, though no result depends on it."""
    if block_rows is not None and block_rows > dimensions.block_rows:
        executor.progress.note(
            f"a block has {dimensions.block_rows} rows, which hold all {dimensions.n_points} points: {block_rows} were "
            "requested"
        )
    if getattr(source, "input_dtype", None) == np.bool_:
        executor.progress.note(f"Booleans are stored as {dimensions.dtype} 0 and 1")


def warn_of_values(source: PointsSource, constant: int, outlier: Outlier | None, executor: Executor) -> None:
    """Report constant features, the row that lies farthest out, the remark of the source, classes of one member."""
    side = side_data_of(source)
    if constant:
        executor.progress.note(
            f"{constant} of {source.shape[1]} features are constant: they add nothing to any distance"
        )
    if outlier is not None:
        merged = side.duplicates
        row = outlier.row if merged is None else int(np.flatnonzero(merged.points_of_rows == outlier.row)[0])
        executor.progress.warn(
            f"row {row} is {outlier.value:.3g} in column {outlier.column}, {outlier.times:.0e} times as far from the "
            f"median as {MOST:.0%} of the rows read with it: look whether it is an error, and leave it out or scale "
            "the column if so"
        )
    if remark := source.remark:
        executor.progress.warn(remark)
    if side.labels is not None and (lonely := side.labels.lonely):
        executor.progress.warn(
            f"{len(lonely)} classes have one member and add nothing to what varies within classes: "
            f"{', '.join(lonely[:SHOWN_CLASSES])}"
        )


def check_dimensions(dimensions: Dimensions, executor: Executor, source: PointsSource) -> None:
    """Refuse more points and blocks than there may be, and rows of which no tile can be stored or read.

    A source that can read some of its pieces only whole needs room for the largest of them too.
    """
    check_limit("points", dimensions.n_points, source.description)
    check_limit("blocks", dimensions.n_blocks, source.description)
    check_limit("dense row", dimensions.row_bytes, f"a row of {source.description}")
    check_limit(
        "column names", len(json.dumps(names_of(source), indent=1)), f"the list of columns of {source.description}"
    )
    least, whole = executor.least_memory, source.held_bytes
    need = COPIES_AT_WORK * min(dimensions.n_points, TILE_ROWS) * dimensions.row_bytes
    if least is not None and need + whole > least:
        pieces = (
            f" in addition to its largest chunk, which is read whole and takes {format_bytes(whole)}" if whole else ""
        )
        raise MemoryBudgetError(
            f"reading {TILE_ROWS} rows of {dimensions.row_bytes} bytes at a time from {source.description} takes "
            f"{format_bytes(need)}{pieces}, a process may take {format_bytes(least)}: raise --memory, give fewer "
            "features, or store the points in smaller chunks, those of a compressed .npz by numpy.savez"
        )


def survey_block(source: PointsSource, dimensions: Dimensions, sampled: np.ndarray, block: int) -> SeenRows:
    """Return the digests of a block's tiles, the extremes of its features, the encoded size of its first tile.

    And those of the `sampled` rows (m,), ascending, that lie in it.
    """
    start, stop = dimensions.rows(block)
    rows = read_rows(source, start, stop, dimensions.sparse)
    check_finite_block(rows, start, columns=source.column_names)
    sample = rows[:TILE_ROWS]
    minima, maxima = rows.min(axis=0), rows.max(axis=0)
    if not sp.issparse(rows):
        outlier, stored = outlying_row(rows, minima, maxima, start), encoded_bytes(sample)
    else:
        minima, maxima = minima.toarray().ravel(), maxima.toarray().ravel()
        outlier, stored = None, sum(map(encoded_bytes, stored_parts(sample)))
    here = sampled[slice(*np.searchsorted(sampled, [start, stop]))] - start
    tiles, sampled_rows = tile_digests(rows), [rows[here]] if len(here) else []
    distinct = distinct_digests(rows)
    return SeenRows(tiles, minima, maxima, sample.shape[0], stored, int(rows.size), outlier, sampled_rows, distinct)


def distinct_digests(rows: Points) -> np.ndarray:
    """Return digests (m, 2) uint64 of rows that differ, no more than LANDMARKS: the first rows of most points."""
    distinct = np.empty((0, DIGEST_WORDS), np.uint64)
    for tile in slices(rows.shape[0], TILE_ROWS):
        distinct = joined_digests(distinct, digests_of_rows(rows[tile]))
        if len(distinct) == LANDMARKS:
            break
    return distinct


def joined_digests(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the digests of either (m, 2), each once, no more than LANDMARKS."""
    return np.unique(np.concatenate([one, other]), axis=0)[:LANDMARKS]


def with_earlier_rows(distinct: np.ndarray, source: PointsSource, n_earlier: int, sparse: bool) -> np.ndarray:
    """Return distinct digests (m, 2) of appended points with those of earlier ones, as far as LANDMARKS are too few."""
    for rows in slices(n_earlier, TILE_ROWS):
        if len(distinct) == LANDMARKS:
            break
        distinct = joined_digests(distinct, digests_of_rows(read_rows(source, rows.start, rows.stop, sparse)))
    return distinct


def combine_seen(one: SeenRows, other: SeenRows) -> SeenRows:
    """Return what was seen of consecutive blocks; the lists of the first are lengthened."""
    one.tiles.extend(other.tiles)
    one.sample.extend(other.sample)
    sampled = one.sampled_rows + other.sampled_rows, one.sampled_bytes + other.sampled_bytes
    extremes = np.minimum(one.minima, other.minima), np.maximum(one.maxima, other.maxima)
    outlier = max(one.outlier, other.outlier, key=lambda outlier: outlier.times if outlier else 0.0)
    distinct = joined_digests(one.distinct, other.distinct)
    return SeenRows(one.tiles, *extremes, *sampled, one.nonzeros + other.nonzeros, outlier, one.sample, distinct)
