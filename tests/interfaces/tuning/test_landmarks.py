"""`compare_landmarks`: what it says of a run is what the same landmarks in memory say."""

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import scalemani as sm
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.kernels.landmarks.quality import local_conditions

PIXELS = load_digits().data[:1200]
DIGITS = (PIXELS + 0.01 * np.random.default_rng(0).normal(size=PIXELS.shape)).astype(np.float32)  # no ties
N_LANDMARKS, SIGMA, METHODS = 60, 20.0, ["random", "dpp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A refined run of digits in two blocks."""
    place = tmp_path_factory.mktemp("compared") / "run"
    asked = {"n_landmarks": N_LANDMARKS, "perplexity": 4, "n_neighbors": 12, "residual": 1e-6, "store": place}
    sm.LaplacianEigenmaps(3, random_state=0, **asked).fit(DIGITS)
    return place


@pytest.fixture(scope="module")
def compared(folder):
    sm.compare_landmarks(folder, None, METHODS, [0], sigma=SIGMA, n_sampled=None)  # compiles, which takes memory
    return sm.compare_landmarks(folder, None, METHODS, [0, 5], sigma=SIGMA, n_sampled=None)


def test_each_method_and_seed_has_a_line(compared):
    assert [(one.method, one.seed) for one in compared] == [("random", 0), ("random", 5), ("dpp", 0), ("dpp", 5)]
    assert {one.n_landmarks for one in compared} == {N_LANDMARKS}
    assert all(one.seconds > 0 and one.memory >= 0 for one in compared)
    assert all(one.memory < 100e6 for one in compared)  # what the choice added, not all that the process holds


def test_of_all_points_it_says_what_the_same_landmarks_say_in_memory(compared):
    for one in compared:
        landmarks = sm.select_landmarks(DIGITS, N_LANDMARKS, one.method, one.seed).points
        distances = cdist(DIGITS, landmarks)
        nearest = distances.min(axis=1)
        assert one.distance == pytest.approx((nearest.mean(), 0.0, len(DIGITS)), rel=1e-6)
        assert one.high_distance == pytest.approx((np.quantile(nearest, 0.95), 0.0, len(DIGITS)), rel=1e-6)
        assert one.largest_distance == pytest.approx(nearest.max(), rel=1e-6)
        kernel, own = (np.exp(-(values**2) / (2 * SIGMA**2)) for values in (distances, cdist(landmarks, landmarks)))
        left = 1 - np.einsum("nl,ln->n", kernel, np.linalg.solve(own, kernel.T))
        assert one.nystrom_error == pytest.approx((left.mean(), 0.0, len(DIGITS)), abs=1e-8)
        conditions = local_conditions(DIGITS, landmarks, np.argsort(distances, axis=1)[:, :5])
        assert one.condition.value == pytest.approx(np.nanmedian(conditions), rel=1e-3)
        assert one.condition[1:] == (0.0, len(DIGITS) - N_LANDMARKS)
        assert one.high_condition.value == pytest.approx(np.nanquantile(conditions, 0.95), rel=1e-3)


def test_the_embedding_is_that_of_the_landmarks_without_refinement(compared, folder):
    refined = np.asarray(sm.open_run(folder).embedding[...])
    # The graph is exact, as with seed 0.
    model = sm.LaplacianEigenmaps(
        3, n_landmarks=N_LANDMARKS, perplexity=4, n_neighbors=12, solver="lll", landmarks="dpp", random_state=5
    )
    with pytest.warns(ScalemaniWarning, match="refine the embedding"):
        expected = sm.measures.procrustes_error(model.fit_transform(DIGITS), refined)
    assert compared[3].embedding_error == pytest.approx(expected, abs=1e-6)


def test_the_run_stays_as_it_is(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    sm.compare_landmarks(folder, 30, ["minmax"], n_sampled=100)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_points_without_a_run_give_the_same_but_no_embedding(compared):
    (found,) = sm.compare_landmarks(DIGITS, N_LANDMARKS, ["dpp"], sigma=SIGMA, n_sampled=None)
    assert found[3:9] == compared[2][3:9]
    assert found.embedding_error is None


def test_a_sample_says_how_far_it_may_be_off(compared):
    sampled = sm.compare_landmarks(DIGITS, N_LANDMARKS, METHODS, [0, 5], sigma=SIGMA, n_sampled=150)
    offs = []
    for found, whole in zip(sampled, compared, strict=True):
        for name in ("nystrom_error", "distance", "high_distance", "condition"):
            measured = getattr(found, name)
            assert 130 < measured.n_sampled <= 150
            offs.append(abs(measured.value - getattr(whole, name).value) / measured.error)
    assert max(offs) < 5
    assert max(offs) > 0.5


def test_settings_reach_landmarks_weights_and_points():
    settings = {"landmarks.sigma": 0.5, "landmark_weights.n_neighbors": 3, "points.metric": "cosine"}
    (found,) = sm.compare_landmarks(DIGITS, 40, ["dpp"], n_sampled=None, settings=settings)
    assert found.largest_distance < 2.0  # at unit length
    rows = sm.select_landmarks(DIGITS, 40, "dpp", 0, settings={"landmarks.sigma": 0.5}, metric="cosine").indices
    table = DIGITS / np.linalg.norm(DIGITS, axis=1, keepdims=True)
    landmarks = table[rows]
    nearest = np.argsort(cdist(table, landmarks), axis=1)[:, :3]
    conditions = local_conditions(table, landmarks, nearest)
    assert found.condition.value == pytest.approx(np.nanmedian(conditions), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((10, ["dppp"]), None, "^methods must be"),
        ((10, []), None, "^methods takes a list"),
        ((10, "dpp"), None, "^methods takes a list"),
        ((10, ["dpp"], []), None, "seed takes a list"),
        ((10, ["dpp", "dpp"]), None, "^methods takes a list of distinct values"),
        ((5000, ["dpp"]), None, "at most N=1200"),
        ((3, ["dpp"]), {"landmark_weights.n_neighbors": 4}, "at most n_landmarks=3"),
        ((10, ["dpp"]), {"layout.momentum": 0.5}, "settings takes parameters of points, landmarks"),
        ((10, ["dpp"]), {"landmarks.method": "gp"}, "in `methods`"),
        ((10, ["dpp"]), {"landmarks.sigma": -1.0}, "landmarks.sigma must be > 0"),
        ((10, ["dpp"]), {"landmarks.sigma": 1e-9}, "landmarks by dpp: landmarks.sigma=1e-09 is too small"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, settings, message):
    with pytest.raises(ConfigError, match=message):
        sm.compare_landmarks(DIGITS, *arguments, settings=settings)


def test_neighbours_have_no_landmarks_and_a_run_keeps_its_metric(folder):
    with pytest.raises(DataError, match="stands for neighbours"):
        sm.compare_landmarks(DIGITS, 10, settings={"points.metric": "precomputed"})
    with pytest.raises(ConfigError, match="compared by euclidean"):
        sm.compare_landmarks(folder, 10, settings={"points.metric": "cosine"})


def test_the_command_prints_a_line_a_method_and_seed_or_json(scalemani, tmp_path, compared):
    np.save(tmp_path / "digits.npy", DIGITS)
    asked = (tmp_path / "digits.npy", "--landmarks", N_LANDMARKS, "--sampled", 0, "--sigma", SIGMA)
    status, output, _ = scalemani("landmarks", *asked, "--methods", "random,dpp", "--seed", 0, "--seed", 5)
    assert status == 0
    head, _, *lines = output.splitlines()
    assert head == f"{N_LANDMARKS} landmarks; 1200 points looked at"
    assert [line.split()[:2] for line in lines] == [[one.method, str(one.seed)] for one in compared]
    assert [line.split()[2] for line in lines] == [f"{one.nystrom_error.value:.4g}" for one in compared]
    listed = json.loads(scalemani("landmarks", *asked, "--methods", "random", "--json")[1])
    assert [one["seed"] for one in listed] == [0]
    assert listed[0]["distance"] == {"value": compared[0].distance.value, "error": 0.0, "n_sampled": 1200}
    assert scalemani("landmarks", *asked, "--methods", "kmeanz")[0] == 2
