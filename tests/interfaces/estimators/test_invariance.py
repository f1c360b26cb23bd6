"""What may not change when points are moved, and bounds that hold for any embedding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

import scalemani as sm

ROWS = np.random.default_rng(0).random((300, 4))
NEIGHBORS = 10


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_moves_with_the_points(seed):
    rng = np.random.default_rng(seed)
    order, turn, far = rng.permutation(len(ROWS)), ortho_group.rvs(4, random_state=rng), 10 * rng.normal(size=4)
    before = sm.knn_graph(ROWS, NEIGHBORS, method="exact")
    moved = sm.knn_graph((ROWS @ turn + far)[order], NEIGHBORS, method="exact")
    np.testing.assert_array_equal(order[np.asarray(moved.indices)], np.asarray(before.indices)[order])
    np.testing.assert_allclose(np.asarray(moved.distances), np.asarray(before.distances)[order], rtol=1e-9)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-6, 1e3), method=st.sampled_from(["t-sne", "s-sne"]))
def test_divergences_are_never_negative(seed, scale, method):
    """The objective and the negative entropy of W add up to the Kullback-Leibler divergence of W from the map."""
    rng = np.random.default_rng(seed)
    graph = sm.knn_graph(ROWS[:60], 6, method="exact")
    weights = sm.symmetric_affinities(
        np.asarray(graph.indices), sm.entropic_affinities(np.asarray(graph.distances), 3).values
    )
    weights = weights / weights.sum()
    value, _ = sm.objective(scale * rng.normal(size=(60, 2)), weights, method=method, repulsion="exact")
    assert value + float((weights.data * np.log(weights.data)).sum()) >= -1e-12


def test_float32_points_have_nearly_the_spectrum_of_float64_ones():
    model = sm.LaplacianEigenmaps(n_landmarks=60, perplexity=5, random_state=0)
    double = model.fit(ROWS).eigenvalues_.copy()
    np.testing.assert_allclose(model.fit(ROWS.astype(np.float32)).eigenvalues_, double, rtol=1e-4)
