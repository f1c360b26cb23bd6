"""Points whose own certificate is poor: those of which the affinities are not what was asked for."""

import numpy as np

from scalemani.config.params import Parameters
from scalemani.errors import StoreError
from scalemani.runs.input_order import InputOrder
from scalemani.runs.opened import Run
from scalemani.stages.arrays.affinities import StoredAffinities
from scalemani.stages.arrays.points import StoredWorkPoints


def entropy_limit(params: Parameters) -> float:
    """Return how far, in nats, the entropy of stored affinities may be from what was asked for.

    Affinities that err by a share eps/2 each change the entropy of k of them by at most eps (log k + 1).
    """
    return params.affinities.tolerance + float(np.finfo(np.float32).eps) * (np.log(params.n_neighbors) + 1)


def poor_points(run: Run) -> np.ndarray:
    """Return which rows (n_points,) bool of the results of a run have affinities that fall short.

    Ties put the perplexity out of their reach, or their entropy is further from its logarithm than `entropy_limit`.

    Raises
    ------
    StoreError
        For a run without entropic affinities: others certify no single point.
    """
    stage = StoredAffinities.STAGE
    if stage not in run.keys or run.params.affinities.kind != "entropic":
        raise StoreError(
            f"{run.store.root} has no certificate of each point: entropic affinities have one, in a run of a method "
            "such as t-sne or laplacian-eigenmaps"
        )
    if not run.group(stage).complete:
        raise StoreError(f"stage {stage} of {run.store.root} is not finished: run the same command again")
    stored = StoredAffinities(run.group(stage))
    short = (stored.saturated.read() != 0) | (np.abs(stored.residuals.read()) > entropy_limit(run.params))
    order = InputOrder(StoredWorkPoints(run.group(StoredWorkPoints.STAGE)), run.rows)
    return short[order.of_results(slice(None))]
