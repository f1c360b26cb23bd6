"""Which new points lie too far out for the embedding to say anything of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from scalemani.new_points.reach import FAR, Reach, far_away

BALL = Reach(np.array([1.0, -1.0]), 2.0)


@given(st.floats(0, 2 * np.pi), st.floats(0.0, 10.0).filter(lambda share: abs(share - 1) > 1e-9))
def test_points_are_beyond_where_their_distance_is_more_than_far_times_the_radius(angle, share):
    way = np.array([np.cos(angle), np.sin(angle)])
    rows = BALL.beyond((BALL.center + share * FAR * BALL.radius * way)[np.newaxis])
    assert list(rows) == ([0] if share > 1 else [])


def test_rows_are_found_in_every_part_whatever_the_dtype():
    points = np.zeros((9000, 2), np.float32)
    points[[3, 4095, 4096, 8999]] = 1e30
    assert BALL.beyond(points).tolist() == [3, 4095, 4096, 8999]
    assert Reach(np.zeros(2), 100.0).beyond(np.full((3, 2), 255, np.uint8)).tolist() == [0, 1, 2]
    assert BALL.beyond(np.full((1, 2), 1e300)).tolist() == [0]  # its square overflows


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0))
def test_sparse_points_are_beyond_where_the_same_dense_ones_are(seed, size):
    points = sp.random_array((40, 6), density=0.4, format="csr", rng=np.random.default_rng(seed)) * size
    ball = Reach(np.linspace(0, 1, 6), 1.5)
    np.testing.assert_array_equal(ball.beyond(points), ball.beyond(points.toarray()))


@pytest.mark.parametrize("n_rows", [1, 5, 6])
def test_the_message_counts_all_rows_and_names_the_first(n_rows):
    told = far_away(np.arange(10, 10 + n_rows), 40)
    assert told.startswith(f"{n_rows} of 40 new points")
    assert "10" in told
    assert ("15" in told) is False
