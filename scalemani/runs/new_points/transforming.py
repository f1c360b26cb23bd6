"""New points from a file into a file: blocks that workers place within a budget, stored until all of them are done.

Finished blocks lie next to the output in a separate folder, OUT.transform. The same command resumes from there, and
removes it at the end.
"""

import contextlib
import functools
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import zarr

from scalemani.config.validation import check_finite_block
from scalemani.engine.context import DIMENSIONS, Arrays, StageContext, StageTask
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Batch
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniWarning, StoreError
from scalemani.io.export import checked_target, companion_path, rows_per_block, write_rows
from scalemani.io.export.atomic import already_there
from scalemani.io.export.writers import SUFFIXES, run_blocks, zarr_writer
from scalemani.io.sources import PointsSource, map_points, open_points
from scalemani.io.sources.base import innermost, read_rows, with_innermost
from scalemani.io.sources.lazy import LazyRows, lazy_rows
from scalemani.io.sources.stores import store_at, with_attributes
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.runs.new_points import centers_of, nearest_clusters, place_rows
from scalemani.runs.new_points.neighbors import check_features, neighbor_index
from scalemani.runs.new_points.placements import NeighborPlacer, Placement, placement_memory, placer_of, read_placement
from scalemani.runs.new_points.quality import Account
from scalemani.runs.opened import Run
from scalemani.runs.outline import KEY_CHARACTERS
from scalemani.runs.plan import Fit, check_memory, fit
from scalemani.runs.preprocessing.computed import computed_once
from scalemani.runs.preprocessing.gaps import Gaps, SelectedRows, gaps_of_rows, joined, usable_rows
from scalemani.runs.survey import checked_block_rows, default_block_rows
from scalemani.runs.walk import locked_run
from scalemani.stages.arrays.embeddings import StoredClustering, StoredPlacement
from scalemani.stages.arrays.points import tile_digests
from scalemani.store.groups import StageGroup
from scalemani.store.objects import digest

KEY, CERTIFICATES = "scalemani_transform", "scalemani_certificates"  # attributes of an output of zarr


def earlier_result(target: str) -> dict[str, str] | None:
    """Return the attributes that an earlier transform wrote with the array at `target`; None where nothing is there.

    Raises
    ------
    StoreError
        For anything else that is there.
    """
    try:
        opened = zarr.open(store_at(target) if "://" in target else target, mode="r")
        there = with_attributes(opened, target)
    except Exception as error:  # stores say in many ways that nothing is there, and what is wrong with what is
        if "://" in target or not Path(target).exists():
            return None
        raise already_there(target) from error
    attributes = {name: there.attrs.get(name) for name in (KEY, CERTIFICATES)}
    if None in attributes.values():
        raise already_there(target)
    return {name: str(value) for name, value in attributes.items()}


