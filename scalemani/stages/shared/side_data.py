"""Side data, values that accompany the points: read from the input of a stage, brought into work order, and stored."""

from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import StageTask
from scalemani.io.sources.side_data import side_data_of
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.schema import ArrayDescription


def memory_of_values(name: str, dtype: str, sizes: Sizes) -> Memory:
    """Return what `store_in_work_order` takes for values called `name`, one a point, in input and in work order."""
    n_points, rows = sizes.dimensions.n_points, sizes.dimensions.block_rows
    return Memory(
        process={f"{name} of the points": 2 * array(dtype, n_points), "input rows": array("int64", n_points)},
        task={f"{name} of a block, and encoded": 2 * array(dtype, rows)},
    )


def memory_of_merged(sizes: Sizes) -> Memory:
    """Return what a run holds in all its stages where equal rows are one point."""
    if not sizes.n_input_rows:
        return Memory()
    of_points = array("float64", sizes.dimensions.n_points, 2)
    return Memory({"points of the rows, their first rows and weights": array("int64", sizes.n_input_rows) + of_points})


def side_data_part(context: StageContext, part: str) -> Any:
    """Return the part of `SideData` of a name that the points of a stage have.

    Raises
    ------
    ValueError
        Where there is none: a run plans stages that read side data with points that have them.
    """
    values = None if context.points is None else getattr(side_data_of(context.points.source), part)
    if values is None:
        raise ValueError(f"the stage `{context.task.stage}` was started without {part}")
    return values


def in_work_order(context: StageContext, values: np.ndarray) -> np.ndarray:
    """Return values (N, ...) in input order with their rows in the order that a stage works in."""
    if StoredWorkPoints.STAGE not in context.task.inputs:
        return values
    return values[context.task.stored(StoredWorkPoints).input_rows.read()]


def store_in_work_order(context: StageContext, described: ArrayDescription, values: np.ndarray) -> np.ndarray:
    """Write values (N,) in input order as a row array of the stage, and return them in work order."""
    ordered = in_work_order(context, values)
    write_rows(context, {described: ordered})
    return ordered


def write_rows(context: StageContext, arrays: Arrays) -> None:
    """Write arrays of all rows, each (N, ...), which are in this process, by blocks."""

    def rows_of_block(task: StageTask, block: int) -> Arrays:
        return {described: rows[slice(*task.dimensions.rows(block))] for described, rows in arrays.items()}

    sized = [described.sized(*rows.shape[1:]) for described, rows in arrays.items()]
    context.task.output.create(context.task.dimensions.n_points, sized)
    context.map_blocks_here(rows_of_block)
