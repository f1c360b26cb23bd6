"""Sums over points beside their rows of Z: those of all points at once, whatever they are cut into and taken about."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.stages.shared.moments import Moments
from scalemani.stages.shared.tiles import added

N_POINTS, N_FEATURES, N_LANDMARKS, N_CLASSES = 90, 4, 12, 3
DRAWS = np.random.default_rng(0)
POINTS = DRAWS.normal([5, -3, 0, 100], size=(N_POINTS, N_FEATURES))
Z = sp.random(N_POINTS, N_LANDMARKS, density=0.3, format="csr", random_state=1)
CODES = DRAWS.integers(0, N_CLASSES, N_POINTS)


def moments_of(rows, center):
    """The sums as their definitions say."""
    weights, centred, codes = Z[rows], POINTS[rows] - center, CODES[rows]
    of_class = np.equal.outer(np.arange(N_CLASSES), codes).astype(float)
    return Moments(
        weights.T @ centred,
        np.asarray(weights.sum(axis=0)).ravel(),
        sp.csr_matrix(weights.T @ weights),
        of_class @ centred,
        of_class.sum(axis=1).astype(np.int64),
        float((centred**2).sum()),
    )


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(1, N_POINTS - 1), max_size=6, unique=True))
def test_parts_add_up_to_the_whole(cuts):
    center = POINTS.mean(axis=0) + 1
    bounds = [0, *sorted(cuts), N_POINTS]
    parts = [moments_of(slice(start, stop), center) for start, stop in pairwise(bounds)]
    found, whole = reduce(added, parts), moments_of(slice(None), center)
    for name in ("moments", "weights", "sums", "counts", "squares"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.gram.toarray(), whole.gram.toarray(), rtol=1e-12)
    assert found.counts.sum() == N_POINTS


@pytest.mark.parametrize("away", [0.0, 1.0, -20.0])
def test_what_is_centred_does_not_depend_on_the_centre_of_the_sums(away):
    mean = POINTS.mean(axis=0)
    found = moments_of(slice(None), mean + away)
    np.testing.assert_allclose(found.shift, -away, atol=1e-10)
    np.testing.assert_allclose(found.centered(), Z.T @ (POINTS - mean), atol=1e-9)
    assert found.total_scatter == pytest.approx(((POINTS - mean) ** 2).sum(), rel=1e-10)


def test_scatter_is_never_below_zero():
    """Of equal points rounding may leave a little on either side."""
    found = Moments(np.zeros((1, 1)), np.ones(1), sp.csr_matrix((1, 1)), np.array([[0.3]]), np.array([3]), 0.03 - 1e-18)
    assert 0.0 <= found.total_scatter < 1e-17
    less = Moments(np.zeros((1, 1)), np.ones(1), sp.csr_matrix((1, 1)), np.array([[0.3]]), np.array([3]), 0.02)
    assert less.total_scatter == 0.0


def test_sums_of_sparse_matrices_stay_sparse():
    one = moments_of(slice(None), 0.0)
    found = added(one, one).gram
    assert isinstance(found, sp.csr_matrix)
    np.testing.assert_allclose(found.toarray(), 2 * one.gram.toarray())
