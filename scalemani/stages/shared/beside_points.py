"""Values that are given beside the points: found among what a stage is given, brought into work order, and stored."""

from typing import Any

import numpy as np

from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import StageTask
from scalemani.engine.work import Arrays, StageWork
from scalemani.io.sources.side_data import side_data_of
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.schema import ArrayDescription

COPIES_OF_VALUES = 2  # in input order, and in work order
COPIES_OF_BLOCK = 2  # as it is written, and encoded


def held_beside(name: str, dtype: str, sizes: Sizes) -> list[Held]:
    """List what `store_in_work_order` takes for values called `name`, one a point."""
    n_points = sizes.dimensions.n_points
    return [
        Held(f"{name} of the points", EACH_PROCESS, n_points, 1, dtype, COPIES_OF_VALUES),
        Held("input rows", EACH_PROCESS, n_points, 1, "int64"),
        Held(f"{name} of a block", EACH_TASK, sizes.dimensions.block_rows, 1, dtype, COPIES_OF_BLOCK),
    ]


def held_of_merged(sizes: Sizes) -> list[Held]:
    """List what a run holds in all its stages where equal rows are one point."""
    if not sizes.n_given_rows:
        return []
    n_points = sizes.dimensions.n_points
    return [
        Held("point of each row that was given", EACH_PROCESS, sizes.n_given_rows, 1, "int64"),
        Held("first row and weight of each point", EACH_PROCESS, n_points, 2),
    ]


def given_beside(work: StageWork, part: str) -> Any:
    """Return the part of `SideData` of a name that the points of a stage have.

    Raises
    ------
    ValueError
        Where there is none: a run plans stages that read side data with points that have them.
    """
    found = None if work.points is None else getattr(side_data_of(work.points.source), part)
    if found is None:
        raise ValueError(f"the stage `{work.task.stage}` was started without {part}")
    return found


def in_work_order(work: StageWork, values: np.ndarray) -> np.ndarray:
    """Return values (N, ...) in input order with their rows in the order that a stage works in."""
    if StoredWorkPoints.STAGE not in work.task.inputs:
        return values
    return values[work.task.stored(StoredWorkPoints).input_rows.read()]


def store_in_work_order(work: StageWork, described: ArrayDescription, values: np.ndarray) -> np.ndarray:
    """Write values (N,) in input order as a row array of the stage, and return them in work order."""
    ordered = in_work_order(work, values)
    write_rows(work, described, ordered)
    return ordered


def write_rows(work: StageWork, described: ArrayDescription, rows: np.ndarray) -> None:
    """Write an array of all rows (N, ...), which is in this process, by blocks."""

    def rows_of_block(task: StageTask, block: int) -> Arrays:
        return {described: rows[slice(*task.dimensions.rows(block))]}

    work.task.output.create(len(rows), [described.sized(*rows.shape[1:])])
    work.map_blocks_here(rows_of_block)
