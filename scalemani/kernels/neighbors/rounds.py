"""Which round of the neighbour search comes next, by what the rounds before have brought."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.nn_descent import NeighborLists

OF_NO_LIST = np.int32(-2)  # neither a row nor the mark of an empty place
MORE_CELLS = 3  # times as many cells visited after a further round over cells as before it
FIRST_DRAWS = 2  # of leaders: fewer leave lists among which the next rounds find little
MOST_DRAWS = 8  # of a round: what they find is held or stored until it is settled
WORTH_A_ROUND = 0.5  # of what is missing, that another round among neighbours of neighbours brings at least
LATER_DRAW = 0.4  # of what is missed, that a further draw and the rounds after it leave: 0.33 to 0.5 on tokens and sums
NEXT_GAIN = 0.3  # of what a round over neighbours of neighbours brought, what another one brings, on hard and easy data


class Round(NamedTuple):
    """A round of the search: over cells, from the `first`-th nearest of each point to the `last`-th, that one left out.

    A round without cells (`first == last`) looks among the neighbours of neighbours. `candidates` is how many times as
    many as in the first rounds are settled by exact distances. `of_changed` says that points alone look there whose
    lists the round before has changed. `draws` is how often the round draws leaders, within whose leaves it looks;
    `exact` says that it looks at every point. `of_leaves` is a
    round of a search that began within leaves.
    """

    first: int
    last: int
    candidates: int = 1
    of_changed: bool = False
    draws: int = 0
    exact: bool = False
    of_leaves: bool = False

    @property
    def over_cells(self) -> bool:
        """Whether the round looks through cells."""
        return self.last > self.first


def next_round(
    rounds: Sequence[Round], recalls: Sequence[float], target: float, n_cells: int, most_candidates: int
) -> Round | None:
    """Return the round after `rounds`, whose recalls were measured, or None where none would help.

    A round over cells is followed by one over neighbours of neighbours. What such a round brings falls from one to the
    next: where another one would bring less than is missing, further cells are visited instead, several times as many,
    and more candidates are settled, since sketches leave out too much where that happens. Once all cells were visited,
    they are visited again for more candidates, until every point is one.

    Parameters
    ----------
    recalls : the share of true neighbours after each, in [0, 1]
    most_candidates : `Round.candidates` at which every point is a candidate
    """
    if recalls[-1] >= target:
        return None
    visited, candidates = rounds[-1].last, rounds[-1].candidates
    more = min(2 * candidates, most_candidates)
    gain = recalls[-1] - recalls[-2] if len(recalls) > 1 else 1.0
    if rounds[-1].over_cells or NEXT_GAIN * gain > target - recalls[-1]:
        return Round(visited, visited, candidates)
    if visited < n_cells:
        return Round(visited, min(MORE_CELLS * visited, n_cells), more)
    return Round(0, n_cells, more) if more > candidates else None


def next_round_of_leaves(
    rounds: Sequence[Round], recalls: Sequence[float], target: float, most_draws: float
) -> Round | None:
    """Return the round after `rounds`, the first of them over leaves, or None where the recall is reached.

    Leaves are followed by rounds among neighbours of neighbours, which take a third of a draw or less. Where another
    one would bring less than half of what is missing, leaders are drawn again, as often as that asks for. Where as many
    draws would cost more than exact search, that is next.

    Parameters
    ----------
    recalls : the share of true neighbours after each, in [0, 1]
    most_draws : that cost as much as exact search
    """
    if recalls[-1] >= target:
        return None
    if rounds[-1].draws or NEXT_GAIN * (recalls[-1] - recalls[-2]) > WORTH_A_ROUND * (target - recalls[-1]):
        return Round(0, 0, of_leaves=True)
    draws = draws_wanted(1.0 - recalls[-1], 1.0 - target)
    if draws > most_draws:
        return Round(0, 0, exact=True, of_leaves=True)
    return Round(0, 0, draws=int(min(draws, MOST_DRAWS)), of_leaves=True)


def draws_wanted(missed: float, allowed: float) -> float:
    """Return after how many draws, each of which leaves a share of what is missed, no more than is allowed will be."""
    return math.ceil(math.log(allowed / missed, LATER_DRAW)) if allowed > 0 else math.inf


@compiled
def without_known(candidates: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return candidates (n, c) int32 with -1 in place of those that stand in `known` (n, k) of the same row."""
    left = candidates.copy()
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            for l in range(known.shape[1]):
                if known[i, l] == candidates[i, j]:
                    left[i, j] = -1
    return left


def still_fresh(before: NeighborLists, indices: np.ndarray) -> np.ndarray:
    """Return where (n, k) lists hold what was fresh in them before: points that did not look have yet to meet it."""
    others = without_known(indices, np.where(before.fresh, before.indices, OF_NO_LIST))
    return (indices >= 0) & (others < 0)
