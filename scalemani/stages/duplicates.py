"""Which of the distinct points each row that was given is: found before points are read, and stored as it is."""

from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageWork
from scalemani.records.duplicates import StoredDuplicates
from scalemani.sources.beside import found_beside
from scalemani.sources.beside.distinct import DistinctPoints


def memory(sizes: Sizes) -> list[Held]:
    """List the points of the rows, as found and as they are written."""
    return [Held("points of the rows given", EACH_PROCESS, sizes.n_given_rows, 1, "int64", 2)]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: a number a row that was given."""
    return [Written("points of the rows given", STORED, sizes.n_given_rows, 1, "int64")]


def run(work: StageWork) -> dict[str, Any]:
    """Write the point of each row; certify how many rows repeat others."""
    given = None if work.points is None else found_beside(work.points.source, DistinctPoints)
    if given is None:
        raise ValueError("the stage `duplicates` was started without rows that are equal")
    work.task.output.write_whole({StoredDuplicates.POINTS: given.points_of_rows})
    kept = given.points_of_rows[given.points_of_rows >= 0]
    counts = np.bincount(kept)
    return {"rows": len(kept), "duplicate_rows": len(kept) - len(counts), "most_rows_a_point": int(counts.max())}
