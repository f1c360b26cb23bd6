"""Landmarks by any method, among points in memory or in a store: the same ones for the same seed."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.anchors import tiles
from scalemani.kernels.landmarks.diverse import Diversity, determinantal_rows, repulsive_rows
from scalemani.kernels.landmarks.gaussian.active import active_landmarks
from scalemani.kernels.landmarks.gaussian.ascent import Process, learned_landmarks
from scalemani.kernels.landmarks.gaussian.batches import drawn_batches
from scalemani.kernels.landmarks.minibatch import (
    MinibatchState,
    centroids_of,
    minibatch_start,
    minibatch_step,
    snap_rows,
    snap_start,
    snap_step,
)
from scalemani.kernels.landmarks.seeding import kmeans_plus_plus, minmax_landmarks
from scalemani.kernels.landmarks.uniform import (
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)
from scalemani.kernels.rows.points_by_row import PointsByRow


class Choice(NamedTuple):
    """How landmarks are chosen.

    Parameters
    ----------
    n_landmarks : L, at most N
    method : one of `LANDMARK_METHODS`
    seed : of every draw
    sample_points : points that k-means takes in batches, and among which the methods choose that compare every
        candidate with every landmark
    snap : whether a centroid of k-means gives way to the data point nearest to it
    diversity : of determinantal landmarks
    process : of those of Gaussian processes
    advance : called after each landmark by methods of `ONE_BY_ONE`
    """

    n_landmarks: int
    method: str = "random"
    seed: int = 0
    sample_points: int = 100_000
    snap: bool = True
    diversity: Diversity = Diversity()
    process: Process = Process()
    advance: Callable[[], None] | None = None


class Selected(NamedTuple):
    """Landmarks (L, D), and their rows (L,) int64, ascending; None where they lie off the data.

    `certificates` say what a method measured on its way.
    """

    points: np.ndarray
    rows: np.ndarray | None
    certificates: Mapping[str, float] = MappingProxyType({})


def selected_landmarks(points: PointsByRow, choice: Choice) -> Selected:
    """Return landmarks, no two with equal coordinates.

    Parameters
    ----------
    points : N points, of which few are held at a time
    choice : how many of them, and how

    Returns
    -------
    Selected, in the dtype of the points, and in float64 where landmarks lie off the data

    Raises
    ------
    DataError
        When the points, or their sample, have fewer than `n_landmarks` distinct rows.
    ConfigError
        For a sigma that cannot serve, and for more points than exact determinantal sampling takes.
    """
    return LANDMARK_METHODS[choice.method](points, choice)


def at_rows(points: PointsByRow, rows: np.ndarray) -> Selected:
    """Return the points at rows as landmarks."""
    ascending = np.sort(rows)
    return Selected(points[ascending], ascending)


def _random(points: PointsByRow, choice: Choice) -> Selected:
    return at_rows(points, _random_rows(points, choice))


def _random_rows(points: PointsByRow, choice: Choice) -> np.ndarray:
    return random_landmarks(len(points), choice.n_landmarks, choice.seed, points.__getitem__)


def _spread(points: PointsByRow, choice: Choice) -> Selected:
    n_landmarks, n_candidates = choice.n_landmarks, n_spread_candidates(choice.n_landmarks, len(points))
    while True:
        try:
            candidates = random_landmarks(len(points), n_candidates, choice.seed, points.__getitem__, "spread")
        except DataError:  # repeated points can leave fewer than L + M, which is an error only below L
            if n_candidates == n_landmarks:
                raise
            n_candidates = n_landmarks + (n_candidates - n_landmarks) // 2
            continue
        return at_rows(points, candidates[spread_landmarks(points[candidates], n_landmarks, choice.seed)])


def _seeds(points: PointsByRow, choice: Choice) -> Selected:
    rows = _sample(points, choice)
    return at_rows(points, rows[kmeans_plus_plus(points[rows], choice.n_landmarks, choice.seed)])


def _minmax(points: PointsByRow, choice: Choice) -> Selected:
    rows = _sample(points, choice)
    return at_rows(points, rows[minmax_landmarks(points[rows], choice.n_landmarks, choice.seed)])


def _kmeans(points: PointsByRow, choice: Choice) -> Selected:
    seeds = _random_rows(points, choice)
    return _clustered(points, points[_sample(points, choice)], seeds, choice)


def _kmeans_plus_plus(points: PointsByRow, choice: Choice) -> Selected:
    rows = _sample(points, choice)
    sample = points[rows]
    return _clustered(points, sample, rows[kmeans_plus_plus(sample, choice.n_landmarks, choice.seed)], choice)


def _repulsive(points: PointsByRow, choice: Choice) -> Selected:
    n_landmarks, seed, n_sampled = choice.n_landmarks, choice.seed, max(choice.sample_points, choice.n_landmarks)
    found = repulsive_rows(points, n_landmarks, seed, choice.diversity, n_sampled)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)


def _determinantal(points: PointsByRow, choice: Choice) -> Selected:
    found = determinantal_rows(points, choice.n_landmarks, choice.seed, choice.diversity)
    return at_rows(points, found.rows)._replace(certificates=found.certificates)


def _active(points: PointsByRow, choice: Choice) -> Selected:
    rows = _sample(points, choice)
    first = int(generator(choice.seed, "landmarks/active").integers(len(rows)))
    return at_rows(points, rows[active_landmarks(points[rows], choice.n_landmarks, choice.process.eta, first)])


def _ascended(points: PointsByRow, choice: Choice) -> Selected:
    n_landmarks, seed, process = choice.n_landmarks, choice.seed, choice.process
    batches = drawn_batches(points, n_landmarks, seed, choice.sample_points, process.batch_points)
    found = learned_landmarks(batches, n_landmarks, process, seed, choice.advance)
    objectives = {"first_objective": float(found.objectives[0]), "last_objective": float(found.objectives[-1])}
    return Selected(found.landmarks, None, objectives)


def _sample(points: PointsByRow, choice: Choice) -> np.ndarray:
    return sample_rows(choice.seed, "landmarks/sample", len(points), max(choice.sample_points, choice.n_landmarks))


def _clustered(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray, choice: Choice) -> Selected:
    """Return the centroids of mini-batch k-means over tiles of all points in random order, or the rows next to them."""
    n_points = len(points)
    state = minibatch_start(sample, points[seeds])
    n_tiles = -(-n_points // TILE_ROWS)
    order = generator(choice.seed, "landmarks/tiles").permutation(n_tiles)
    for tile in order[: max(1, choice.sample_points // TILE_ROWS)]:
        state = minibatch_step(state, points[_tile_rows(int(tile), n_points)])
    if not choice.snap:
        return Selected(_distinct(centroids_of(state), points[seeds]), None)
    return at_rows(points, _snapped(points, state, seeds))


def _distinct(centroids: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Return centroids (L, D) float64; one that another one equals gives way to a seed."""
    candidates = np.concatenate([centroids, seeds.astype(np.float64)])
    return candidates[first_of_equal_rows(candidates)[: len(seeds)]]


def _snapped(points: PointsByRow, state: MinibatchState, seeds: np.ndarray) -> np.ndarray:
    snapped = snap_start(len(seeds))
    for start, tile in tiles(points):
        snapped = snap_step(snapped, state, tile, start)
    nearest = snap_rows(snapped)
    # Centroids whose nearest points were all taken, or are repeated, give way to the seeds.
    candidates = np.concatenate([nearest[nearest >= 0], seeds])
    candidates = candidates[np.sort(np.unique(candidates, return_index=True)[1])]
    return candidates[first_of_equal_rows(points[candidates])[: len(seeds)]]


def _tile_rows(tile: int, n_points: int) -> np.ndarray:
    return np.arange(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, n_points))


ONE_BY_ONE = ("gp",)  # methods that take so long for a landmark that each is told of
LANDMARK_METHODS: dict[str, Callable[[PointsByRow, Choice], Selected]] = {
    "random": _random,
    "spread": _spread,
    "kmeans": _kmeans,
    "kmeans++": _kmeans_plus_plus,
    "kmeans++ seeding": _seeds,
    "minmax": _minmax,
    "dpp": _repulsive,
    "dpp-exact": _determinantal,
    "gp-active": _active,
    "gp": _ascended,
}
