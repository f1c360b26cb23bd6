"""Which new points lie too far out for the embedding to say anything of them."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_swiss_roll

import scalemani as sm
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.new_points.quality import FAR, Account, Reach
from scalemani.stages.arrays.embeddings import BEYOND_REACH, NOWHERE, StoredPlacement

BALL = Reach(np.array([1.0, -1.0]), 2.0)


@given(st.floats(0, 2 * np.pi), st.floats(0.0, 10.0).filter(lambda share: abs(share - 1) > 1e-9))
def test_points_are_beyond_where_their_distance_is_more_than_far_times_the_radius(angle, share):
    way = np.array([np.cos(angle), np.sin(angle)])
    rows = BALL.beyond((BALL.center + share * FAR * BALL.radius * way)[np.newaxis])
    assert rows.tolist() == [share > 1]


def test_rows_are_found_in_every_part_whatever_the_dtype():
    points = np.zeros((9000, 2), np.float32)
    points[[3, 4095, 4096, 8999]] = 1e30
    assert np.flatnonzero(BALL.beyond(points)).tolist() == [3, 4095, 4096, 8999]
    assert Reach(np.zeros(2), 100.0).beyond(np.full((3, 2), 255, np.uint8)).all()
    assert BALL.beyond(np.full((1, 2), 1e300)).all()  # its square overflows


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0))
def test_sparse_points_are_beyond_where_the_same_dense_ones_are(seed, size):
    points = sp.random_array((40, 6), density=0.4, format="csr", rng=np.random.default_rng(seed)) * size
    ball = Reach(np.linspace(0, 1, 6), 1.5)
    np.testing.assert_array_equal(ball.beyond(points), ball.beyond(points.toarray()))


@pytest.mark.parametrize("n_rows", [1, 5, 6])
def test_the_message_counts_all_rows_and_names_the_first(n_rows):
    account = Account(1.0)
    rows = np.arange(40)
    far = (rows >= 10) & (rows < 10 + n_rows)
    account.add(0, {StoredPlacement.coordinates: np.zeros((40, 2)), StoredPlacement.far: far})
    ((told, _),) = account.warnings
    assert told.startswith(f"{n_rows} of 40 new points")
    assert "10" in told
    assert ("15" in told) is False


@pytest.mark.parametrize("nearest", [None, 1e300])
def test_points_without_coordinates_are_told_of_apart_and_gaps_are_not_told_of(nearest):
    account, coordinates, far = Account(1.0), np.zeros((40, 2)), np.zeros(40, np.uint8)
    coordinates[[3, 7, 20]], far[[3, 7, 11]] = np.nan, BEYOND_REACH  # row 20 has a gap
    far[[3, 7, 20]] |= NOWHERE
    placed = {StoredPlacement.coordinates: coordinates, StoredPlacement.far: far}
    if nearest is not None:
        placed[StoredPlacement.nearest] = np.where(far & BEYOND_REACH, nearest, 0.5)
    account.add(100, placed)
    far_told, lost_told = (text for text, _ in account.warnings)
    assert far_told.startswith("1 of 37 new points lie more than 2 times")
    assert "first rows 111:" in far_told
    assert lost_told.startswith("2 new points have no coordinates, first rows 103, 107:")
    assert account.certificates["far"] == 1 / 37
    assert account.certificates["isolated"] == (0 if nearest is None else 1 / 37)


def clusters(seed=3):
    """Two clusters with an empty middle, new points in that middle, and farther out than either."""
    rng = np.random.default_rng(seed)
    shift = np.array([40.0, 0, 0, 0])
    points = np.concatenate([rng.normal(size=(300, 4)), rng.normal(size=(300, 4)) + shift])
    middle = rng.normal(size=(5, 4)) + shift / 2
    return points, np.concatenate([middle, middle + 5e4])


MODELS = {
    "refine": lambda n: sm.LaplacianEigenmaps(2, n_landmarks=n, random_state=0),
    "lll": lambda n: sm.LaplacianEigenmaps(2, solver="lll", n_landmarks=min(n, 300), random_state=0),
    "minmax": lambda n: sm.LaplacianEigenmaps(2, n_landmarks=min(n, 60), landmarks="minmax", random_state=0),
    "pca": lambda n: sm.LandmarkPCA(2, n_landmarks=n, random_state=0),
    "variational": lambda n: sm.LaplacianEigenmaps(2, solver="variational-nystrom", n_landmarks=n, random_state=0),
    "descent": lambda n: sm.ElasticEmbedding(2, max_iter=3, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("outliers", ["one", "a hundredth"])
def test_outliers_among_the_training_points_silence_no_warning(kind, outliers):
    points, queries = clusters()
    far = {
        "one": np.array([[1e5, 0, 0, 0]]),
        "a hundredth": 1e5 * np.random.default_rng(4).normal(size=(6, 4)),
    }[outliers]
    model = MODELS[kind](len(points) + len(far)).fit(np.concatenate([points, far]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.transform(queries)
    words = " ".join(str(one.message) for one in told)
    assert "5 of 10 new points lie more than 2 times as far out as 98% of the training points, first rows 5" in words
    assert "5 of 10 new points lie more than 2 times as far from what the embedding knows" in words
    assert "first rows 0, 1, 2, 3, 4" in words


SETS = {
    "gaussian": lambda rng: rng.normal(size=(1500, 5)),
    "heavy tails": lambda rng: rng.standard_t(4, size=(1500, 3)),
    "densities": lambda rng: np.concatenate(
        [rng.normal(size=(900, 3)) * 0.05, 20 + rng.normal(size=(450, 3)), 60 + 5 * rng.normal(size=(150, 3))]
    ),
    "digits": lambda rng: load_digits().data[rng.permutation(1797)[:1500]],
    "roll": lambda rng: make_swiss_roll(1500, noise=0.1, random_state=1)[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("n_landmarks", [12, 1200])
def test_few_held_out_points_of_the_same_distribution_are_told_of(name, n_landmarks, tmp_path):
    points = SETS[name](np.random.default_rng(5))
    order = np.random.default_rng(6).permutation(1500)
    model = sm.LaplacianEigenmaps(2, n_landmarks=n_landmarks, random_state=0, store=tmp_path).fit(points[order[:1200]])
    placement = read_placement(model.run_)
    new = NewPoints(placement, open_points(points[order[1200:]]))
    new.read_all()
    assert new.account.certificates["far"] <= 0.01
    assert new.account.certificates["isolated"] <= 0.01
    known = NewPoints(placement, open_points(points[order[:1200]]))
    known.read_all()
    assert known.account.certificates["isolated"] <= 0.01


@pytest.mark.filterwarnings("ignore")
def test_a_run_that_did_not_measure_its_coverage_takes_that_of_its_landmarks(tmp_path):
    points, queries = clusters()
    points = np.concatenate([points, [[1e5, 0, 0, 0]]])
    model = sm.LaplacianEigenmaps(2, n_landmarks=601, random_state=0, store=tmp_path / "run").fit(points)
    placed = model.transform(queries)
    folder = Path(model.run_.group("landmarks").objects.root)
    record = json.loads((folder / "complete.json").read_text())
    del record["units"]["coverage"]
    (folder / "complete.json").write_text(json.dumps(record))
    (folder / "marks" / "coverage.json").unlink()
    for name in ("spacing", "center", "radius"):
        shutil.rmtree(folder / "arrays" / name)
    found = sm.transform(tmp_path / "run", queries, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), placed)
    assert (found.certificates["far"], found.certificates["isolated"]) == (0.5, 1.0)
