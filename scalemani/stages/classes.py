"""The classes of labelled points in work order; the labels are in the key of the stage by their digest."""

from typing import Any

import numpy as np

from scalemani.engine.needs import Memory
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.io.sources.side_data import NO_CLASS
from scalemani.stages.arrays.points import StoredClasses
from scalemani.stages.shared.beside_points import memory_beside, side_data_part, store_in_work_order


def memory(sizes: Sizes) -> Memory:
    """Return what the labels and the order of the points take."""
    return memory_beside("classes", "int32", sizes)


def run(work: StageWork) -> dict[str, Any]:
    """Write the classes, in blocks of points in work order."""
    labels = side_data_part(work, "labels")
    store_in_work_order(work, StoredClasses.codes, labels.codes)
    work.task.output.write_whole({StoredClasses.counts: labels.counts.astype(np.int64)})
    counts, unlabelled = labels.counts.tolist(), int(np.count_nonzero(labels.codes == NO_CLASS))
    certificates = {"classes": len(counts), "smallest_class": min(counts, default=0)}
    return {**certificates, "unlabelled": unlabelled} if unlabelled else certificates
