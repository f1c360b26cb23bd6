"""More points into a finished run: a run of all points, which resumes from the results of the earlier one.

Results of the earlier run stay where they are, and it stays the run of the store until the run of all points is
complete. Its cells are reused, its neighbour lists are changed where appended points come nearer, its eigenvectors are
refined further, and a descent starts where it ended.
"""

from typing import Any, NamedTuple

import numpy as np

from scalemani.config.params import Parameters
from scalemani.config.stages import AUTO, INPUT_LISTS, INPUT_START, PRECOMPUTED, SIDE_DATA_LANDMARKS
from scalemani.engine.context import EXTREMES
from scalemani.engine.reading import ArrayReader
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources import PointsSource, map_points, open_points
from scalemani.io.sources.side_data import AccompaniedPoints, Duplicates, with_init, with_side_data
from scalemani.runs.aligning import align
from scalemani.runs.opened import Run, open_run
from scalemani.runs.outline import SEARCH, Earlier, outline_run
from scalemani.runs.plan import APPENDED, make_plan
from scalemani.runs.preprocessing.computed import computed_once
from scalemani.runs.preprocessing.gaps import Gaps, find_gaps, without_gaps
from scalemani.runs.survey import survey
from scalemani.runs.walk import open_for_writing, run_plan
from scalemani.stages.arrays.points import StoredClasses, StoredDuplicates, StoredPoints, StoredWeights, tile_digests
from scalemani.store.objects import RECORD_BYTES, digest


class Grown(NamedTuple):
    """A run after points were appended to it.

    Attributes
    ----------
    run : of all points, the appended ones last
    appended : how many rows these are, 0 where they were there before
    moved : how far the earlier points have moved, as a share of their spread, once both embeddings are aligned; None
        for a run without an embedding, and where nothing was appended
    """

    run: Run
    appended: int
    moved: float | None


