"""How maps stretch: against metrics that are known in closed form, and the estimate by a graph Laplacian."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import scalemani as sm
from scalemani.errors import DataError
from scalemani.kernels.stretch import local_stretch

N, K = 20_000, 15


def swiss_roll(rng):
    """A sheet rolled up without stretching, and a map that doubles its length and halves its height."""
    angles, heights = 1.5 * np.pi * (1 + 2 * rng.random(N)), 21 * rng.random(N)
    arcs = (angles * np.hypot(1, angles) + np.arcsinh(angles)) / 2
    points = np.stack([angles * np.cos(angles), heights, angles * np.sin(angles)], axis=1)
    return points, np.stack([2 * arcs, heights / 2], axis=1), np.broadcast_to(np.diag([4.0, 0.25]), (N, 2, 2))


def sphere(rng):
    """A sphere mapped to itself: the metric projects onto the tangent plane."""
    points = rng.normal(size=(N, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points, points, np.eye(3) - points[:, :, np.newaxis] * points[:, np.newaxis]


def lower_half(rng):
    """Its lower half by stereographic projection from the north: a conformal map, lengths times 1 / (1 - z)."""
    points, _, _ = sphere(rng)
    points[:, 2] = -abs(points[:, 2])
    factors = 1 / (1 - points[:, 2])
    return points, points[:, :2] * factors[:, np.newaxis], factors[:, np.newaxis, np.newaxis] ** 2 * np.eye(2)


def errors_of(metric, known):
    """The error at each point, in the spectral norm and relative to that of the known metric."""
    return np.linalg.norm(metric - known, 2, axis=(1, 2)) / np.linalg.norm(known, 2, axis=(1, 2))


@pytest.mark.parametrize("surface", [swiss_roll, sphere, lower_half])
def test_the_metric_of_known_maps_is_met_within_a_tenth_at_nine_points_of_ten(surface):
    points, positions, known = surface(np.random.default_rng(0))
    lists = cKDTree(points).query(points, K + 1)[1]
    stretch = local_stretch(points[lists], positions[lists], 2)
    errors = errors_of(stretch.metric, known)
    assert np.mean(errors < 0.1) > 0.99
    assert np.quantile(errors, 0.9) < 0.02
    axes = np.sqrt(np.linalg.eigvalsh(known)[:, -2:].clip(0))
    np.testing.assert_allclose(np.median(stretch.area / axes.prod(axis=1)), 1, atol=0.01)
    np.testing.assert_allclose(np.median(stretch.anisotropy / (axes[:, 1] / axes[:, 0])), 1, atol=0.01)
    assert np.quantile(stretch.explained, 0.1) > 0.99


def test_a_graph_laplacian_over_entropic_affinities_does_not_meet_it():
    """Perrault-Joncas and Meila's sum, half L(yy) - y L y, in units of the affinities' own second moment."""
    points, positions, known = sphere(np.random.default_rng(0))
    distances, lists = (part[:, 1:] for part in cKDTree(points).query(points, 91))
    shares = sm.entropic_affinities(distances, perplexity=30).values
    shares /= shares.sum(axis=1, keepdims=True)
    moves = positions[lists] - positions[:, np.newaxis]
    moments = (shares * distances**2).sum(axis=1) / 2  # of one of two tangent directions
    metric = np.einsum("nk,nka,nkb->nab", shares, moves, moves) / moments[:, np.newaxis, np.newaxis]
    assert np.mean(errors_of(metric, known) < 0.1) < 0.5


def test_linear_maps_of_flat_data_are_exact_and_their_area_is_the_determinant():
    rng = np.random.default_rng(1)
    plane, slopes = np.linalg.qr(rng.normal(size=(6, 2)))[0], rng.normal(size=(40, 2, 2))
    coordinates = 1e-3 * rng.normal(size=(40, 12, 2))
    points = coordinates @ plane.T + 5.0
    stretch = local_stretch(points, coordinates @ slopes.transpose(0, 2, 1) - 7.0, 2)
    np.testing.assert_allclose(stretch.metric, slopes @ slopes.transpose(0, 2, 1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(stretch.area, abs(np.linalg.det(slopes)), rtol=1e-7)
    np.testing.assert_allclose(stretch.anisotropy, np.linalg.cond(slopes), rtol=1e-7)
    np.testing.assert_allclose(stretch.explained, 1.0)


def test_noise_in_the_map_is_not_explained():
    rng = np.random.default_rng(2)
    stretch = local_stretch(rng.normal(size=(300, 40, 5)), rng.normal(size=(300, 40, 2)), 2)
    np.testing.assert_allclose(stretch.explained.mean(), 2 / 39, atol=0.01)  # two directions of 39 by chance


def test_neighbours_on_a_line_have_no_area():
    line = np.linspace(0, 1, 9)[np.newaxis, :, np.newaxis] * np.ones(3)
    stretch = local_stretch(line, line[:, :, :2], 2)
    assert all(np.isnan(values).all() for values in stretch)
    np.testing.assert_allclose(local_stretch(line, line[:, :, :2], 1).area, np.sqrt(2 / 3))


def test_lengths_of_pairs_are_distances_in_the_data_whatever_the_map_does_to_them():
    """A square is rolled up in three dimensions, and mapped by a stretch that grows along it, a shear and a turn."""
    u = np.random.default_rng(2).random((4000, 2))
    points = np.column_stack([3 * np.cos(u[:, 0] / 3), 3 * np.sin(u[:, 0] / 3), u[:, 1]])
    positions = np.column_stack([np.exp(2 * u[:, 0]), 0.2 * u[:, 1] + np.exp(2 * u[:, 0])]) @ [[0.6, 0.8], [-0.8, 0.6]]
    near = cKDTree(points).query(points, 16)[1]
    stretch = local_stretch(points[near], positions[near], 2)
    inside = np.flatnonzero((np.abs(u - 0.5) < 0.45).all(axis=1))
    pairs = np.column_stack([inside, near[inside, 8]])
    truth = np.linalg.norm(u[pairs[:, 0]] - u[pairs[:, 1]], axis=1)
    ratios = stretch.lengths(positions, pairs) / truth
    assert np.mean(np.abs(ratios - 1) < 0.1) > 0.9
    plain = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1) / truth
    assert plain.max() > 5 * plain.min()
    for wrong, match in (
        ([[0, 4000]], "rows from 0 to 3999, got 0 to 4000"),
        ([[0, -1]], "got -1 to 0"),
        ([[0.0, 1.0]], "whole numbers"),
    ):
        with pytest.raises(DataError, match=match):
            stretch.lengths(positions, np.array(wrong))
