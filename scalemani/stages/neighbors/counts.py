"""How many cells, candidates and list entries a search looks at."""

import numpy as np

from scalemani.chunked.task import Dimensions
from scalemani.params import Parameters

COMPARED_NUMBERS = 2e9  # differences of coordinates: some seconds, far fewer than an exact search takes
FEWEST_COMPARED, MOST_COMPARED = 100, 1000  # points whose lists are compared with plain distances


def n_compared(dimensions: Dimensions) -> int:
    """Return on how many points the recall of an exact search is measured: all of few ones."""
    values = dimensions.n_points * dimensions.n_features if dimensions.nonzeros is None else dimensions.nonzeros
    affordable = int(COMPARED_NUMBERS / max(1, values))
    return min(dimensions.n_points, int(np.clip(affordable, FEWEST_COMPARED, MOST_COMPARED)))


def n_probes(dimensions: Dimensions, params: Parameters) -> int:
    """Return how many cells a point visits."""
    asked = params.neighbors
    more = asked.more_probes if params.n_neighbors > asked.few_neighbors else 0
    return asked.n_probes or (asked.few_probes if dimensions.n_points <= asked.few_points else asked.many_probes) + more


def n_candidates(params: Parameters, number: int) -> int:
    """Return how many candidates of a round are settled by exact distances."""
    asked, k = params.neighbors, params.n_neighbors
    if k <= asked.few_neighbors:
        return round(asked.few_candidates * k)
    return round((asked.first_candidates if number == 0 else asked.later_candidates) * k)


def n_listed(params: Parameters) -> int:
    """Return how much of the list of a neighbour is looked at."""
    return min(params.neighbors.most_listed, params.n_neighbors)
