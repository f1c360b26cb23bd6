"""Which of the distinct points each row that was given is: found before points are read, and stored as it is."""

from typing import Any

import numpy as np

from scalemani.engine.needs import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.io.sources.side_data import LEFT_OUT
from scalemani.stages.arrays.points import StoredDuplicates
from scalemani.stages.shared.beside_points import given_beside


def memory(sizes: Sizes) -> Memory:
    """Return what the points of the rows take, as written, and without those of rows that were left out."""
    return Memory({"points of the rows given": 2 * array("int64", sizes.n_given_rows)})


def run(work: StageWork) -> dict[str, Any]:
    """Write the point of each row; certify how many rows repeat others, and how many were left out for gaps."""
    given = given_beside(work, "duplicates")
    points_of_rows = given.points_of_rows
    work.task.output.write_whole({StoredDuplicates.points: points_of_rows})
    kept = points_of_rows[points_of_rows != LEFT_OUT]
    counts = np.bincount(kept)
    found = {"rows": len(kept), "duplicate_rows": len(kept) - len(counts), "most_rows_a_point": int(counts.max())}
    if given.gaps is None:
        return found
    left_out = len(points_of_rows) - len(kept)
    return {**found, "rows_left_out": left_out, "columns_with_gaps": given.gaps}
