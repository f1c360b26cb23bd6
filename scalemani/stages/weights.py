"""The weights of the points in work order: how many equal points each stands for. Their digest is in the key."""

from typing import Any

from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Memory
from scalemani.engine.sizes import Sizes
from scalemani.stages.arrays.points import StoredWeights
from scalemani.stages.shared.side_data import memory_of_values, side_data_part, store_in_work_order


def memory(sizes: Sizes) -> Memory:
    """Return what the weights and the order of the points take."""
    return memory_of_values("weights", "float64", sizes)


def run(context: StageContext) -> dict[str, Any]:
    """Write the weights, in blocks of points in work order."""
    values = side_data_part(context, "weights").values
    weights = store_in_work_order(context, StoredWeights.weights, values)
    return {"total_weight": float(weights.sum()), "largest_weight": float(weights.max())}
