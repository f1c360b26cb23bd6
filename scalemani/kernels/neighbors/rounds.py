"""Which round of the neighbour search comes next, by what the rounds before have brought."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled

MORE_CELLS = 3  # times as many cells visited after a further round over cells as before it
LEFT_BY_NEAR = (
    0.3  # of what leaves miss, by two rounds among neighbours of neighbours: 0.5 of hard data, 0.15 of others
)
MOST_LEAVES_FIRST = 4  # rounds over leaves before any other: each later one brings less than one among neighbours
NEXT_GAIN = 0.3  # of what a round over neighbours of neighbours brought, what another one brings, on hard and easy data


class Round(NamedTuple):
    """A round of the search: over cells, from the `first`-th nearest of each point to the `last`-th, that one left out.

    A round without cells (`first == last`) looks among the neighbours of neighbours. `candidates` is how many times as
    many as in the first rounds are settled by exact distances. `of_changed` says that points alone look there whose
    lists the round before has changed. `over_leaves` says that the round looks within leaves of leaders of its own.
    """

    first: int
    last: int
    candidates: int = 1
    of_changed: bool = False
    over_leaves: bool = False

    @property
    def over_cells(self) -> bool:
        """Whether the round looks through cells."""
        return self.last > self.first


def next_round(
    rounds: Sequence[Round], recalls: Sequence[float], asked: float, n_cells: int, most_candidates: int
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
    if recalls[-1] >= asked:
        return None
    visited, candidates = rounds[-1].last, rounds[-1].candidates
    more = min(2 * candidates, most_candidates)
    gain = recalls[-1] - recalls[-2] if len(recalls) > 1 else 1.0
    if rounds[-1].over_cells or NEXT_GAIN * gain > asked - recalls[-1]:
        return Round(visited, visited, candidates)
    if visited < n_cells:
        return Round(visited, min(MORE_CELLS * visited, n_cells), more)
    return Round(0, n_cells, more) if more > candidates else None


def next_round_of_leaves(rounds: Sequence[Round], recalls: Sequence[float], asked: float) -> Round | None:
    """Return the round after `rounds`, the first of them over leaves, or None where the recall is reached.

    There are two rounds over leaves, and more where these miss too much for rounds among neighbours of neighbours:
    what leaves miss falls by the same factor from each to the next. Where another round among neighbours of neighbours
    would bring less than is missing, leaves are searched again.

    Parameters
    ----------
    recalls : the share of true neighbours after each, in [0, 1]
    """
    if recalls[-1] >= asked:
        return None
    if not rounds[-1].over_leaves:
        near = NEXT_GAIN * (recalls[-1] - recalls[-2]) > asked - recalls[-1]
    elif all(one.over_leaves for one in rounds):
        enough = LEFT_BY_NEAR * (1.0 - recalls[-1]) <= 1.0 - asked
        near = len(rounds) >= MOST_LEAVES_FIRST or (enough and len(rounds) > 1)
    else:
        near = True
    return Round(0, 0, over_leaves=not near)


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
