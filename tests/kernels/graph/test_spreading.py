import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.product import spread_to_neighbors


def affinity_rows(matrix):
    matrix = sp.csr_matrix(matrix)
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def plain_spread(weights, positions):
    """Waves of means, by dense sums."""
    positions, known = positions.copy(), ~np.isnan(positions[:, 0])
    middle = positions[known].mean(axis=0)
    while not known.all():
        totals = weights[:, known].sum(axis=1)
        reached = ~known & (totals > 0)
        if not reached.any():
            positions[~known] = middle
            return positions
        positions[reached] = (weights[:, known] @ positions[known])[reached] / totals[reached, np.newaxis]
        known |= reached
    return positions


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 4), st.sampled_from([0.02, 0.1, 0.5]))
def test_points_without_a_position_get_the_weighted_mean_of_their_neighbours_wave_by_wave(seed, n, d, density):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.1, 1, (n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    weights = (weights + weights.T).astype(np.float32)
    given_positions = rng.normal(size=(n, d))
    given_positions[rng.permutation(n)[: rng.integers(0, n)]] = np.nan
    expected, found = plain_spread(weights, given_positions), given_positions.copy()
    filled = spread_to_neighbors(affinity_rows(weights), found)
    np.testing.assert_array_equal(filled, np.flatnonzero(np.isnan(given_positions[:, 0])))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    kept = ~np.isnan(given_positions[:, 0])
    np.testing.assert_array_equal(found[kept], given_positions[kept])
    lacking, of_lacking = np.flatnonzero(~kept), given_positions.copy()
    numbers = np.union1d(lacking, rng.permutation(n)[:3])
    spread_to_neighbors(affinity_rows(weights[numbers]), of_lacking, numbers)
    np.testing.assert_array_equal(of_lacking, found)
