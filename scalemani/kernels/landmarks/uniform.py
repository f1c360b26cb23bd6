"""Random landmarks, and random ones thinned by dropping one of each closest pair; no coordinates twice."""

import heapq
from collections.abc import Callable

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import squared_distance
from scalemani.kernels.rows.equal_rows import first_of_equal_rows

WORDS_BLOCK = 1 << 20  # draws held at a time
SPREAD_EXCESS = 0.5  # M / L: half as many again are drawn, then dropped
LISTED_NEIGHBORS = 8  # of each candidate; when all are dropped, its nearest is searched among all
SPARE_FRACTION = 16  # one spare candidate for so many: repeated coordinates are the exception


def draw_rows(n_rows: int, n_drawn: int, seed: int, stage: str) -> np.ndarray:
    """Return distinct rows of N (n_drawn or N,) int64 drawn uniformly, in the order drawn.

    The first m of n drawn rows are the m drawn rows, so that a caller can draw more. When a row is drawn is a function
    of the seed, the stage and the row.
    """
    rows, words = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    for block in slices(n_rows, WORDS_BLOCK):
        words = np.concatenate([words, row_words(seed, stage, block.start, block.stop)])
        rows = np.concatenate([rows, np.arange(block.start, block.stop)])
        if len(rows) > n_drawn:
            smallest = np.argpartition(words, n_drawn - 1)[:n_drawn] if n_drawn > 0 else slice(0, 0)
            rows, words = rows[smallest], words[smallest]
    return rows[np.lexsort((rows, words))]


def random_landmarks(
    n_rows: int,
    n_landmarks: int,
    seed: int,
    gather: Callable[[np.ndarray], np.ndarray] | None = None,
    stage: str = "random",
) -> np.ndarray:
    """Return rows (n_landmarks,) int64, ascending, drawn uniformly without replacement, no two with equal coordinates.

    `gather` reads points (m, D) at ascending rows (m,) int64, so that repeated coordinates are passed over; without it
    they are not noticed. Fewer rows, or fewer distinct points, than landmarks are a DataError.
    """
    if n_landmarks > n_rows:
        raise DataError(
            f"{n_landmarks} landmarks were asked for, but there are {n_rows} points; ask for at most {n_rows}"
        )
    if gather is None:
        return np.sort(draw_rows(n_rows, n_landmarks, seed, f"landmarks/{stage}"))
    n_drawn = n_landmarks  # no spare ones at first: each lies in another block of a store, which is read for it
    while True:
        drawn = draw_rows(n_rows, n_drawn, seed, f"landmarks/{stage}")
        order = np.argsort(drawn)
        points = gather(drawn[order])[np.argsort(order)]
        distinct = first_of_equal_rows(points)
        if len(distinct) >= n_landmarks:
            return np.sort(drawn[distinct[:n_landmarks]])
        if n_drawn >= n_rows:
            raise DataError(
                f"{n_landmarks} landmarks were asked for, but these {n_rows} points have only {len(distinct)} distinct "
                f"rows; ask for at most {len(distinct)} landmarks"
            )
        n_drawn = 2 * n_drawn if n_drawn > n_landmarks else n_landmarks + n_landmarks // SPARE_FRACTION + 1


def n_spread_candidates(n_landmarks: int, n_rows: int) -> int:
    """Return L + M, the number of random candidates from which `spread_landmarks` keeps L: M = L/2 where N allows."""
    return min(n_rows, n_landmarks + int(np.ceil(SPREAD_EXCESS * n_landmarks)))


def spread_landmarks(candidates: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    """Return the rows (n_landmarks,) int64, ascending, of candidates left when closest pairs have lost one point each.

    The closest pair of those left loses one of its two points, drawn at random, until `n_landmarks` are left.
    Candidates (L + M, D) are distinct random points, and M decides how evenly the landmarks spread. Fewer candidates
    than landmarks are a DataError. Source: [LLL] 4.4, which takes all M pairs at once; one at a time never drops both
    points of a pair.
    """
    n_candidates = len(candidates)
    if n_landmarks > n_candidates:
        raise DataError(
            f"{n_landmarks} landmarks were asked for, but there are only {n_candidates} candidates: ask for fewer"
        )
    rows = np.ascontiguousarray(candidates)
    indices, distances = nearest_landmarks(rows, rows, min(LISTED_NEIGHBORS + 1, n_candidates))
    words = row_words(seed, "landmarks/spread", 0, n_candidates)
    alive = np.ones(n_candidates, dtype=bool)
    queue = [(-1.0, position, -1, 0) for position in range(n_candidates)]
    n_left = n_candidates
    while n_left > n_landmarks:
        _, position, partner, next_entry = heapq.heappop(queue)
        if not alive[position]:
            continue
        if partner >= 0 and alive[partner]:
            alive[position if words[position] > words[partner] else partner] = False
            n_left -= 1
            next_entry -= 1  # a surviving point looks at the same entry again, finds it dropped and takes the next
        if alive[position]:
            heapq.heappush(queue, _next_pair(rows, alive, indices[position], distances[position], position, next_entry))
    return np.flatnonzero(alive)


def _next_pair(
    rows: np.ndarray, alive: np.ndarray, listed: np.ndarray, distances: np.ndarray, position: int, next_entry: int
) -> tuple[float, int, int, int]:
    """Return (distance, position, its nearest partner left, where to look next)."""
    for entry in range(max(next_entry, 0), len(listed)):
        partner = int(listed[entry])
        if partner != position and alive[partner]:
            return float(distances[entry]), position, partner, entry + 1
    partner, distance = _nearest_left(rows, alive, position)
    return distance, position, partner, len(listed)


@compiled
def _nearest_left(rows: np.ndarray, alive: np.ndarray, position: int) -> tuple[int, float]:
    nearest, least = -1, np.inf
    for other in range(rows.shape[0]):
        if alive[other] and other != position:
            distance = squared_distance(rows[position], rows[other], least)
            if distance < least:
                nearest, least = other, distance
    return nearest, least
