import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.methods.barnes_hut.kernels import CHARGE, LEVELS, SIZE, build_tree, cover, morton_order

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n, d, n_places=None):
    random = np.random.default_rng(seed)
    points = random.normal(size=(n, d)) * 10.0 ** random.uniform(-6, 6)
    return points if n_places is None else points[random.integers(min(n, n_places), size=n)]


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n=st.integers(1, 300), d=st.sampled_from([2, 3]), repeated=st.booleans(), leaf=st.integers(1, 20))
def test_cells_nest_and_know_their_points(seed, n, d, repeated, leaf):
    points, charges = drawn(seed, n, d, max(1, n // 20) if repeated else None), np.random.default_rng(seed).random(n)
    tree, keys = build_tree(points, charges, leaf), morton_order(points)[0]
    assert np.array_equal(np.sort(tree.order), np.arange(n))
    assert np.array_equal(tree.columns.T, points[tree.order])
    for node in range(len(tree.skip)):
        rows = slice(tree.first[node], tree.last[node])
        inside, weights = tree.columns[:, rows].T, tree.charges[rows]
        assert tree.totals[node, CHARGE] == pytest.approx(weights.sum(), rel=1e-12)
        assert tree.totals[node, SIZE] == np.ptp(inside, axis=0).max()
        scale = np.abs(points).max()
        center = np.average(inside, axis=0, weights=weights)
        in_space = np.pad(center, (0, 3 - d))
        np.testing.assert_allclose(tree.centers[node], in_space, rtol=0, atol=1e-12 * scale)
        offsets = np.pad(inside - center, ((0, 0), (0, 3 - d)))
        moments = (weights[:, None, None] * offsets[:, :, None] * offsets[:, None, :]).sum(axis=0)[np.tril_indices(3)]
        np.testing.assert_allclose(tree.moments[node], moments, rtol=0, atol=1e-11 * scale**2 * n)
        children, child = [], node + 1
        while child < tree.skip[node]:
            children.append((tree.first[child], tree.last[child]))
            child = tree.skip[child]
        if children:  # they follow each other and fill their parent
            assert [first for first, _ in children] == [rows.start, *(last for _, last in children[:-1])]
            assert children[-1][1] == rows.stop
        else:
            assert rows.stop - rows.start <= leaf or keys[rows.start] == keys[rows.stop - 1]


@pytest.mark.parametrize("d", [2, 3])
def test_coincident_points_are_one_cell_and_near_ones_end_at_the_last_level(d):
    assert len(build_tree(np.ones((1000, d)), np.ones(1000), 4).skip) == 1
    pile = np.repeat(np.array([[0.0] * d, [1e-12] * d, [1.0] * d]), 100, axis=0)
    tree = build_tree(pile, np.ones(300), 4)
    assert len(tree.skip) <= 3 * LEVELS[d]
    assert sorted(tree.last - tree.first)[-1] == 300


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(1, 200), d=st.sampled_from([2, 3]), most=st.integers(4, 50))
def test_a_cover_has_every_point_once(seed, n, d, most):
    tree = build_tree(drawn(seed, n, d, 30), np.ones(n), 4)
    ranges = cover(tree, most)
    assert np.array_equal(np.concatenate([np.arange(*part) for part in ranges]), np.arange(n))
    assert np.diff(ranges).max() <= most
