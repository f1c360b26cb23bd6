"""The weights of the points in work order: how many equal points each stands for. Their digest is in the key."""

from typing import Any

from scalemani.engine.needs import Memory
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageWork
from scalemani.stages.arrays.points import StoredWeights
from scalemani.stages.shared.beside_points import memory_beside, side_data_part, store_in_work_order


def memory(sizes: Sizes) -> Memory:
    """Return what the weights and the order of the points take."""
    return memory_beside("weights", "float64", sizes)


def run(work: StageWork) -> dict[str, Any]:
    """Write the weights, in blocks of points in work order."""
    values = side_data_part(work, "weights").values
    weights = store_in_work_order(work, StoredWeights.weights, values)
    return {"total_weight": float(weights.sum()), "largest_weight": float(weights.max())}
