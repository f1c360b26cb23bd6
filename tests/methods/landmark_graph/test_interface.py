"""Eigenvectors continued to new points by affinities: Nystrom's formula and means, against NumPy; and refusals."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.errors import ConfigError

DRAWS = np.random.default_rng(2)
POINTS, NEW = DRAWS.normal(size=(150, 4)), DRAWS.normal(size=(20, 4))
K, SIGMA, PERPLEXITY = 18, 0.9, 6.0


def entropic(squares):
    """Shares of one row whose entropy is the logarithm of the perplexity, by a root finder of SciPy."""

    def shares(log_beta):
        values = np.exp(-np.exp(log_beta) * (squares - squares.min()))
        return values / values.sum()

    def missing(log_beta):
        row = shares(log_beta)
        return -(row * np.log(np.maximum(row, 1e-300))).sum() - np.log(PERPLEXITY)

    return shares(brentq(missing, -10, 10, xtol=1e-14))


def expected(embedding, eigenvalues, kind, formula):
    distances = cdist(NEW, POINTS)
    near = np.argsort(distances, axis=1)[:, :K]
    squares = np.take_along_axis(distances, near, axis=1) ** 2
    rows = np.exp(-squares / (2 * SIGMA**2)) if kind == "gaussian" else np.array([entropic(row) for row in squares])
    weights = np.zeros((len(NEW), len(POINTS)))
    np.put_along_axis(weights, near, rows, axis=1)
    means = weights @ embedding / weights.sum(axis=1, keepdims=True)
    return means / (1 - eigenvalues) if formula == "nystrom" else means


@pytest.mark.parametrize("formula", ["nystrom", "kernel-mean"])
@pytest.mark.parametrize("kind", ["gaussian", "entropic"])
def test_new_points_are_placed_by_their_affinities(tmp_path, kind, formula):
    settings = {"affinities.sigma": SIGMA} if kind == "gaussian" else {}
    model = sm.LaplacianEigenmaps(
        2, affinity=kind, n_neighbors=K, perplexity=PERPLEXITY, settings=settings, store=tmp_path / "run"
    ).fit(POINTS)
    assert (1 - model.eigenvalues_ > 0.1).all()  # no column is divided by noise
    wanted = expected(model.embedding_, model.eigenvalues_, kind, formula)
    for run in (tmp_path / "run", model.run_):
        placed = sm.continue_eigenvectors(run, NEW, formula)
        np.testing.assert_allclose(placed, wanted, rtol=2e-5, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(sm.continue_eigenvectors(tmp_path / "run", POINTS, formula), model.embedding_)


def test_a_mean_minimises_the_objective_over_the_new_point_alone(tmp_path):
    settings = {"affinities.sigma": SIGMA}
    model = sm.LaplacianEigenmaps(2, affinity="gaussian", n_neighbors=K, settings=settings, store=tmp_path / "run")
    at = model.fit(POINTS).embedding_
    placed = sm.continue_eigenvectors(tmp_path / "run", NEW[:1], "kernel-mean")[0]
    distances = cdist(NEW[:1], POINTS)[0]
    near = np.argsort(distances)[:K]
    weights = np.exp(-(distances[near] ** 2) / (2 * SIGMA**2))

    def value(place):
        return (weights * ((at[near] - place) ** 2).sum(axis=1)).sum()

    size = np.abs(at).max()
    assert all(value(placed) < value(placed + 1e-3 * size * step) for step in DRAWS.normal(size=(20, 2)))


def test_runs_without_eigenvectors_of_affinities_are_refused(tmp_path):
    sm.LandmarkPCA(2, store=tmp_path / "pca").fit(POINTS)
    sm.LaplacianEigenmaps(2, solver="nystrom", n_landmarks=40, store=tmp_path / "landmarks").fit(POINTS)
    for folder in ("pca", "landmarks"):
        with pytest.raises(ConfigError, match="has no eigenvectors of affinities of all points"):
            sm.continue_eigenvectors(tmp_path / folder, NEW)
    with pytest.raises(ConfigError, match="unknown formula"):
        sm.continue_eigenvectors(tmp_path / "pca", NEW, "mean")
