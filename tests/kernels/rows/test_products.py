import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.rows.products import (
    PANEL_ROWS,
    QUERY_GROUP,
    ROWS_AT_ONCE,
    build_panels,
    center_queries,
    middle_row,
    multiply_panel,
    number_lanes,
    whole_groups,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 300),
    n_queries=st.integers(1, 27),
    n_dims=st.integers(1, 70),
    offset=st.sampled_from([0.0, 1e4]),
)
def test_products_are_squared_distances_and_missing_rows_are_far(seed, n_rows, n_queries, n_dims, offset):
    draws = np.random.default_rng(seed)
    rows = (draws.normal(size=(n_rows, n_dims)) + offset).astype(np.float32)
    table = (draws.normal(size=(n_queries + 3, n_dims)) + offset).astype(np.float32)
    members = draws.permutation(n_queries + 3)[:n_queries]
    center = middle_row(rows)
    panels, norms = build_panels(rows, center)
    n_padded = whole_groups(n_queries)
    queries, bases = np.full((n_padded, n_dims), np.nan, np.float32), np.zeros(n_padded, np.float32)
    center_queries(table, members, center, queries, bases)
    found = np.empty((n_padded, len(panels) * PANEL_ROWS), np.float32)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), np.float32)
    for first in range(0, n_padded, QUERY_GROUP):
        for panel in range(len(panels)):
            multiply_panel(queries, bases, first, panels, norms, panel, products)
            found[first : first + QUERY_GROUP, panel * PANEL_ROWS : (panel + 1) * PANEL_ROWS] = products
    away = table[members].astype(float)[:, None] - rows.astype(float)[None]
    lengths = np.square(rows.astype(float) - center).sum(axis=1) + np.square(table[members].astype(float) - center).sum(
        axis=1, keepdims=True
    )
    assert np.all(abs(found[:n_queries, :n_rows] - np.square(away).sum(axis=2)) <= 1e-5 * lengths)
    assert np.isposinf(found[:n_queries, n_rows:]).all()


@pytest.mark.parametrize("n_dims", [1, 4, 5, 64])
def test_a_product_depends_on_its_two_rows_alone(n_dims):
    draws = np.random.default_rng(0)
    rows, table = (
        draws.normal(size=(200, n_dims)).astype(np.float32),
        draws.normal(size=(30, n_dims)).astype(np.float32),
    )
    center = np.zeros(n_dims, np.float32)

    def product(rows, row, table, query):
        panels, norms = build_panels(rows, center)
        n_padded = whole_groups(len(table))
        queries, bases = np.empty((n_padded, n_dims), np.float32), np.zeros(n_padded, np.float32)
        center_queries(table, np.arange(len(table)), center, queries, bases)
        products, group = np.empty((QUERY_GROUP, PANEL_ROWS), np.float32), query // QUERY_GROUP * QUERY_GROUP
        multiply_panel(queries, bases, group, panels, norms, row // PANEL_ROWS, products)
        return products[query - group, row % PANEL_ROWS]

    assert (
        product(rows, 150, table, 22)
        == product(rows[140:], 10, table[14:], 8)
        == product(rows[150:151], 0, table[[22] * 4], 3)
    )


def test_the_middle_is_near_the_mean_and_no_two_far_rows_move_it_away():
    rows = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    assert np.abs(middle_row(rows) - rows.mean(axis=0)).max() < 0.5
    rows[[17, 230]] = 1e16, -1e16, 1e7
    assert np.abs(middle_row(rows)).max() < 0.5


def test_means_are_summed_in_float64_and_none_is_zero():
    rows = np.full((100_000, 2), 0.1, np.float32)
    np.testing.assert_array_equal(middle_row(rows), np.float32(0.1))
    np.testing.assert_array_equal(middle_row(rows[:0]), 0.0)
    np.testing.assert_array_equal(middle_row(np.float32([[1.0, 5.0], [3.0, -5.0]])), [2.0, 0.0])


def test_lanes_are_numbered_from_the_first():
    numbers = np.empty(PANEL_ROWS, np.int32)
    number_lanes(numbers, 1000)
    np.testing.assert_array_equal(numbers, np.arange(1000, 1000 + PANEL_ROWS))


def test_queries_come_in_whole_groups():
    assert [whole_groups(n) for n in (0, 1, QUERY_GROUP, QUERY_GROUP + 1)] == [
        0,
        QUERY_GROUP,
        QUERY_GROUP,
        2 * QUERY_GROUP,
    ]
    assert QUERY_GROUP % ROWS_AT_ONCE == 0
