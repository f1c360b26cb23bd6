"""Which new points lie off the data, so that the embedding says nothing of them: by local spacings."""

import itertools
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.metrics import roc_auc_score

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.new_points.placements import read_spacings
from scalemani.runs.new_points.quality import Account
from scalemani.runs.walk import run
from scalemani.stages.arrays.embeddings import StoredPlacement
from scalemani.stages.arrays.points import StoredWorkPoints


def placed(isolation, coordinates=None):
    coordinates = np.zeros((len(isolation), 2)) if coordinates is None else coordinates
    return {StoredPlacement.coordinates: coordinates, StoredPlacement.isolation: np.asarray(isolation, np.float64)}


@pytest.mark.parametrize("n_rows", [1, 5, 6])
def test_the_message_counts_all_rows_and_names_the_first(n_rows):
    account, rows = Account(), np.arange(40)
    account.add(0, placed(np.where((rows >= 10) & (rows < 10 + n_rows), 2.1, 2.0 * (rows == 0))))
    ((told, _),) = account.warnings
    assert told.startswith(f"{n_rows} of 40 new points")
    assert "10" in told
    assert ("15" in told) is False


@pytest.mark.parametrize("n_points", [1, 2, 40, 1000])
def test_points_in_gaps_are_told_of_where_chance_does_not_explain_them(n_points):
    for n_isolated in range(min(n_points, 60) + 1):
        account = Account()
        account.add(0, placed(np.where(np.arange(n_points) < n_isolated, 1.5, 0.9)))
        expected = n_isolated > 0 and binom.sf(n_isolated - 1, n_points, 0.03) <= 1e-3
        assert bool(account.warnings) == expected
        assert account.certificates == {"far": 0.0, "isolated": n_isolated / n_points}


def test_points_without_coordinates_are_told_of_apart_and_gaps_are_not_told_of():
    account, coordinates, isolation = Account(), np.zeros((40, 2)), np.full(40, 0.5)
    coordinates[[3, 7, 20]], isolation[[3, 7, 11]] = np.nan, 1e300
    isolation[20] = np.nan  # a gap
    account.add(100, placed(isolation, coordinates))
    far_told, lost_told = (text for text, _ in account.warnings)
    assert far_told.startswith("1 of 37 new points lie more than 2 times")
    assert "first rows 111:" in far_told
    assert lost_told.startswith("2 new points have no coordinates, first rows 103, 107:")
    assert account.certificates == {"far": 1 / 37, "isolated": 1 / 37}


