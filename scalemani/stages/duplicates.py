"""Which of the distinct points each input row is: computed before points are read, and stored unchanged."""

from typing import Any

import numpy as np

from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.io.sources.side_data import LEFT_OUT
from scalemani.stages.arrays.points import StoredDuplicates
from scalemani.stages.shared.side_data import side_data_part


def memory(sizes: Sizes) -> Memory:
    """Return what the points of the rows take, as written, and without those of rows that were left out."""
    return Memory({"points of the rows given": 2 * array("int64", sizes.n_input_rows)})


def run(context: StageContext) -> dict[str, Any]:
    """Write the point of each row; certify how many rows repeat others, and how many were left out for gaps."""
    duplicates = side_data_part(context, "duplicates")
    points_of_rows = duplicates.points_of_rows
    context.task.output.write_whole({StoredDuplicates.points: points_of_rows})
    present = points_of_rows[points_of_rows != LEFT_OUT]
    counts = np.bincount(present)
    certificates = {
        "rows": len(present),
        "duplicate_rows": len(present) - len(counts),
        "most_rows_a_point": int(counts.max()),
    }
    if duplicates.gaps is None:
        return certificates
    left_out = len(points_of_rows) - len(present)
    return {**certificates, "rows_left_out": left_out, "columns_with_gaps": duplicates.gaps}
