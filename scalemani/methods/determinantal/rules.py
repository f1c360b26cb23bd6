"""The rules of landmarks: what a choice draws of N points, at a sigma that lasts."""

from collections.abc import Callable

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.memory_model import Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.blas import BLAS
from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import SIGMA_QUERIES, spacing_sigma
from scalemani.kernels.landmarks.selection import Selected, at_rows
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.methods.determinantal.kernels import (
    PROPOSED,
    DeterminantalChoice,
    Draw,
    draw_k_dpp,
    draw_repulsive,
    euclidean_kernel,
    geodesic_kernel,
    kernel_spectrum,
    refuse_large,
)
from scalemani.methods.determinantal.parameters import DeterminantalParams
from scalemani.stages.landmarks import PlannedRule

FAR_TOO_SMALL = 10.0  # times below the sigma that would be chosen: a sigma that repels nothing is a mistake then
COVERAGE_POINTS = 10_000  # whose distance to the nearest landmark is measured


def repulsive(points: PointsByRow, choice: DeterminantalChoice) -> Selected:
    """Return landmarks by the approximation, algorithm 2, which reads few points at a time."""

    def draw(sigma: float) -> Draw:
        drawn = draw_repulsive(points, choice, sigma)
        if len(drawn.rows) < choice.n_landmarks and not drawn.repelled:
            raise DataError(
                f"only {len(drawn.rows)} of {choice.n_landmarks} landmarks with coordinates of their own were found "
                "among random points: most are repeated; drop repeated rows, or give more sample_points"
            )
        return drawn

    return at_lasting_sigma(points, choice, draw)


def determinantal(points: PointsByRow, choice: DeterminantalChoice) -> Selected:
    """Return landmarks by the process itself, the exact k-DPP, of few enough points for a kernel (N, N) float64."""
    refuse_large(len(points))
    table = points[np.arange(len(points))]

    def draw(sigma: float) -> Draw:
        kernel = geodesic_kernel(table, sigma) if choice.geodesic else euclidean_kernel(table, sigma)
        with BLAS.hold_at_one():  # the last bits of eigenvectors decide which rows are drawn
            spectrum = kernel_spectrum(kernel)
            rank = len(spectrum.values)
            rows = draw_k_dpp(spectrum, min(choice.n_landmarks, rank), generator(choice.seed, "landmarks/dpp-exact"))
        # Equal points have the kernel one at any sigma.
        repelled = bool(np.any((kernel > np.finfo(np.float64).eps) & (kernel < 1.0)))
        return Draw(rows, {"rank": float(rank)}, repelled)

    return at_lasting_sigma(points, choice, draw)


def at_lasting_sigma(points: PointsByRow, choice: DeterminantalChoice, draw: Callable[[float], Draw]) -> Selected:
    """Return landmarks drawn at the sigma of the choice; one that is left open is halved until a draw has them all.

    Raises
    ------
    DataError
        For fewer distinct points than landmarks, and points that are next to all repeated.
    ConfigError
        For a sigma at which a draw ends early, or at which no landmark repels any point.
    """
    n_landmarks, usual = choice.n_landmarks, spacing_sigma(points, choice.n_landmarks, choice.seed)
    sigma = choice.sigma or usual
    while len((drawn := draw(sigma)).rows) < n_landmarks:
        if choice.sigma is not None:
            raise ConfigError(
                f"landmarks.sigma={sigma:g} is too large for these points: determinantal sampling ends after "
                f"{len(drawn.rows)} of {n_landmarks} landmarks, where what is left is zero in double precision; "
                f"landmarks.sigma={min(usual, sigma / 2):.3g} would do"
            )
        sigma /= 2
    if choice.sigma is not None and not drawn.repelled and n_landmarks > 1 and sigma < usual / FAR_TOO_SMALL:
        raise ConfigError(
            f"landmarks.sigma={sigma:g} is too small for these points: no landmark repels any of them, and landmarks "
            f"come as with method 'random'; landmarks.sigma={usual:.3g} would do"
        )
    selected = at_rows(points, drawn.rows)
    covered = coverage(points, selected.points, choice.seed)
    return selected._replace(certificates={"sigma": sigma, **drawn.certificates, **covered})


