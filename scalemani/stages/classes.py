"""The classes of labelled points in work order; the labels are in the key of the stage by their digest."""

import functools
from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, EACH_TASK, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.records.classes import StoredClasses
from scalemani.records.points import StoredWorkPoints
from scalemani.sources.beside import found_beside
from scalemani.sources.beside.labelled import LabelledPoints


def memory(sizes: Sizes) -> list[Held]:
    """List the labels and the order of the points."""
    n_points = sizes.dimensions.n_points
    return [
        Held("classes of the points", EACH_PROCESS, n_points, 1, "int32", 2),
        Held("input rows", EACH_PROCESS, n_points, 1, "int64"),
        Held("classes of a block", EACH_TASK, sizes.dimensions.block_rows, 1, "int32", 2),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: a class a point."""
    return [Written("classes", STORED, sizes.dimensions.n_points, 1, "int32")]


def run(work: StageWork) -> dict[str, Any]:
    """Write the classes, in blocks of points in work order."""
    task, given = work.task, None if work.points is None else found_beside(work.points.source, LabelledPoints)
    if given is None:
        raise ValueError("the stage `classes` was started without labels to read")
    codes = given.codes[StoredWorkPoints(task.inputs["work_points"]).input_rows.read()]
    task.output.create(len(codes), [StoredClasses.CODES.sized()])
    work.map_blocks_here(functools.partial(codes_block, codes))
    task.output.write_whole({StoredClasses.COUNTS: np.array(given.classes.counts, np.int64)})
    return {"classes": len(given.classes.counts), "smallest_class": min(given.classes.counts)}


def codes_block(codes: np.ndarray, task: StageTask, block: int) -> Arrays:
    """Return the classes of one block."""
    return {StoredClasses.CODES: codes[slice(*task.dimensions.rows(block))]}
