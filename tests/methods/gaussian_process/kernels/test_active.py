import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.kernels.landmarks.features import total_variance
from scalemani.methods.gaussian_process.kernels.active import (
    active_landmarks,
    bandwidth_that_does,
    variances_last,
)


def conditional_variances(points, rows, eta):
    """Return k(x, x) - k(x, T) K^-1 k(T, x) of all points, by a solver of numpy."""
    kernel = np.exp(-np.square(points[:, None].astype(float) - points[None]).sum(axis=2) / eta)
    if len(rows) == 0:
        return np.diag(kernel).copy()
    known = kernel[np.ix_(rows, rows)]
    return np.diag(kernel) - np.einsum("it,ti->i", kernel[:, rows], np.linalg.solve(known, kernel[rows]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("eta", [None, 0.3])
def test_each_landmark_has_the_largest_conditional_variance(dtype, eta):
    points = np.random.default_rng(0).normal(size=(200, 5)) * 20 + 100
    points = points.astype(dtype)
    bandwidth = None if eta is None else eta * total_variance(points)
    rows = active_landmarks(points, 40, bandwidth, first=17)
    assert rows[0] == 17
    for step in range(1, 40):
        variances = conditional_variances(points, rows[:step], bandwidth or total_variance(points))
        assert variances[rows[step]] == pytest.approx(variances.max(), rel=1e-8)


def test_ties_go_to_the_lower_row():
    corners = np.array([[0, 0], [10, 0], [0, 10], [10, 10], [5, 5]], dtype=float)
    np.testing.assert_array_equal(active_landmarks(corners, 4, 20.0), [0, 3, 1, 2])
    grid = np.tile(corners[:4], (2, 1))
    np.testing.assert_array_equal(active_landmarks(grid, 4, 20.0), [0, 3, 1, 2])


def test_repeated_points_are_chosen_once_and_too_few_are_told_of():
    points = np.repeat(np.random.default_rng(1).normal(size=(12, 3)), 4, axis=0)
    rows = active_landmarks(points, 12)
    assert len(np.unique(points[rows], axis=0)) == 12
    with pytest.raises(DataError, match="13 landmarks were asked for, but these 48 points have only 12 distinct rows"):
        active_landmarks(points, 13)


def test_an_eta_at_which_few_landmarks_determine_all_names_one_that_does():
    points = np.random.default_rng(2).normal(size=(500, 2))
    with pytest.raises(
        DataError, match=r"100 landmarks were asked for, but at landmarks.eta=1e\+04 \d+ of them"
    ) as error:
        active_landmarks(points, 100, 1e4)
    named = float(str(error.value).rpartition("=")[2])
    assert named == pytest.approx(bandwidth_that_does(points, 100, 1e4, variances_last), rel=1e-3)
    assert len(active_landmarks(points, 100, named)) == 100


def test_an_eta_that_is_far_too_small_names_one_that_does():
    points = np.random.default_rng(2).normal(size=(500, 2))
    with pytest.raises(DataError, match=r"eta=1e-09 is far too small .* would do, ") as error:
        active_landmarks(points, 20, 1e-9)
    assert len(active_landmarks(points, 20, float(str(error.value).rpartition(" ")[2]))) == 20