class AppendedPoints(PointsSource):
    """The points of a run and those that follow: a source like any other."""

    def __init__(self, before: ArrayReader, n_before: int, new: PointsSource) -> None:
        self.shape = (n_before + new.shape[0], new.shape[1])
        self.dtype = new.dtype
        self.description = f"{n_before} points of the run and {new.description}"
        self.sequential = new.sequential
        self._before, self._n_before, self._new = before, n_before, new

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop): (stop - start, D)."""
        border = min(max(self._n_before, start), stop)
        before = self._before.gather(np.arange(start, border))
        if border == stop:
            return before
        new = self._new.read(border - self._n_before, stop - self._n_before)
        return new if border == start else np.concatenate([before, new])


def append_points(before: Run, points: Any, executor: Executor, freeze: bool = False) -> Grown:
    """Append points to a finished run; see `sm.append`.

    Parameters
    ----------
    before : the run
    points : (n, D), anything that `open_points` takes
    executor : where tasks run, and the budget
    freeze : whether a descent leaves the earlier points where they are
    """
    current = before.store.load_plan()
    check_growing(before, freeze)
    stored = points_of(before)
    new = map_points(before.metric, before.like_points(open_points(points, before.params.leaves_out_gaps)))
    check_like_run(before, new)
    with executor.started(), computed_once(new, before.store.root, executor, before.dimensions.block_rows) as new:
        n_before = before.dimensions.n_points
        block_rows = before.dimensions.block_rows
        gaps = find_gaps(new, before.metric, executor, block_rows) if new.gaps else None
        new, rows = (new, None) if gaps is None else rows_without_gaps(before, new, gaps)
        content = content_of(new, block_rows, gaps)
        known = before.plan.get(APPENDED)
        if known == {"after": n_before - new.shape[0], "content": content}:
            executor.progress.note(f"the last {new.shape[0]} points of {before.store.root} are these: nothing to do")
            return Grown(before, 0, None)
        source: PointsSource = AppendedPoints(stored, n_before, new)
        source.column_names = before.column_names
        if rows is not None:
            source = with_side_data(source, duplicates=rows)
        params = Parameters.of(before.params)
        if SEARCH in before.plan:  # which was chosen for all points; those that are appended start from their graph
            params = params.with_values({"neighbors": {"method": AUTO}})
        if params.layout.objective is not None:
            source = with_earlier_start(source, before)
            prepared = ("start_deviation", "early_exaggeration", "exaggerated_iterations", "exaggerated_momentum")
            start = {**dict.fromkeys(prepared), "init": INPUT_START, "freeze": freeze}
            params = params.with_values({"layout": start})
        seen = before.group(StoredPoints.STAGE).objects.intact(EXTREMES, RECORD_BYTES)  # None in older stores
        surveyed = survey(source, executor, block_rows, seen)
        outline = outline_run(before.method, params, surveyed, earlier=Earlier(before.keys, n_before, content))
        with open_for_writing(before.store.root, outline, executor, None) as target:
            if target.store.load_plan() != current:
                raise StoreError(f"{target.store.root} was changed by another command meanwhile: run this one again")
            run_plan(target, make_plan(target.store, outline, executor))
    grown = open_run(before.store.root)
    moved = align(before, grown).relative_residual if before.embeds else None
    return Grown(grown, new.shape[0], moved)


def check_growing(run: Run, freeze: bool) -> None:
    """Refuse runs that points cannot be appended to: of precomputed lists, labels, components, and unfinished ones."""
    params = run.params
    for refused, why, how in (
        (run.metric == PRECOMPUTED, "that started from neighbour lists or affinities, and has none", ""),
        (params.neighbors.of_pixels, "of pixels, which are one image or video", ""),
        (StoredClasses.STAGE in run.keys, "that learns from labels, as they come without", ""),
        (params.merges_duplicates, "in which equal rows are one point, whose weights new rows would change", ""),
        (StoredWeights.STAGE in run.keys, "of points with weights", " with theirs"),
        (params.neighbors.method == INPUT_LISTS, "with neighbour lists of another library", " with theirs"),
        (params.landmarks.method in SIDE_DATA_LANDMARKS, "with landmarks that you passed", " with them"),
        (params.layout.reference == INPUT_START, "with a reference that you passed", " with it and an init"),
        (run.is_component, "that has left out components", ", or with components.disconnected=connect"),
    ):
        if refused:
            raise ConfigError(f"points cannot be appended to a run {why}: embed all points anew{how}")
    unfinished = [stage for stage in run.keys if not run.group(stage).complete]
    if unfinished:
        raise ConfigError(f"{run.store.root} is not finished ({', '.join(unfinished)}): run its command again first")
    if freeze and run.params.layout.objective is None:
        raise ConfigError(f"freeze keeps points still in a descent, and {run.method} has none: leave it out")


def rows_without_gaps(before: Run, new: PointsSource, gaps: Gaps) -> tuple[PointsSource, Duplicates]:
    """Return the points to append without rows with a gap, and the point of each row of the run and of these."""
    n_before = before.dimensions.n_points
    usable, numbers = without_gaps(new, gaps, n_before)
    if usable.shape[0] == 0:
        raise DataError(f"there are no points to append: each of the {len(numbers)} rows has a gap")
    stored = before.stored(StoredDuplicates)
    columns = f"{stored.group.certificate('columns_with_gaps', str)}; appended: {gaps.listed(new, before.metric)}"
    rows = np.concatenate([stored.points.read(), numbers])
    return usable, Duplicates(rows, n_before + usable.shape[0], columns)


def points_of(run: Run) -> ArrayReader:
    """Return the points of a run; raise ConfigError where they are stored as sparse rows."""
    stored = run.stored(StoredPoints).points
    if not isinstance(stored, ArrayReader):
        raise ConfigError("points cannot be appended to a run of sparse points: embed all points anew")
    return stored


def check_like_run(run: Run, new: PointsSource) -> None:
    """Refuse points of another width or type than those of a run, and none at all."""
    dimensions = run.dimensions
    if new.shape[1] != dimensions.n_features:
        raise DataError(
            f"the points of {run.store.root} have {dimensions.n_features} columns, those to append {new.shape[1]}: "
            "give the same columns"
        )
    if new.dtype != np.dtype(dimensions.dtype):
        raise DataError(
            f"the points of {run.store.root} are {dimensions.dtype}, those to append {new.dtype}: convert them, for "
            f"example with numpy.asarray(points, dtype=numpy.{dimensions.dtype})"
        )
    if new.shape[0] == 0:
        raise DataError("there are no points to append: the table has no rows")


def content_of(new: PointsSource, block_rows: int, gaps: Gaps | None) -> str:
    """Return one digest of all appended points, and of where rows with a gap are left out between them."""
    tiles: list[str] = [] if gaps is None else [digest(gaps.rows.tobytes())]
    for start in range(0, new.shape[0], block_rows):
        tiles += tile_digests(new.read(start, min(start + block_rows, new.shape[0])))
    return digest(f"{new.shape[1]} {' '.join(tiles)}".encode())


def with_earlier_start(source: PointsSource, run: Run) -> AccompaniedPoints:
    """Return points whose descent starts where that of a run of the first of them has ended."""
    known = np.asarray(run.retained_embedding[...])
    start = np.full((source.shape[0], known.shape[1]), np.nan)
    start[: len(known)] = known
    return with_init(source, start)