def write(
    rows: LazyRows,
    target: str,
    labels: str | None,
    centers: np.ndarray | None,
    attributes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write coordinates (n, d), and before them the clusters (n,) where there are centres.

    Parameters
    ----------
    rows : the coordinates
    labels, centers : where clusters go, and centres (K, d); None where there are none
    attributes : of an array of zarr, which it has once all rows are written
    """
    if labels is not None and centers is not None:

        def clusters(start: int, stop: int) -> np.ndarray:
            return nearest_clusters(rows.read(start, stop), centers)

        write_rows(clusters, (len(rows),), np.int32, labels)
    if not attributes or not target.lower().endswith(".zarr"):
        write_rows(rows.read, rows.shape, rows.dtype, target)
        return
    rows = replace(rows, preferred_rows=rows_per_block(rows.shape[1] * rows.dtype.itemsize))
    with zarr_writer(target, rows, attributes) as write:
        run_blocks(rows, write)


WORKING = ".transform"
VERSION = 2  # of what is stored of placed points
SAMPLED_POINTS = 100  # by which the recall of the search for neighbours is measured: known to a few percent


@dataclass(frozen=True)
class Transformed:
    """What became of new points: what measures how well they were placed, and what to say of it.

    certificates : isolated and far, shares of the points whose distance to the nearest landmarks or neighbours is more
        than what 98 % of the training points do not exceed, and more than twice that, by the spacing there (2 % of new
        points of the same distribution are isolated); of spectral embeddings median_error, p95_error and
        largest_error, of the points as combinations of landmarks relative to the distance of the nearest one; of
        nonlinear ones arrived, mean_fall and recall, the share of the true neighbours that the search returns; of a run
        that leaves out rows with gaps rows_left_out, whose coordinates are NaN, and columns_with_gaps
    labels : where the clusters of the points are, None where the run has none
    """

    certificates: dict[str, Any]
    labels: str | None
    warnings: list[tuple[str, type[ScalemaniWarning]]]


def transform_points(run: Run, points: Any, out: str | Path, executor: Executor) -> Transformed:
    """Place new points in a finished run and write their coordinates, by blocks within a budget; see `sm.transform`.

    Parameters
    ----------
    points : (n, D), what `open_points` takes; workers read what has a path or URL
    """
    kind = placer_of(run)
    target, suffix = checked_target(out, SUFFIXES)
    if "://" not in target and not Path(target).absolute().parent.is_dir():
        raise StoreError(f"cannot write {target}: there is no folder {Path(target).parent}")
    mapped = like_those_of(run, open_points(points, run.params.leaves_out_gaps))
    check_features(mapped, run.dimensions.n_features)
    centers = centers_of(run) if StoredClustering.STAGE in run.keys else None
    labels = None if centers is None else companion_path(target, "labels")
    with executor.started(), working_folder(target) as folder, computed_once(mapped, folder, executor) as source:
        if source.shape[0] == 0:
            write(lazy_rows(np.empty((0, run.embedding.shape[1])), target), target, labels, centers)
            return Transformed({}, labels, [])
        earlier = earlier_result(target) if suffix == ".zarr" else None
        dimensions = fitting_dimensions(run, source, executor)
        # What cannot be placed is refused before anything is written.
        content, gaps = content_of(source, run.metric, dimensions, executor)
        identity = [VERSION, run.keys, *source.shape, dimensions.dtype, content]
        key = digest(json.dumps(identity).encode())[:KEY_CHARACTERS]
        if earlier is not None:
            if earlier[KEY] != key:
                raise already_there(target)
            remark = f"{target} holds these points, placed in this run, already: nothing was computed"
            return Transformed(json.loads(earlier[CERTIFICATES]), labels, [(remark, ScalemaniWarning)])
        with locked_run(folder, executor) as working:
            group = working.store.group(StoredPlacement.STAGE, key, dimensions.block_rows)
            stored = place_blocks(run, points, source, group, dimensions, executor)
            coordinates = stored_coordinates(stored, target)
            account = account_of(stored, coordinates, source.remark)
            certificates: dict[str, Any] = {**account.certificates}
            if issubclass(kind, NeighborPlacer):
                certificates |= sampled_recall(run, source, dimensions.block_rows)
            if gaps is not None:
                certificates["rows_left_out"] = int(gaps.rows.sum())
                certificates["columns_with_gaps"] = gaps.listed(source, run.metric)
            attributes = {KEY: key, CERTIFICATES: json.dumps(certificates)}
            write(coordinates, target, labels, centers, attributes)
    return Transformed(certificates, labels, account.warnings)


@contextlib.contextmanager
def working_folder(target: str) -> Iterator[str]:
    """Yield where finished blocks are stored; it is removed once the result is written, or where there are none."""
    if "://" in target:  # nothing is left half done behind a URL: blocks wait on this machine
        with tempfile.TemporaryDirectory(prefix="scalemani-") as temporary:
            yield str(Path(temporary) / "blocks")
        return
    folder = Path(target + WORKING)
    try:
        yield str(folder)
    except BaseException:
        if not any(folder.rglob("marks/block-*.json")):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def content_of(
    source: PointsSource, metric: str, dimensions: Dimensions, executor: Executor
) -> tuple[str, Gaps | None]:
    """Return one digest of all points, which have to be finite but for gaps, and these where there may be some."""
    gapped = source.gaps
    read = innermost(source) if gapped else source  # of which rows with a gap have the others in their places
    executor.progress.start("reading", dimensions.n_blocks)

    def look(block: int) -> list[tuple[list[str], Gaps | None]]:
        start, stop = dimensions.rows(block)
        rows = read_rows(read, start, stop, dimensions.sparse)
        if gapped:
            return [(tile_digests(rows), gaps_of_rows(rows, metric, start))]
        check_finite_block(rows, start, columns=source.column_names)
        return [(tile_digests(rows), None)]

    tiles, gaps = zip(*executor.fold_here(look, joined, range(dimensions.n_blocks), source.sequential), strict=True)
    content = digest(" ".join(itertools.chain.from_iterable(tiles)).encode())
    return content, Gaps.of_all(gaps) if gapped else None


def fitting_dimensions(run: Run, source: PointsSource, executor: Executor) -> Dimensions:
    """Return the shape of the points and blocks of which one at least fits the budget.

    Raises
    ------
    MemoryBudgetError
        Where not even the smallest block does.
    """
    nonzeros = source.nonzeros if run.dimensions.sparse else None
    dimensions = Dimensions(*source.shape, np.dtype(source.dtype).name, 1, nonzeros)
    usual = default_block_rows(dimensions.n_points, dimensions.row_bytes, executor.least_memory)
    rows = checked_block_rows(usual, dimensions.n_points)
    while rows > TILE_ROWS and not fit_of(run, dimensions, rows, executor).at_once:
        rows = max(TILE_ROWS, rows // 2 // TILE_ROWS * TILE_ROWS)
    check_memory({StoredPlacement.STAGE: fit_of(run, dimensions, rows, executor)}, executor.processes, TILE_ROWS)
    return replace(dimensions, block_rows=rows)


def fit_of(run: Run, dimensions: Dimensions, rows: int, executor: Executor) -> Fit:
    """Return how many blocks of so many rows are placed at once."""
    return fit(placement_memory(run, dimensions, rows), executor.processes, -(-dimensions.n_points // rows))


def place_blocks(
    run: Run, points: Any, source: PointsSource, group: StageGroup, dimensions: Dimensions, executor: Executor
) -> StoredPlacement:
    """Place the blocks that are missing: on the workers where they can read the points too, else on this process.

    Blocks of these points that are there already stay, and the others are cut as they were.

    Parameters
    ----------
    points, source : the new points as the user passes them, and opened as the metric of the run takes them
    """
    stored = group.objects.get_json(DIMENSIONS) or dimensions.as_dict()
    group.objects.set_json(DIMENSIONS, stored)
    dimensions = replace(dimensions, block_rows=stored["block_rows"])
    group = StageGroup(group.root, group.path, dimensions.block_rows)
    group.forget(group.damaged_units(executor.workers))
    width = run.embedding.shape[1]
    known = [one.sized() for one in (StoredPlacement.nowhere, *placer_of(run).measured)]
    group.create(dimensions.n_points, [StoredPlacement.coordinates.sized(width), *known])
    used = fit_of(run, dimensions, dimensions.block_rows, executor)
    task = StageTask(StoredPlacement.STAGE, dimensions, run.params, {}, group, used.cache, used.in_memory)
    batch = Batch(StoredPlacement.STAGE, group.path, used.memory)
    context = StageContext(task, executor, used.at_once, used.in_one_process, batch)
    anywhere = isinstance(points, str) and (source.remote or not executor.on_cluster) and not source.sequential
    here = executor.on_threads or not anywhere
    n_threads = max(1, executor.workers // (1 if source.sequential else used.at_once)) if here else 1
    arguments = str(run.store.root), json.dumps(run.plan), n_threads, source.gaps, points if anywhere else source
    function = functools.partial(placed_block, *arguments)
    if anywhere:
        context.map_blocks(function)
    else:
        context.map_blocks_here(function, source.sequential)
    PROCESS.free()
    return StoredPlacement(group)


def placed_block(
    root: str, plan: str, n_threads: int, gaps: bool, points: PointsSource | str, task: StageTask, block: int
) -> Arrays:
    """Return one block of new points placed, and what is known of them: zeros in rows without coordinates.

    Parameters
    ----------
    root, plan : the run, and its plan as JSON
    n_threads : of one descent
    gaps : whether rows with a gap are left out
    points : a source, or what `open_points` takes where every worker opens it
    """
    placement = task.once(placement_of_run, root, plan, n_threads)
    source = task.once(opened_points, points, root, plan, gaps) if isinstance(points, str) else points
    placed = place_rows(placement, source, *task.dimensions.rows(block))
    arrays = {one: np.array(values, str(one.dtype)) for one, values in placed.items()}
    nowhere = ~np.isfinite(placed[StoredPlacement.coordinates]).all(axis=1)
    for values in arrays.values():
        values[nowhere] = np.nan_to_num(values[nowhere])  # a store takes finite numbers alone
    arrays[StoredPlacement.nowhere] = np.asarray(nowhere, np.uint8)
    return arrays


def opened_points(task: StageTask, location: str, root: str, plan: str, gaps: bool) -> PointsSource:
    """Open points once a process, as the run takes them."""
    return like_those_of(Run(root, json.loads(plan)), open_points(location, gaps))


def like_those_of(run: Run, points: PointsSource) -> PointsSource:
    """Return new points with the columns of a run, in the geometry of its metric."""
    return map_points(run.metric, run.like_points(points))


def placement_of_run(task: StageTask, root: str, plan: str, n_threads: int) -> Placement:
    """Return what places points, made once a process."""
    return read_placement(Run(root, json.loads(plan)), n_threads=n_threads)


def stored_coordinates(stored: StoredPlacement, description: str) -> LazyRows:
    """Return the coordinates (n, d) of new points, NaN in rows that have none."""
    rows = lazy_rows(stored.coordinates.zarr(), description)

    def read(start: int, stop: int) -> np.ndarray:
        coordinates = rows.read(start, stop)
        coordinates[stored.nowhere.read_rows(slice(start, stop)) != 0] = np.nan
        return coordinates

    return replace(rows, reader=read)


def account_of(stored: StoredPlacement, coordinates: LazyRows, remark: str) -> Account:
    """Return the account of all blocks; `remark` is what the source of the points says of itself."""
    account = Account(remark)
    known, rows = [one for one in StoredPlacement.ARRAYS[1:] if stored.group.holds(one.name)], stored.group.block_rows
    for block, start in enumerate(range(0, len(coordinates), rows)):
        placed = {one: stored.reader(one).read_block(block) for one in known}
        account.add(start, {StoredPlacement.coordinates: coordinates[start : start + rows], **placed})
    return account


def sampled_recall(run: Run, source: PointsSource, most_rows: int) -> dict[str, float]:
    """Return the recall of the search among the training points, on a sample of the new points.

    Rows of one chunk of the source are read together, of `most_rows` at most.
    """
    rows = sample_rows(run.params.seed, StoredPlacement.STAGE, source.shape[0], SAMPLED_POINTS)
    chosen = SelectedRows(innermost(source), rows, min(most_rows, source.preferred_rows or 1))
    chosen.gaps = source.gaps
    points = usable_rows(with_innermost(source, chosen), run.metric, 0, len(rows), run.dimensions.sparse)[0]
    if points.shape[0] == 0:  # all of the sample have gaps
        return {}
    return {"recall": neighbor_index(run, in_memory=False).recall(points, run.params.affinity_neighbors)}
