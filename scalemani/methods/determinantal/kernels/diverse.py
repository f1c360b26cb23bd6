"""Determinantal landmarks, exact and approximate: sigma from the points, and one message where a sigma cannot serve."""

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import spacing_sigma
from scalemani.kernels.landmarks.selection import Diversity
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.methods.determinantal.kernels.determinantal import (
    draw_k_dpp,
    euclidean_kernel,
    geodesic_kernel,
    kernel_spectrum,
    refuse_large,
)
from scalemani.methods.determinantal.kernels.repulsive import Repulsion, draw_repulsive

FAR_TOO_SMALL = 10.0  # times below the sigma that would be chosen: a sigma that repels nothing is a mistake then
COVERAGE_POINTS = 10_000  # whose distance to the nearest landmark is measured


class DiverseRows(NamedTuple):
    """Rows (L,) int64 in the order drawn, and what is known of how good they are."""

    rows: np.ndarray
    certificates: dict[str, float]


def repulsive_rows(
    points: PointsByRow, n_landmarks: int, seed: int, diversity: Diversity, sample_points: int
) -> DiverseRows:
    """Return landmarks by algorithm 2; a sigma that is left open is halved until its probabilities last.

    Parameters
    ----------
    points : N points
    n_landmarks : L, N at most
    sample_points : as of `Repulsion`

    Raises
    ------
    DataError
        For fewer distinct points than landmarks, and points that are next to all repeated.
    ConfigError
        For a sigma at which the probabilities die out, or at which no landmark repels any point.
    """
    usual = spacing_sigma(points, n_landmarks, seed)
    sigma = diversity.sigma or usual
    while True:
        repulsion = Repulsion(sigma, diversity.update, diversity.neighborhood, sample_points)
        draw = draw_repulsive(points, n_landmarks, repulsion, seed)
        if len(draw.rows) == n_landmarks:
            break
        if not draw.repelled:
            raise DataError(
                f"only {len(draw.rows)} of {n_landmarks} landmarks with coordinates of their own were found among "
                f"{draw.n_proposed} random points: most are repeated; drop repeated rows, or give more sample_points"
            )
        if diversity.sigma is not None:
            raise ConfigError(
                f"landmarks.sigma={sigma:g} is too large for these points: the probabilities of determinantal sampling "
                f"die out after {len(draw.rows)} of {n_landmarks} landmarks; landmarks.sigma="
                f"{min(usual, sigma / 2):.3g} would do"
            )
        sigma /= 2
    if diversity.sigma is not None and not draw.repelled:
        _refuse_small(sigma, usual, n_landmarks)
    taken = n_landmarks / draw.n_proposed
    return DiverseRows(draw.rows, {"sigma": sigma, "acceptance": taken} | coverage(points, draw.rows, seed))


def determinantal_rows(points: PointsByRow, n_landmarks: int, seed: int, diversity: Diversity) -> DiverseRows:
    """Return landmarks by the exact k-DPP; a sigma that is left open is halved until the kernel has the rank.

    Parameters
    ----------
    points : N points, few enough for a kernel (N, N) float64
    n_landmarks : L, N at most

    Raises
    ------
    DataError
        For fewer distinct points than landmarks.
    ConfigError
        For too many points, a sigma at which the kernel has too low a rank, or at which it is the identity.
    """
    refuse_large(len(points))
    usual = spacing_sigma(points, n_landmarks, seed)
    table = read_rows(points, np.arange(len(points)))
    make, sigma = geodesic_kernel if diversity.geodesic else euclidean_kernel, diversity.sigma or usual
    while True:
        kernel = make(table, sigma)
        with threadpool_limits(1, user_api="blas"):  # the last bits of eigenvectors decide which rows are drawn
            spectrum = kernel_spectrum(kernel)
        if len(spectrum.values) >= n_landmarks:
            break
        if diversity.sigma is not None:
            raise ConfigError(
                f"landmarks.sigma={sigma:g} is too large for these points: their kernel has rank "
                f"{len(spectrum.values)} in double precision, for {n_landmarks} landmarks; landmarks.sigma="
                f"{min(usual, sigma / 2):.3g} would do"
            )
        sigma /= 2
    # Equal points have the kernel one at any sigma.
    if diversity.sigma is not None and not np.any((kernel > np.finfo(np.float64).eps) & (kernel < 1.0)):
        _refuse_small(sigma, usual, n_landmarks)
    with threadpool_limits(1, user_api="blas"):
        rows = draw_k_dpp(spectrum, n_landmarks, generator(seed, "landmarks/dpp-exact"))
    return DiverseRows(rows, {"sigma": sigma, "rank": float(len(spectrum.values))} | coverage(points, rows, seed))


def _refuse_small(sigma: float, usual: float, n_landmarks: int) -> None:
    if n_landmarks > 1 and sigma < usual / FAR_TOO_SMALL:
        raise ConfigError(
            f"landmarks.sigma={sigma:g} is too small for these points: no landmark repels any of them, and landmarks "
            f"come as with method 'random'; landmarks.sigma={usual:.3g} would do"
        )


def coverage(points: PointsByRow, rows: np.ndarray, seed: int) -> dict[str, float]:
    """Return the mean and the largest distance of random points to their nearest landmark, in the unit of the points.

    Parameters
    ----------
    points : N points, of which 10,000 are looked at, or all
    rows : (L,) int64, of the landmarks
    """
    prepared = prepare_landmarks(read_rows(points, np.sort(rows)))
    looked = sample_rows(seed, "landmarks/coverage", len(points), COVERAGE_POINTS)
    tiles = [points[looked[start : start + TILE_ROWS]] for start in range(0, len(looked), TILE_ROWS)]
    distances = np.sqrt(np.concatenate([nearest_landmarks(tile, prepared, 1)[1][:, 0] for tile in tiles]))
    return {
        "mean_distance_to_nearest_landmark": float(distances.mean()),
        "largest_distance_to_nearest_landmark": float(distances.max()),
    }


def read_rows(points: PointsByRow, rows: np.ndarray) -> Any:
    """Return the points (m, D) at rows (m,), at least one, which are read tile by tile."""
    return np.concatenate([points[rows[start : start + TILE_ROWS]] for start in range(0, len(rows), TILE_ROWS)])
