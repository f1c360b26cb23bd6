"""Scores of single points of a map, beside loops over their definitions."""

import numpy as np
from scipy import sparse

from scalemani.kernels.doubt import agreements, centers_elsewhere, padded_rows, shares_within


def test_padded_rows_are_those_of_the_matrix_and_name_the_point_itself_behind_them():
    matrix = sparse.random(40, 40, 0.15, format="csr", random_state=0, dtype=np.float32)
    part, own = matrix[10:25], np.arange(10, 25)
    columns, values = padded_rows((part.indptr, part.indices, part.data), own)
    dense = np.zeros((15, 40))
    np.add.at(dense, (np.arange(15)[:, np.newaxis], columns), values)
    np.testing.assert_array_equal(dense, part.toarray())
    assert all(set(columns[row, values[row] == 0]) <= {own[row]} for row in range(15))


def test_rows_without_an_entry_are_padded_too():
    columns, values = padded_rows((np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)), np.arange(2))
    assert columns.tolist() == [[0], [1]]
    assert not values.any()


def test_the_centre_elsewhere_is_that_of_the_neighbours_of_the_other_group():
    draws = np.random.default_rng(0)
    near, far = draws.normal(size=(12, 2)), draws.normal(loc=(30.0, 0.0), size=(8, 2))
    places, weights = np.concatenate([near, far])[np.newaxis], draws.uniform(0.5, 1.0, size=(1, 20))
    found = centers_elsewhere(places, weights, np.zeros((1, 2)))
    np.testing.assert_allclose(found[0], np.average(far, axis=0, weights=weights[0, 12:]), rtol=1e-12)


def test_neighbours_of_weight_zero_are_no_group():
    places = np.array([[[0.0, 1.0], [0.0, -1.0], [2.0, 0.0], [500.0, 0.0]]])
    found = centers_elsewhere(places, np.array([[1.0, 1.0, 1.0, 0.0]]), np.zeros((1, 2)))
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
