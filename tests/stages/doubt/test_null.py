"""Points without structure, and what is compared with them, beside plain definitions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from scalemani.stages import doubt
from scalemani.stages.doubt import null


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_columns_keep_their_values_and_lose_what_they_say_of_each_other(kind):
    base = np.random.default_rng(0).gamma(2.0, size=500)
    points = np.column_stack([base, base**2, np.where(np.arange(500) % 5, 0.0, base)])
    found = null.permuted_columns(kind(points), np.random.default_rng(1))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(points, axis=0))
    dense = (found[:, 0] > 0) & (found[:, 1] > 0)
    assert abs(np.corrcoef(found[dense, 0], found[dense, 1])[0, 1]) < 0.2


@pytest.mark.parametrize(("metric", "scipy_name"), [("euclidean", "euclidean"), ("canberra", "canberra")])
def test_nearest_points_are_those_of_all_pairs(metric, scipy_name):
    points = np.random.default_rng(2).gamma(2.0, size=(300, 4))
    away = cdist(points, points, scipy_name)
    np.fill_diagonal(away, np.inf)
    indices, squares = null.nearest_in(points, 7, metric)
    np.testing.assert_array_equal(indices, np.argsort(away, axis=1)[:, :7])
    np.testing.assert_allclose(squares, np.sort(away, axis=1)[:, :7] ** 2, rtol=1e-9)


def test_a_p_value_is_the_share_that_agrees_as_well_and_without_a_null_map_nothing_is_known():
    scores, known = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.5, 0.5, 0.8])
    np.testing.assert_allclose(null.p_values_of(scores, known), [1.0, 4 / 5, 1 / 5])
    np.testing.assert_array_equal(null.p_values_of(scores, np.empty(0)), 1.0)


def test_parts_of_a_block_are_its_rows_few_entries_at_a_time():
    matrix = sparse.random(2500, 3000, 0.02, format="csr", random_state=3)
    parts = list(doubt.parts_of((matrix.indptr, matrix.indices, matrix.data), 2000))
    joined = sparse.vstack([sparse.csr_matrix((*rows[::-1],), (len(rows[0]) - 1, 3000)) for _, rows in parts])
    np.testing.assert_array_equal(joined.toarray(), matrix.toarray())
    assert [first for first, _ in parts] == [0, *np.cumsum([len(rows[0]) - 1 for _, rows in parts])[:-1].tolist()]
    assert all(len(rows[1]) <= 2000 for _, rows in parts)
    alone = [len(rows[0]) - 1 for _, rows in doubt.parts_of((matrix.indptr, matrix.indices, matrix.data), 1)]
    assert alone == [1] * 2500
