import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.landmarks import Landmarks, landmark_weights, select_landmarks

METHODS = ["random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax", "dpp", "dpp-exact"]
OF_MANY_POINTS = METHODS[:-1]


def drawn(n_points=500, n_columns=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, n_columns))


def coverage(points, landmarks):
    """Greatest distance of a point to its nearest landmark."""
    return np.sqrt(((points[:, np.newaxis] - landmarks) ** 2).sum(axis=2).min(axis=1).max())


@pytest.mark.parametrize("method", METHODS)
def test_landmarks_are_distinct_data_points(method):
    points = drawn()
    points[100:400] = points[:1]
    selected = select_landmarks(points, 60, method, random_state=3)
    np.testing.assert_array_equal(selected.points, points[selected.indices])
    assert len(np.unique(selected.points, axis=0)) == 60
    again = select_landmarks(points, 60, method, random_state=3)
    np.testing.assert_array_equal(again.indices, selected.indices)
    other = select_landmarks(points, 60, method, random_state=4)
    assert not np.array_equal(other.indices, selected.indices)


@pytest.mark.parametrize("method", METHODS)
def test_as_many_landmarks_as_distinct_points(method):
    points = np.repeat(drawn(30), 3, axis=0)
    selected = select_landmarks(points, 30, method)
    assert len(np.unique(selected.points, axis=0)) == 30
    with pytest.raises(DataError, match=r"(31|\d+) landmarks .* 90 points have only 30 distinct"):
        select_landmarks(points, 31, method)


@pytest.mark.parametrize("method", ["kmeans", "kmeans++"])
def test_centroids_are_left_off_the_data_where_that_is_asked_for(method):
    points = drawn().astype(np.float32)
    selected = select_landmarks(points, 60, method, random_state=3, snap=False)
    assert selected.indices is None
    assert selected.points.dtype == np.float64
    weights = landmark_weights(points, selected)
    np.testing.assert_allclose(np.asarray(weights.sum(axis=1)).ravel(), 1.0, atol=1e-12)
    with pytest.raises(ConfigError, match="snap must be True or False, got 'no'"):
        select_landmarks(points, 60, method, snap="no")


def test_spread_methods_cover_better_than_random():
    points = drawn(2000, 2)
    radius = {method: coverage(points, select_landmarks(points, 50, method).points) for method in OF_MANY_POINTS}
    assert radius["minmax"] < min(radius["random"], radius["kmeans"])
    assert max(radius["kmeans++"], radius["dpp"]) < radius["random"]


def test_kmeans_lowers_the_error_of_its_seeds():
    points = drawn(3000, 5)
    errors = {}
    for method in OF_MANY_POINTS:
        landmarks = select_landmarks(points, 40, method).points
        errors[method] = ((points[:, np.newaxis] - landmarks) ** 2).sum(axis=2).min(axis=1).mean()
    assert errors["kmeans"] < errors["random"]
    assert errors["kmeans++"] < errors["kmeans++ seeding"]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int64, bool])
def test_weights_sum_to_one_and_reproduce(dtype):
    points = ((drawn(300) * 40 + 128).clip(0, 255) // (200 if dtype is bool else 1)).astype(dtype)
    points = np.unique(points, axis=0)
    landmarks = select_landmarks(points, min(50, len(points)), "minmax")
    weights = landmark_weights(points, landmarks, n_neighbors=min(5, len(landmarks.points)))
    assert isinstance(weights, sp.csr_matrix)
    assert weights.shape == (len(points), len(landmarks.points))
    assert weights.has_sorted_indices
    np.testing.assert_allclose(np.asarray(weights.sum(axis=1)).ravel(), 1.0, atol=1e-12)
    at_landmarks = weights[landmarks.indices].toarray()
    np.testing.assert_array_equal(at_landmarks, np.eye(len(landmarks.points)))


def test_all_points_as_landmarks_give_the_identity():
    points = drawn(80, 3)
    weights = landmark_weights(points, select_landmarks(points, 80), n_neighbors=10)
    np.testing.assert_array_equal(weights.toarray(), np.eye(80))


def test_new_points_get_the_rows_that_the_whole_gets():
    points = drawn(400, 6)
    landmarks = select_landmarks(points, 40).points
    whole = landmark_weights(points, landmarks)
    for start, stop in ((0, 1), (1, 200), (200, 400)):
        assert (landmark_weights(points[start:stop], landmarks) != whole[start:stop]).nnz == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((drawn(), 501), ConfigError, r"n_landmarks must be <= 500 \(the number of points\), got 501"),
        ((drawn(), 0), ConfigError, "n_landmarks must be >= 1, got 0"),
        ((drawn(), 2.5), ConfigError, "n_landmarks must be an integer"),
        ((drawn(), 5, "kmean"), ConfigError, "method 'kmean' is unknown: did you mean 'kmeans'"),
        ((drawn(), 5, None), ConfigError, "method None is unknown"),
        ((drawn(), 5, "random", -1), ConfigError, "random_state must be >= 0"),
        ((np.ones((5, 2)), 2), DataError, "zero variance"),
        ((np.full((5, 2), np.nan), 2), DataError, r"nothing but NaN in column\(s\) 0, 1"),
        ((drawn() * 1e200, 5), DataError, "overflow float64"),
        ((drawn() * 1e-310, 5), DataError, "underflow float64"),
        ((drawn().astype(complex), 5), DataError, "Complex data not supported"),
        ((np.zeros((0, 3)), 5), DataError, r"0 sample\(s\)"),
        ((np.arange(5.0), 5), DataError, "Expected 2D array"),
    ],
)
def test_selection_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        select_landmarks(*arguments)


