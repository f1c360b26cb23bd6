"""Scores of single points of a map, beside loops over their definitions."""

import numpy as np

from scalemani.kernels.doubt import agreements, centers_elsewhere, shares_within


def row_of(weights):
    """Return one row in CSR form, of the points behind the first."""
    return np.array([0, len(weights)]), np.arange(1, len(weights) + 1), np.asarray(weights, float)


def test_the_centre_elsewhere_is_that_of_the_neighbours_of_the_other_group():
    draws = np.random.default_rng(0)
    near, far = draws.normal(size=(12, 2)), draws.normal(loc=(30.0, 0.0), size=(8, 2))
    weights = draws.uniform(0.5, 1.0, size=20)
    found = centers_elsewhere(np.concatenate([np.zeros((1, 2)), near, far]), row_of(weights), np.array([0]))
    np.testing.assert_allclose(found[0], np.average(far, axis=0, weights=weights[12:]), rtol=1e-12)


def test_neighbours_of_weight_zero_are_no_group():
    places = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [500.0, 0.0]])
    found = centers_elsewhere(places, row_of([1.0, 1.0, 1.0, 0.0]), np.array([0]))
    assert found[0, 0] <= 2.0


def test_shares_count_what_lists_have_in_common():
    draws = np.random.default_rng(1)
    lists = np.array([draws.permutation(30)[:6] for _ in range(20)])
    longer = np.array([draws.permutation(30)[:11] for _ in range(20)])
    common = [len({*one} & {*other}) / 6 for one, other in zip(lists.tolist(), longer.tolist(), strict=True)]
    np.testing.assert_array_equal(shares_within(lists, longer), common)


def test_agreements_are_correlations_of_the_nearer_half_in_two_orders():
    draws = np.random.default_rng(2)
    in_data, in_map = draws.uniform(size=(9, 40)), draws.uniform(size=(9, 40))
    in_map[3], in_map[4] = in_data[3], 1.0
    found = agreements(in_data, in_map)
    for row in (0, 1, 2, 3):
        one, other = in_map[row][np.argsort(in_data[row])[:20]], sorted(in_map[row])[:20]
        np.testing.assert_allclose(found[row], np.corrcoef(one, other)[0, 1], rtol=1e-12)
    assert found[3] == 1.0
    assert found[4] == 0.0
