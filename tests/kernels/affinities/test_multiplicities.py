import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.kernels.affinities.entropic import (
    Multiplicities,
    copies_of_neighbors,
    entropic_affinities,
    loops,
    repeated_affinities,
    repeated_entropies,
    summed_over_copies,
)
from scalemani.kernels.affinities.entropy import (
    bracket_of_masses,
    differences_from_nearest,
    entropy_and_derivatives,
    entropy_problem,
    padded_length,
)

ROWS = st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.05, 20.0)), min_size=3, max_size=40).map(sorted)


@given(ROWS, st.floats(0.01, 0.99))
def test_brackets_of_masses_hold_the_root(row, share):
    squared, masses = map(np.array, zip(*row, strict=True))
    differences = np.empty(padded_length(len(row)))
    n_ties = differences_from_nearest(squared, differences)
    ties, total = masses[:n_ties].sum(), masses.sum()
    least = max(1.0, ties)
    perplexity = least + share * (total - least)
    if n_ties == len(row) or not max(ties, 1.0) * (1 + 1e-9) < perplexity < total * (1 - 1e-9):
        return
    lower, upper = bracket_of_masses(differences, masses, n_ties, entropy_problem(len(row), perplexity, 1e-10))
    padded = np.ones_like(differences)
    padded[: len(row)] = masses
    entropies = [
        entropy_and_derivatives(differences, np.empty_like(differences), padded, beta)[1] for beta in (lower, upper)
    ]
    assert entropies[0] >= math.log(perplexity) - 1e-9
    assert entropies[1] <= math.log(perplexity) + 1e-9


def rows_with_counts():
    random = np.random.default_rng(3)
    squares = np.sort(random.gamma(3.0, 1.0, (50, 20)), axis=1)
    return squares, Multiplicities(random.integers(1, 6, 50) * 1.0, random.integers(1, 6, (50, 20)) * 1.0)


def test_a_row_is_that_in_which_every_neighbour_is_repeated():
    squares, counts = rows_with_counts()
    found = repeated_affinities(squares, 12.0, counts, tol=1e-13)
    for i in range(50):
        n_twins, times = int(counts.points[i]) - 1, counts.neighbors[i].astype(int)
        expanded = np.concatenate([np.zeros(n_twins), np.repeat(squares[i], times)])
        expected = entropic_affinities(expanded[np.newaxis], 12.0, tol=1e-13)
        shares = np.concatenate([np.full(n_twins, found.of_copies[i]), np.repeat(found.rows.values[i], times)])
        np.testing.assert_allclose(shares, expected.values[0], rtol=0, atol=1e-13)
        assert len(expanded) == copies_of_neighbors(counts)[i]
    entropies = repeated_entropies(found.rows.values, found.of_copies, counts)
    np.testing.assert_allclose(entropies, math.log(12.0), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_copies_count_every_pair(dtype):
    counts = Multiplicities(np.array([3.0, 1.0]), np.array([[1.0, 2.0], [3.0, 2.0]]))
    summed = summed_over_copies(np.array([[0.5, 0.25], [1.0, 0.0]], dtype), counts)
    np.testing.assert_array_equal(summed, [[1.5, 1.5], [3.0, 0.0]])
    assert summed.dtype == dtype
    np.testing.assert_array_equal(loops(np.array([0.5, 0.0]), counts.points), [3.0, 0.0])