METHODS = {
    "refine": lambda n: sm.LaplacianEigenmaps(2, n_landmarks=n // 4, random_state=0),
    "lll": lambda n: sm.LaplacianEigenmaps(2, solver="lll", n_landmarks=n // 4, random_state=0),
    "minmax": lambda n: sm.LaplacianEigenmaps(2, n_landmarks=n // 4, landmarks="minmax", random_state=0),
    "variational": lambda n: sm.LaplacianEigenmaps(2, solver="variational-nystrom", n_landmarks=n, random_state=0),
    "pca": lambda n: sm.LandmarkPCA(2, n_landmarks=n, random_state=0),
    "pca, 150 landmarks": lambda _: sm.LandmarkPCA(2, n_landmarks=150, random_state=0),
    "kernel pca": lambda n: sm.LandmarkKernelPCA(2, n_landmarks=n // 4, random_state=0),
    "isomap": lambda n: sm.LandmarkIsomap(2, n_landmarks=50, random_state=0),
    "elastic": lambda n: sm.ElasticEmbedding(2, max_iter=3, random_state=0),
    "t-sne": lambda n: sm.TSNE(2, max_iter=3, random_state=0),
}


def two_clusters(rng, n_points, percent_out=0, loose=False):
    """Return two clusters, with outliers in all directions or a loose population; whether each is an outlier."""
    n_out, n_loose = n_points * percent_out // 100, n_points // 20 if loose else 0
    ways = rng.normal(size=(n_out, 4))
    outliers = 1e3 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    clusters = rng.normal(size=(n_points - n_out - n_loose, 4))
    clusters[rng.random(len(clusters)) < 0.5, 0] += 40
    far_off = 15 * rng.normal(size=(n_loose, 4)) + np.array([0, 200, 0, 0])
    return np.concatenate([clusters, far_off, outliers]), np.arange(n_points) >= n_points - n_out


def hole_of_clusters(rng):
    """Return points half-way between the clusters, and outside of them."""
    return np.concatenate([rng.normal(size=(50, 4)) + np.array([shift, 0, 0, 0]) for shift in (20, 120, 470)])


def three_densities(rng, n_points):
    sizes = n_points // 2, n_points // 3, n_points - n_points // 2 - n_points // 3
    parts = [
        at + width * rng.normal(size=(size, 3))
        for size, at, width in zip(sizes, (0, 20, 60), (0.05, 1, 5), strict=True)
    ]
    return np.concatenate(parts), np.zeros(n_points, bool)


def hole_of_densities(rng):
    return np.concatenate([rng.normal(size=(50, 3)) + 40, 0.05 * rng.normal(size=(50, 3)) + 1])


def near_clusters(rng, n_points, percent_out, apart, wider=1.0):
    """Return two near clusters in three dimensions, and outliers uniform in a cube around them."""
    points, second = rng.normal(size=(n_points, 3)), rng.random(n_points) < 0.5
    points[second] *= wider
    points[second, 0] += apart
    outliers = rng.uniform(-60, 60, (n_points * percent_out // 100, 3))
    return np.concatenate([points, outliers]), np.arange(n_points + len(outliers)) >= n_points


def hole_of_near_clusters(rng, apart, wider=1.0):
    return 0.5 * rng.normal(size=(200, 3)) + np.array([apart / (1 + wider), 0, 0])


NEAR_CLUSTERS = {
    f"{apart} apart, {percent} %, {wider} times as wide": (
        lambda rng, n, how=(percent, apart, wider): near_clusters(rng, n, *how),
        lambda rng, how=(apart, wider): hole_of_near_clusters(rng, *how),
    )
    for percent, apart, wider in [(0, 12, 1), (2, 12, 1), (5, 12, 1), (20, 12, 1), (20, 16, 1), (20, 15, 2)]
}

CONDITIONS = {
    **{
        f"{percent} % outliers": (lambda rng, n, percent=percent: two_clusters(rng, n, percent), hole_of_clusters)
        for percent in (0, 2, 5, 20)
    },
    "loose population": (lambda rng, n: two_clusters(rng, n, loose=True), hole_of_clusters),
    "three densities": (three_densities, hole_of_densities),
}


# Every condition, and every method under one of the two hardest.
EVERY = list(zip(itertools.cycle(("lll", "pca", "t-sne")), CONDITIONS))
METHODS_OF_ALL = [method for method in METHODS if "150" not in method]
HARDEST = list(zip(METHODS_OF_ALL, itertools.cycle(("20 % outliers", "loose population"))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "condition"), list(dict.fromkeys(EVERY + HARDEST)))
def test_points_in_holes_are_isolated_and_two_percent_of_held_out_points_are(method, condition, tmp_path):
    (draw, hole), rng = CONDITIONS[condition], np.random.default_rng(7)
    points, _ = draw(rng, 1500)
    model = METHODS[method](len(points)).set_params(store=tmp_path).fit(points)
    placement = read_placement(model.run_)
    held_out, is_outlier = draw(rng, 2000)
    usual = placement.place(held_out[~is_outlier])[StoredPlacement.isolation]
    off = placement.place(hole(rng))[StoredPlacement.isolation]
    # Of 1,500 points, a quantile is known to 0.5 % of them. Points that `minmax` takes stand apart more than others do.
    assert (0 if method == "minmax" else 0.005) <= np.mean(usual > 1) <= 0.04
    assert roc_auc_score(np.arange(len(usual) + len(off)) >= len(usual), np.concatenate([usual, off])) >= 0.95
    assert np.mean(off > 1) >= 0.95


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("method", "condition"), list(zip(itertools.cycle(("pca, 150 landmarks", "t-sne")), NEAR_CLUSTERS))
)
def test_the_hole_between_near_clusters_is_told_from_held_out_points(method, condition):
    """The spacing of single points at the edge of a cluster would not: areas down to 0.75."""
    draw, hole = NEAR_CLUSTERS[condition]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        model = METHODS[method](150).fit(draw(rng, 1500)[0])
        held_out, is_outlier = draw(rng, 2000)
        usual, off = (
            model._placement.place(rows)[StoredPlacement.isolation] for rows in (held_out[~is_outlier], hole(rng))
        )
        assert 0.01 <= np.mean(usual > 1) <= 0.035
        assert roc_auc_score(np.arange(len(usual) + len(off)) >= len(usual), np.concatenate([usual, off])) >= 0.95


@pytest.mark.parametrize(("method", "n_outliers"), [("pca", 0), ("refine", 15), ("t-sne", 0), ("isomap", 15)])
def test_a_hole_is_told_of_whatever_outliers_there_are(method, n_outliers):
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(n_outliers, 4))
    outliers = 1e3 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    model = METHODS[method](400).fit(np.concatenate([two_clusters(rng, 600)[0], outliers]))
    for shift in (20, 120, 470):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.transform(rng.normal(size=(5, 4)) + np.array([shift, 0, 0, 0]))
        assert "5 of 5 new points lie more than 2 times as far from the nearest" in " ".join(
            str(t.message) for t in told
        )


def test_discriminants_tell_of_holes_too():
    rng = np.random.default_rng(0)
    points = two_clusters(rng, 1000, percent_out=5)[0]
    model = sm.LandmarkLDA(1, n_landmarks=200, random_state=0).fit(points, points[:, 0] > 20)
    with pytest.warns(ScalemaniWarning, match="150 of 150 new points lie more than 2 times as far"):
        model.transform(hole_of_clusters(rng))


SETS = {
    "gaussian": lambda rng: rng.normal(size=(1500, 5)),
    "heavy tails": lambda rng: rng.standard_t(4, size=(1500, 3)),
    "digits": lambda rng: load_digits().data[rng.permutation(1797)[:1500]],
    "roll": lambda rng: make_swiss_roll(1500, noise=0.1, random_state=1)[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "n_landmarks"), list(zip(SETS, itertools.cycle((12, 1200)))))
def test_few_held_out_points_of_the_same_distribution_lie_off_the_data(name, n_landmarks, tmp_path):
    points = SETS[name](np.random.default_rng(5))
    order = np.random.default_rng(6).permutation(1500)
    model = sm.LaplacianEigenmaps(2, n_landmarks=n_landmarks, random_state=0, store=tmp_path).fit(points[order[:1200]])
    placement = read_placement(model.run_)
    new = NewPoints(placement, open_points(points[order[1200:]]))
    new.read_all()
    assert new.account.certificates["far"] <= 0.01
    assert new.account.certificates["isolated"] <= 0.05  # of 300, by a quantile of 1,200: 2 % with a deviation of 1 %
    assert not any("lie farther" in told for told, _ in new.account.warnings)
    known = NewPoints(placement, open_points(points[order[:1200]]))
    known.read_all()
    assert known.account.certificates["isolated"] <= 0.03


@pytest.mark.parametrize("block_rows", [1024, 3072])
def test_training_points_have_the_spacings_of_brute_force_whatever_the_blocks(roll, tmp_path, block_rows):
    points = roll[:3000].astype(np.float64)
    values = {"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}, "layout": {"max_iterations": 1}}
    one = run(
        open_points(points), tmp_path, "t-sne", Parameters().with_values(values), Executor(), block_rows=block_rows
    )
    away = cdist(points, points)
    np.fill_diagonal(away, np.inf)
    nearest, gaps = np.argsort(away)[:, :5], np.sort(away)[:, 4:6]
    near = np.take_along_axis(away, nearest, axis=1)
    scales = np.where(near <= gaps[nearest, 0], gaps[nearest, 1], gaps[nearest, 0])
    ratios = np.sort(np.minimum(near[:, 4], 10 * near[:, 0]) / np.median(scales, axis=1))
    counted = ratios[:2250]
    for _ in range(20):
        usual = np.quantile(counted, 0.98, method="lower")
        counted = ratios[ratios <= 2 * usual]
    assert len(counted) > 2950
    found = read_spacings(one)[np.argsort(one.stored(StoredWorkPoints).input_rows.read())]
    np.testing.assert_allclose(found, usual * gaps[:, 0], rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_run_that_did_not_measure_its_spacings_takes_those_of_its_landmarks(tmp_path):
    rng = np.random.default_rng(3)
    points, queries = two_clusters(rng, 600)[0], hole_of_clusters(rng)
    model = sm.LaplacianEigenmaps(2, n_landmarks=600, random_state=0, store=tmp_path / "run").fit(points)
    placed = model.transform(queries)
    folder = Path(model.run_.group("landmarks").objects.root)
    record = json.loads((folder / "complete.json").read_text())
    del record["units"]["local_spacings"]
    (folder / "complete.json").write_text(json.dumps(record))
    (folder / "marks" / "local_spacings.json").unlink()
    shutil.rmtree(folder / "arrays" / "local_spacings")
    found = sm.transform(tmp_path / "run", queries, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), placed)
    assert (found.certificates["far"], found.certificates["isolated"]) == (1.0, 1.0)
