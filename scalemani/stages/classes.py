"""The classes of labelled points in work order; the labels are in the key of the stage by their digest."""

from typing import Any

import numpy as np

from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Memory
from scalemani.engine.sizes import Sizes
from scalemani.io.sources.side_data import NO_CLASS
from scalemani.stages.arrays.points import StoredClasses
from scalemani.stages.shared.side_data import memory_of_values, side_data_part, store_in_work_order


def memory(sizes: Sizes) -> Memory:
    """Return what the labels and the order of the points take."""
    return memory_of_values("classes", "int32", sizes)


def run(context: StageContext) -> dict[str, Any]:
    """Write the classes, in blocks of points in work order."""
    labels = side_data_part(context, "labels")
    store_in_work_order(context, StoredClasses.codes, labels.codes)
    context.task.output.write_whole({StoredClasses.counts: labels.counts.astype(np.int64)})
    counts, unlabelled = labels.counts.tolist(), int(np.count_nonzero(labels.codes == NO_CLASS))
    certificates = {"classes": len(counts), "smallest_class": min(counts, default=0)}
    return {**certificates, "unlabelled": unlabelled} if unlabelled else certificates
