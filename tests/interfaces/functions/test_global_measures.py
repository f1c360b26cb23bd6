"""Measures of far distances, density, torn neighbourhoods and islands, against SciPy, scikit-learn and plain loops."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import spearmanr
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_samples

import scalemani as sm

DRAWS = np.random.default_rng(8)
FEW, FEW_PLACES = DRAWS.normal(size=(11, 4)), DRAWS.normal(size=(11, 2))
POINTS = DRAWS.normal(size=(700, 5)) * [3.0, 2.0, 1.0, 0.5, 0.5]
PLACES = POINTS[:, :2] + 0.4 * DRAWS.normal(size=(700, 2))
CLASSES = np.array(["a", "b", "c", "d"])[np.digitize(POINTS[:, 0] + POINTS[:, 1], [-3.0, 0.0, 2.0])]


def triplets_of(one, other):
    """Return the share of all triplets of two distance matrices that are in the same order."""
    hits = [
        (one[i, j] < one[i, k]) == (other[i, j] < other[i, k])
        for i in range(len(one))
        for j, k in itertools.combinations([other for other in range(len(one)) if other != i], 2)
    ]
    return np.mean(hits)


def test_of_few_points_all_triplets_and_pairs_are_looked_at():
    one, other = (squareform(pdist(table)) for table in (FEW, FEW_PLACES))
    assert sm.measures.triplet_accuracy(FEW, FEW_PLACES).value == pytest.approx(triplets_of(one, other), abs=1e-12)
    expected = spearmanr(pdist(FEW), pdist(FEW_PLACES)).statistic
    assert sm.measures.distance_correlation(FEW, FEW_PLACES).value == pytest.approx(expected, abs=1e-12)
    cosine = spearmanr(pdist(FEW, "cosine"), pdist(FEW_PLACES)).statistic
    assert sm.measures.distance_correlation(FEW, FEW_PLACES, metric="cosine").value == pytest.approx(cosine, abs=1e-12)
    sets = FEW > 0.3
    jaccard = spearmanr(pdist(sets, "jaccard"), pdist(FEW_PLACES)).statistic
    found = sm.measures.distance_correlation(sets, FEW_PLACES, metric="jaccard").value
    assert found == pytest.approx(jaccard, abs=1e-12)


def test_equal_distances_count_half():
    square = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    line = [[0.0], [1.0], [3.0], [7.0]]
    one, other = squareform(pdist(square)), squareform(pdist(line))
    strict = triplets_of(one, other)
    assert strict != sm.measures.triplet_accuracy(square, line).value
    halves = [
        0.5 + 0.5 * np.sign(one[i, j] - one[i, k]) * np.sign(other[i, j] - other[i, k])
        for i in range(4)
        for j, k in itertools.combinations([number for number in range(4) if number != i], 2)
    ]
    assert sm.measures.triplet_accuracy(square, line).value == pytest.approx(np.mean(halves), abs=1e-12)


@pytest.mark.parametrize("measure", ["triplet_accuracy", "distance_correlation", "density_correlation"])
def test_standard_errors_are_the_spread_of_samples_and_samples_are_right(measure):
    one, other = squareform(pdist(POINTS)), squareform(pdist(PLACES))
    nearest = [np.sort(table, axis=1)[:, 1:6].mean(axis=1) for table in (one, other)]
    truth = {
        "triplet_accuracy": lambda: np.mean([triplets_of(one[part][:, part], other[part][:, part]) for part in PARTS]),
        "distance_correlation": lambda: spearmanr(pdist(POINTS), pdist(PLACES)).statistic,
        "density_correlation": lambda: spearmanr(*nearest).statistic,
    }[measure]()
    around = {"n_neighbors": 5} if measure == "density_correlation" else {}
    found = [
        getattr(sm.measures, measure)(POINTS, PLACES, n_sampled=100, random_state=seed, **around) for seed in range(30)
    ]
    values, errors = (np.array([getattr(one, name) for one in found]) for name in ("value", "error"))
    assert values.mean() == pytest.approx(truth, abs=4 * values.std() / np.sqrt(30) + 0.004)
    assert 0.6 < errors.mean() / values.std() < 1.8
    assert {one.n_sampled for one in found} == {100}


def spearman(one, other):
    return spearmanr(one.ravel(), other.ravel()).statistic


def shares(one, other):
    """Return the share of pairs in rows of two tables that are in the same order."""
    first, second = np.triu_indices(one.shape[1], 1)
    return np.mean(np.sign(one[:, first] - one[:, second]) == np.sign(other[:, first] - other[:, second]))


def of_draw(rows, names, radii, distances):
    """Return what all four measures are of drawn rows of the points, by NumPy and SciPy."""
    following = rows[(np.arange(len(rows))[:, np.newaxis] + np.arange(1, 11)) % len(rows)]
    pairs = [table[rows[:, np.newaxis], following] for table in distances]
    centers = [
        squareform(pdist([table[rows][names[rows] == name].mean(axis=0) for name in range(8)]))
        for table in (POINTS[:300], PLACES[:300])
    ]
    others = ~np.eye(8, dtype=bool)
    return (
        spearman(*(table[rows] for table in radii)),
        shares(*(table[others].reshape(8, 7) for table in centers)),
        shares(*pairs),
        spearman(*pairs),
    )


@pytest.mark.parametrize("n_sampled", [100, 300])
def test_errors_are_the_deviations_of_draws(n_sampled):
    draws, names = np.random.default_rng(3), np.arange(300) % 8
    distances = [squareform(pdist(table[:300])) for table in (POINTS, PLACES)]
    radii = [np.sort(table, axis=1)[:, 1:16].mean(axis=1) for table in distances]
    values = [of_draw(draws.permutation(300)[:n_sampled], names, radii, distances) for _ in range(200)]
    given = ((), (names,), (), ())
    kinds = ("density_correlation", "center_triplet_accuracy", "triplet_accuracy", "distance_correlation")
    for kind, labels, deviation in zip(kinds, given, np.std(values, axis=0), strict=True):
        stated = [
            getattr(sm.measures, kind)(POINTS[:300], PLACES[:300], *labels, n_sampled=n_sampled, random_state=seed)
            for seed in range(12)
        ]
        error = np.mean([one.error for one in stated])
        assert error == pytest.approx(deviation, rel=0.3, abs=1e-9), kind
    assert sm.measures.triplet_accuracy(FEW, FEW_PLACES).error == 0.0  # all pairs
    assert sm.measures.distance_correlation(FEW, FEW_PLACES).error == 0.0


PARTS = np.array_split(np.random.default_rng(1).permutation(700), 14)


def test_continuity_is_trustworthiness_with_data_and_embedding_exchanged():
    found = sm.measures.continuity(POINTS, PLACES, 9, n_sampled=None)
    assert found.value == pytest.approx(trustworthiness(PLACES, POINTS, n_neighbors=9), abs=1e-12)
    assert found.error == 0.0
    assert found.value != pytest.approx(trustworthiness(POINTS, PLACES, n_neighbors=9), abs=1e-4)
    sparse = sm.measures.continuity(sp.csr_matrix(POINTS), PLACES, 9, n_sampled=None)
    assert sparse.value == pytest.approx(found.value, abs=1e-9)


def test_of_too_few_points_and_of_maps_in_one_place_measures_are_undefined():
    for n_sampled in (1, 2):  # and NumPy warns of nothing
        for measure in (sm.measures.triplet_accuracy, sm.measures.distance_correlation):
            assert np.isnan(measure(FEW, FEW_PLACES, n_sampled=n_sampled)[:2]).all()
    assert np.isnan(sm.measures.triplet_accuracy(FEW, FEW_PLACES, n_sampled=3).error)
    assert np.isnan(sm.measures.continuity(FEW, np.ones((11, 2)), 3)[:2]).all()
    assert 0.0 < sm.measures.continuity(FEW, np.eye(11)[:, :2], 3).value <= 1.0


def test_density_is_the_rank_correlation_of_mean_distances():
    radii = [np.sort(cdist(table, table), axis=1)[:, 1:16].mean(axis=1) for table in (POINTS, PLACES)]
    found = sm.measures.density_correlation(POINTS, PLACES, n_sampled=None)
    assert found.value == pytest.approx(spearmanr(*radii).statistic, abs=1e-9)


def test_centers_are_means_of_classes_and_all_their_triplets_count():
    names = np.array([*"abcdefg"])[np.arange(700) % 7]
    moved = POINTS + 3.0 * np.random.default_rng(2).normal(size=(7, 5))[np.arange(700) % 7]
    centers = [np.array([table[names == name].mean(axis=0) for name in "abcdefg"]) for table in (moved, PLACES)]
    expected = triplets_of(*(squareform(pdist(table)) for table in centers))
    found = sm.measures.center_triplet_accuracy(moved, PLACES, names, n_sampled=None)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert np.isnan(sm.measures.center_triplet_accuracy(POINTS, PLACES, np.arange(700) % 2).value)


def test_silhouettes_are_those_of_scikit_learn():
    labels = CLASSES.copy()
    labels[5] = "alone"
    found = sm.measures.silhouette(PLACES, labels)
    assert found.value == pytest.approx(silhouette_samples(PLACES, labels).mean(), abs=1e-10)
    assert found.error == 0.0
    samples = [sm.measures.silhouette(PLACES, labels, n_sampled=200, random_state=seed).value for seed in range(8)]
    assert np.mean(samples) == pytest.approx(found.value, abs=0.03)
    for undefined in (np.zeros(700, int), np.arange(700)):  # which scikit-learn refuses
        assert np.isnan(sm.measures.silhouette(PLACES, undefined)[:2]).all()
