"""Entropic affinities of points that stand for several equal ones each: those of the set in which each is repeated.

A point of weight w is w copies at one place. A copy has the w - 1 others at distance zero among its neighbours, and all
copies of every neighbour. Copies have equal affinities, so one row and two numbers tell those of all.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.affinities.entropic import ANY_ROWS, EntropicRows, RowsOfData, entropic_affinities


class Multiplicities(NamedTuple):
    """How many points some rows stand for, `own` (n,) float64, and their neighbours, `neighbors` (n, k) float64."""

    own: np.ndarray
    neighbors: np.ndarray

    @classmethod
    def of_rows(cls, weights: np.ndarray, first: int, indices: np.ndarray) -> "Multiplicities":
        """Return those of the points from `first` on with neighbours `indices` (n, k), by the weights (N,) of all."""
        return cls(weights[first : first + len(indices)], weights[indices])


class RepeatedRows(NamedTuple):
    """Affinities of rows of points that stand for several.

    rows: as of `entropic_affinities`; `values` (n, k) are those of a copy of the point to one copy of each neighbour.
    twins (n,) float64: the affinity of a copy to each of the point's other copies, zero where there are none.
    """

    rows: EntropicRows
    twins: np.ndarray


def repeated_affinities(
    squared_distances: np.ndarray,
    perplexity: float,
    counts: Multiplicities,
    *,
    solver: str = "newton",
    order: str = "density",
    tol: float = 1e-10,
    rows: RowsOfData = ANY_ROWS,
) -> RepeatedRows:
    """Return the entropic affinities of rows in which each point is repeated as often as it counts, at least once.

    The perplexity K is above 1 and below the neighbours that every row has with all copies. The other arguments are
    those of `entropic_affinities`.
    """
    n_twins = counts.own - 1.0
    # Without other copies there is no neighbour at distance zero: a column of no mass is then as near as the nearest.
    nearest = np.where(n_twins > 0.0, 0.0, squared_distances[:, 0])
    columns = np.concatenate([nearest[:, np.newaxis], squared_distances], axis=1)
    masses = np.concatenate([n_twins[:, np.newaxis], counts.neighbors], axis=1)
    if rows.indices is not None:
        own = np.arange(rows.first, rows.first + len(columns))[:, np.newaxis]
        rows = rows._replace(indices=np.concatenate([own, rows.indices], axis=1))
    solved = entropic_affinities(columns, perplexity, solver=solver, order=order, tol=tol, rows=rows, masses=masses)
    twins = np.where(n_twins > 0.0, solved.values[:, 0], 0.0)
    return RepeatedRows(solved._replace(values=np.ascontiguousarray(solved.values[:, 1:])), twins)


def copies_of_neighbors(counts: Multiplicities) -> np.ndarray:
    """Return how many neighbours (n,) a copy of each point has with all copies, its own others among them."""
    return np.asarray(counts.neighbors.sum(axis=1) + counts.own - 1.0)


def repeated_entropies(values: np.ndarray, twins: np.ndarray, counts: Multiplicities) -> np.ndarray:
    """Return the entropy (n,) float64, in nats, of the affinities that `repeated_affinities` returns."""
    shares = values.astype(np.float64)
    total = (counts.neighbors * shares).sum(axis=1) + (counts.own - 1.0) * twins
    return np.asarray(
        -(counts.neighbors * _times_log(shares / total[:, np.newaxis])).sum(axis=1)
        - (counts.own - 1.0) * _times_log(twins / total)
    )


def _times_log(shares: np.ndarray) -> np.ndarray:
    return shares * np.log(np.where(shares > 0.0, shares, 1.0))


def summed_over_copies(values: np.ndarray, counts: Multiplicities) -> np.ndarray:
    """Return affinities (n, k) between one copy each as sums over all copies at both ends, in the dtype of `values`.

    An edge and its reverse are multiplied by the same number to the last bit.
    """
    return np.asarray((values * (counts.own[:, np.newaxis] * counts.neighbors)).astype(values.dtype))


def loops(twins: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the affinity (n,) float64 of each point to itself: the sum over pairs of its copies, both ways."""
    return np.asarray(own * (own - 1.0) * twins)
