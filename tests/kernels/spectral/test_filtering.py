"""Polynomials in a graph that damp what vectors have of far eigenvectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial import chebyshev

from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.filtering import (
    DAMPED_UP_TO,
    MOST_DEGREE,
    POLYNOMIALS,
    degree_for,
    filtered,
    filtered_state,
)
from scalemani.kernels.spectral.refinement import RefinementProblem

N_POINTS = 700


@pytest.fixture(scope="module")
def graph(knn_affinities, graph_of):
    return graph_of(knn_affinities(N_POINTS), dtype=np.float64)


@pytest.fixture(scope="module")
def spectrum(graph):
    """Eigenvalues of S = D^-1/2 W D^-1/2, descending, and its eigenvectors, by NumPy."""
    dense = graph.w.toarray()
    roots = 1 / np.sqrt(dense.sum(axis=1))
    values, vectors = np.linalg.eigh(roots[:, np.newaxis] * dense * roots)
    return values[::-1], vectors[:, ::-1]


def problem_of(graph, over=map):
    return RefinementProblem(graph.apply, lambda residuals: residuals, graph.trivial, Workspace(over))


def perturbed(spectrum, size, seed=0):
    """Two leading eigenvectors next to the trivial one, with shares of those that are damped."""
    values, vectors = spectrum
    far = vectors[:, values < DAMPED_UP_TO]
    draws = np.random.default_rng(seed).normal(size=(far.shape[1], 2))
    return vectors[:, 1:3] + far @ (size * draws / np.linalg.norm(draws, axis=0))


def residuals(graph, vectors):
    roots = sp.diags_array(1 / np.sqrt(np.asarray(graph.w.sum(axis=1)).ravel()))
    unit = vectors / np.linalg.norm(vectors, axis=0)
    images = roots @ graph.w @ roots @ unit
    return np.linalg.norm(images - unit * (unit * images).sum(axis=0), axis=0)


@pytest.mark.parametrize("degree", [1, 2, 5, 9])
def test_vectors_are_multiplied_by_the_polynomial_that_is_one_at_one(graph, spectrum, degree):
    values, basis = spectrum
    start = np.random.default_rng(1).normal(size=(N_POINTS, 3))
    before = graph.passes
    found = filtered(start.copy(), graph.apply(start), problem_of(graph), degree)
    assert graph.passes - before == degree
    alone = [0] * degree + [1]
    places = (2 * np.append(values, 1.0) + 1 - DAMPED_UP_TO) / (1 + DAMPED_UP_TO)
    factors = chebyshev.chebval(places, alone)
    expected = basis @ ((factors[:-1] / factors[-1])[:, np.newaxis] * (basis.T @ start))
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("size", [1e-5, 1e-3, 0.05])
def test_what_is_far_is_damped_until_residuals_are_within_the_target(graph, spectrum, size):
    start, target = perturbed(spectrum, size), 1e-3
    before = graph.passes
    state = filtered_state(start.copy(), problem_of(graph), 2, 2, target, 100)
    assert state.passes == graph.passes - before
    assert residuals(graph, state.vectors).max() < target
    np.testing.assert_allclose(state.residuals, residuals(graph, state.vectors), rtol=1e-6)
    if size > target:
        shorter = filtered_state(start.copy(), problem_of(graph), 2, 2, target, state.passes - 2)
        assert shorter.passes == state.passes - 2
        assert residuals(graph, shorter.vectors).max() > target


def test_what_is_nearer_than_that_takes_few_polynomials_and_is_left_to_steps(graph, spectrum):
    values, vectors = spectrum
    near = np.flatnonzero((values > DAMPED_UP_TO) & (np.arange(N_POINTS) > 4))
    start = vectors[:, 1:3] + 0.05 * vectors[:, near[:2]]
    state = filtered_state(start, problem_of(graph), 2, 2, 1e-6, 200)
    assert state.passes <= 1 + POLYNOMIALS * MOST_DEGREE
    assert state.residuals.max() > 1e-6


def test_only_the_wanted_columns_decide_and_those_of_any_length(graph, spectrum):
    start = np.hstack([perturbed(spectrum, 1e-5) * [1e-6, 1e6], perturbed(spectrum, 0.3, 2) + spectrum[1][:, 3:5]])
    assert filtered_state(start.copy(), problem_of(graph), 4, 2, 1e-3, 100).passes == 2
    assert filtered_state(start.copy(), problem_of(graph), 4, 3, 1e-3, 100).passes > 5
    start[:, 0] = 0
    assert np.isfinite(filtered_state(start, problem_of(graph), 4, 2, 1e-3, 100).vectors).all()


def test_degrees_rise_with_the_ratio_to_their_limit():
    degrees = [degree_for(ratio) for ratio in (0.0, 0.5, 2.0, 20.0, 200.0, 1e9)]
    assert degrees == sorted(degrees)
    assert (degrees[0], degrees[-1]) == (0, MOST_DEGREE)


def test_float32_stays_float32_and_bits_do_not_depend_on_blocks(graph_of, knn_affinities):
    start = np.random.default_rng(3).normal(size=(N_POINTS, 2)).astype(np.float32)
    results = [
        filtered_state(start.copy(), problem_of(graph_of(knn_affinities(N_POINTS), size)), 2, 2, 1e-4, 9).vectors
        for size in (N_POINTS, 64)
    ]
    assert results[0].dtype == np.float32
    np.testing.assert_array_equal(*results)
