import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

import scalemani.interfaces.functions.spectral as door
from scalemani.errors import ConfigError, DataError
from scalemani.kernels.affinities.entropic import entropic_affinities as kernel


def distances(n_rows=2500, k=30, seed=0):
    return np.sort(np.random.default_rng(seed).gamma(4.0, 1.0, (n_rows, k)), axis=1)


def test_the_door_returns_what_the_kernel_finds():
    given = distances()
    found = door.entropic_affinities(given, perplexity=10)
    expected = kernel(given**2, 10.0, solver="halley")
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.beta, expected.beta)
    assert found.values.shape == (2500, 30)
    assert not found.saturated.any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f4", ">f8", np.float64])
def test_every_float_reaches_the_perplexity(dtype):
    found = door.entropic_affinities(distances().astype(dtype), perplexity=10, solver="halley")
    achieved = np.exp(-(found.values * np.log(found.values)).sum(axis=1))
    assert np.max(np.abs(achieved / 10.0 - 1.0)) < 1.1e-10
    assert found.values.dtype == found.beta.dtype == np.float64


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_powers_of_distances_have_the_affinities_of_other_exponentials(p):
    """Of exp(-(d / sigma)^p), where SciPy finds the root of the entropy."""
    distances = np.sort(np.random.default_rng(5).gamma(4.0, size=(12, 30)), axis=1)
    found = door.entropic_affinities(distances ** (p / 2), 8.0)

    def shares(log_beta, row):
        return scipy.special.softmax(-np.exp(log_beta) * row**p)

    def missed(log_beta, row):
        return scipy.stats.entropy(shares(log_beta, row)) - np.log(8.0)

    for row, beta, values in zip(distances, found.beta, found.values, strict=True):
        root = scipy.optimize.brentq(missed, -20.0, 5.0, args=(row,), xtol=1e-13)
        np.testing.assert_allclose(np.log(beta), root, atol=1e-8)
        np.testing.assert_allclose(values, shares(root, row), atol=1e-9)


def test_duplicates_and_simplices_are_counted_not_refused():
    given = distances(3)
    given[1, :12] = 0.0
    given[2] = 1.0
    found = door.entropic_affinities(given, perplexity=10)
    assert list(found.saturated) == [False, True, True]
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.values.sum(axis=1), 1.0, rtol=1e-14)


def test_no_rows_give_no_rows():
    assert door.entropic_affinities(np.empty((0, 5)), perplexity=2).values.shape == (0, 5)


def test_read_only_and_strided_input_is_left_alone():
    given = np.asfortranarray(distances(100))
    given.setflags(write=False)
    expected = door.entropic_affinities(given.copy(order="C"), perplexity=10)
    assert np.array_equal(door.entropic_affinities(given, perplexity=10).values, expected.values)


@pytest.mark.parametrize(
    ("perplexity", "message"),
    [
        (-5, r"perplexity must be > 1, got -5"),
        (0, "must be > 1"),
        (1, "must be > 1"),
        (0.5, "must be > 1"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (30, r"must be < n_neighbors \(k=30\), got 30"),
        ("30", "valid number, got '30'"),
        (True, "valid number, got True"),
    ],
)
def test_perplexity_is_checked(perplexity, message):
    with pytest.raises(ConfigError, match=message):
        door.entropic_affinities(distances(5), perplexity=perplexity)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"solver": "newtn"}, "solver must be 'newton'"),
        ({"order": "densty"}, "order must be 'density'"),
        ({"order": "mst"}, "give indices"),
        ({"tol": 0.0}, "tol must be"),
        ({"tol": "small"}, "tol must be"),
        ({"solver": None}, "solver must be"),
        ({"random_state": -1}, "random_state must be >= 0"),
        ({"random_state": 1.5}, "random_state must be an integer"),
    ],
)
def test_search_is_checked(search, message):
    with pytest.raises(ConfigError, match=message):
        door.entropic_affinities(distances(5), perplexity=5, **search)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [(0, -1.0, "negative"), (3, np.nan, "NaN"), (29, np.inf, "infinite"), (2, 100.0, "ascending")],
)
def test_bad_distances_are_refused_with_their_row(column, value, message):
    given = distances()
    given[1500, column] = value
    with pytest.raises(DataError, match=rf"{message}.* row\(s\) 1500"):
        door.entropic_affinities(given, perplexity=5)


@pytest.mark.parametrize(
    "given", [np.ones(5), np.ones((2, 2, 2)), np.ones((3, 4), dtype=complex), np.full((3, 4), "a"), np.ones((4, 1))]
)
def test_other_tables_are_refused(given):
    with pytest.raises(DataError, match="distances must be"):
        door.entropic_affinities(given, perplexity=2)


def test_masked_distances_are_refused():
    with pytest.raises(DataError, match="distances has 1 masked values"):
        door.entropic_affinities(np.ma.masked_equal(distances(5), distances(5)[1, 7]), perplexity=5)


def test_indices_must_fit():
    with pytest.raises(DataError, match="indices must be"):
        door.entropic_affinities(distances(5), perplexity=5, order="path", indices=np.zeros((5, 2), dtype=int))
