"""How long a driver waits for a cluster, as plain data that is loaded without Dask."""

from typing import NamedTuple


class ClusterTimeouts(NamedTuple):
    """Seconds after which a scheduler does not answer, and a cluster has lost its workers."""

    connect: float = 30.0
    answer: float = 10.0  # that the scheduler has
    lost_workers: float = 75.0


CLUSTER_TIMEOUTS = ClusterTimeouts()