def coverage(points: PointsByRow, landmarks: np.ndarray, seed: int) -> dict[str, float]:
    """Return the mean and the largest distance of random points to their nearest landmark, in the unit of the points.

    Parameters
    ----------
    points : N points, of which 10,000 are looked at, or all
    landmarks : (L, D)
    """
    prepared = prepare_landmarks(landmarks)
    looked = sample_rows(seed, "landmarks/coverage", len(points), COVERAGE_POINTS)
    tiles = slices(len(looked), TILE_ROWS)
    squares = np.concatenate([nearest_landmarks(points[looked[tile]], prepared, 1)[1][:, 0] for tile in tiles])
    return {
        "mean_distance_to_nearest_landmark": float(np.sqrt(squares).mean()),
        "largest_distance_to_nearest_landmark": float(np.sqrt(squares.max())),
    }


def drawn_memory(sizes: Sizes) -> Terms:
    """Return what the points take that sigma is chosen by, and what the coverage of a draw is measured by."""
    dimensions, n_landmarks = sizes.dimensions, sizes.params.n_landmarks
    n_points, features, dtype = dimensions.n_points, dimensions.n_features, dimensions.dtype
    return {
        "random points, as read and in the order drawn": 2 * array(dtype, 2 * n_landmarks, features),
        "distances of random points": 3 * array("float64", min(n_landmarks, SIGMA_QUERIES), n_landmarks),
        "a tile of points in float64": 2 * array("float64", TILE_ROWS, features),
        "points whose coverage is measured": array(dtype, min(n_points, COVERAGE_POINTS), features),
        "points that fix the sketches, centred": array("float64", min(MOST_SAMPLE_ROWS, n_landmarks), features),
    }


class Repulsive(PlannedRule[DeterminantalChoice]):
    """The approximation, for any number of points."""

    choice = DeterminantalChoice

    def select(self, points: PointsByRow, choice: DeterminantalChoice) -> Selected:
        """Return landmarks by algorithm 2."""
        return repulsive(points, choice)

    def memory(self, sizes: Sizes) -> Terms:
        """Return what a draw takes of the points that it proposes."""
        dimensions, params, n_landmarks = sizes.dimensions, sizes.params, sizes.params.n_landmarks
        n_points, features, dtype = dimensions.n_points, dimensions.n_features, dimensions.dtype
        n_sampled = 0
        if params.part(DeterminantalParams).neighborhood is not None:
            n_sampled = min(n_points, max(params.landmarks.sample_points, n_landmarks))
        return {
            **drawn_memory(sizes),
            "bounds of probabilities": array("float64", n_points),
            "points proposed together, and landmarks as drawn": array(dtype, 2 * PROPOSED + n_landmarks, features),
            "sample that neighbourhoods are measured in": 2 * array(dtype, n_sampled, features),
        }


class Determinantal(PlannedRule[DeterminantalChoice]):
    """The process itself, of few points."""

    choice = DeterminantalChoice

    def select(self, points: PointsByRow, choice: DeterminantalChoice) -> Selected:
        """Return landmarks by the exact k-DPP."""
        return determinantal(points, choice)

    def memory(self, sizes: Sizes) -> Terms:
        """Return what the kernel between all points takes."""
        n_points = sizes.dimensions.n_points
        return {
            **drawn_memory(sizes),
            "points in float64": 2 * array("float64", n_points, sizes.dimensions.n_features),
            # Distances, kernel, eigenvectors, what LAPACK works in, and those that are kept.
            "kernel and its eigenvectors": 5 * array("float64", n_points, n_points),
        }

    def check(self, params: Resolved, n_points: int) -> None:
        """Refuse more points than the process takes."""
        refuse_large(n_points)