@pytest.mark.parametrize("kind", ["path", "zarr", "dask", "sparse"])
def test_points_may_come_from_anywhere(tmp_path, kind):
    points = drawn()
    np.save(tmp_path / "points.npy", points)
    given = {
        "path": tmp_path / "points.npy",
        "zarr": zarr.array(points),
        "dask": da.from_array(points, chunks=(77, 2)),
        "sparse": sp.csr_array(points),
    }[kind]
    selected = select_landmarks(given, 20, random_state=1)
    np.testing.assert_array_equal(selected.indices, select_landmarks(points, 20, random_state=1).indices)
    weights = landmark_weights(given, selected.points).toarray()
    np.testing.assert_array_equal(weights, landmark_weights(points, selected.points).toarray())


def test_weights_refuse():
    points = drawn(50)
    with pytest.raises(ConfigError, match=r"n_neighbors must be <= 4 \(the number of landmarks\), got 5"):
        landmark_weights(points, points[:4])
    with pytest.raises(DataError, match="points have 4 columns, landmarks 3"):
        landmark_weights(points, points[:10, :3])
    with pytest.raises(DataError, match="got 1 repeated rows, the first of them row 10"):
        landmark_weights(points, points[[*range(10), 3]])
    with pytest.raises(DataError, match="landmarks must be finite"):
        landmark_weights(points, np.full((5, 4), np.inf))


def test_one_point_is_its_own_landmark():
    selected = select_landmarks(np.array([[2.0, 3.0]]), 1)
    assert selected.indices.tolist() == [0]
    assert landmark_weights([[2.0, 3.0]], selected, 1).toarray().tolist() == [[1.0]]
    assert isinstance(selected, Landmarks)


def test_determinantal_landmarks_take_their_numbers_by_settings():
    points = drawn()
    near, far = (select_landmarks(points, 20, "dpp", settings={"landmarks.sigma": sigma}) for sigma in (0.1, 1.0))
    gaps = [np.sort(np.linalg.norm(some.points[:, None] - some.points, axis=2), axis=1)[:, 1] for some in (near, far)]
    assert gaps[1].min() > gaps[0].min()
    with pytest.raises(ConfigError, match=r"landmarks\.sigma must be > 0, got 0"):
        select_landmarks(points, 20, "dpp", settings={"landmarks.sigma": 0.0})
    with pytest.raises(ConfigError, match=r"settings has 'layout\.jitter', which is no number of landmarks"):
        select_landmarks(points, 20, "dpp", settings={"layout.jitter": 1e-3})


def test_landmarks_of_a_gaussian_process_take_their_numbers_by_name():
    points = np.abs(drawn(600, 5))
    few = {"landmarks.steps": 30, "landmarks.batch_points": 200}
    selected = select_landmarks(points, 12, "gp", settings=few)
    assert selected.indices is None
    assert not np.array_equal(
        select_landmarks(points, 12, "gp", settings={**few, "landmarks.eta": 3.0}).points, selected.points
    )
    kept = select_landmarks(points - 0.5, 12, "gp", settings=few).points
    assert kept.min() < 0
    with pytest.raises(DataError, match=r"orthant keeps landmarks in the positive orthant, but row \d+"):
        select_landmarks(points - 0.5, 12, "gp", settings={**few, "landmarks.projection": "orthant"})
    with pytest.raises(ConfigError, match=r"landmarks\.eta must be > 0, got 0"):
        select_landmarks(points, 12, "gp-active", settings={"landmarks.eta": 0.0})
    with pytest.raises(ConfigError, match="takes more points in a batch than landmarks, got batches of 12 points"):
        select_landmarks(points, 12, "gp", settings={"landmarks.batch_points": 12})


@pytest.mark.parametrize("method", ["gp-active", "gp"])
def test_seeds_decide_landmarks_of_gaussian_processes(method):
    """All variances are one before the first landmark, so that any row may be the first."""
    points = drawn(400, 3)
    settings = {"landmarks.steps": 20, "landmarks.batch_points": 100} if method == "gp" else None
    chosen = [select_landmarks(points, 8, method, seed, settings=settings).points for seed in (0, 0, 1, 2)]
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert not np.array_equal(chosen[0], chosen[2])
    assert not np.array_equal(chosen[2], chosen[3])


def test_the_first_landmark_of_active_learning_is_as_likely_any_point_and_the_next_follow_by_variance():
    points = drawn(300, 2)
    firsts = set()
    for seed in range(40):
        rows = select_landmarks(points, 2, "gp-active", seed).indices
        away = np.linalg.norm(points[:, None] - points[rows], axis=2)
        # The second is the point farthest from the first; either of the two may be that.
        assert np.isclose(away.max(axis=0), np.linalg.norm(points[rows[0]] - points[rows[1]])).any()
        firsts |= set(rows.tolist())
    assert len(firsts) > 20


def test_the_bandwidth_of_active_learning_is_the_one_given_by_name():
    """Each landmark is the point of largest conditional variance under the eta given, not under the default one."""
    points = drawn(250, 3)
    for eta in (0.5, 8.0):
        rows = select_landmarks(points, 12, "gp-active", settings={"landmarks.eta": eta}).indices
        kernel = np.exp(-np.square(points[:, None] - points).sum(axis=2) / eta)
        orders = []
        for first in rows:
            chosen = [first]
            while len(chosen) < 12:
                solved = np.linalg.solve(kernel[np.ix_(chosen, chosen)], kernel[chosen])
                chosen.append(int(np.argmax(1 - np.einsum("it,ti->i", kernel[:, chosen], solved))))
            orders.append(sorted(chosen))
        assert rows.tolist() in orders
