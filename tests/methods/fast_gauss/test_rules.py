"""Bounds in the certificates of descents by the fast Gauss transform: beside errors of all forces by double sums."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredRun
from scalemani.methods.fast_gauss.audit import check_bounds
from tests.audit.claims import verdicts

DRAWS = np.random.default_rng(8)
POINTS = DRAWS.normal(size=(300, 5)) + 4 * DRAWS.integers(0, 2, (300, 1))
SETTINGS = {
    "layout.max_iterations": 15,
    "layout.converged": 0.0,
    "layout.strength": 0.05,
    "layout.repulsion": "fgt",
    "neighbors.n_neighbors": 15,
    "affinities.perplexity": 5.0,
}


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize("weights", [None, 1.0 + np.arange(300) % 3])
def test_the_bound_holds_for_the_errors_of_all_forces(tmp_path, tolerance, weights):
    settings = {**SETTINGS, "layout.tolerance": tolerance}
    model = sm.ElasticEmbedding(settings=settings, store=tmp_path / "run").fit(POINTS, sample_weight=weights)
    said, at = model.certificates_["layout"], model.embedding_
    masses = np.ones(300) if weights is None else weights
    kernel = masses * np.exp(-cdist(at, at, "sqeuclidean"))
    np.fill_diagonal(kernel, 0)
    exact = -2 * (kernel.sum(axis=1)[:, np.newaxis] * at - kernel @ at)
    audit = Audit(StoredRun(tmp_path / "run"), 10, 0, 10**9)
    error = np.linalg.norm(audit.run.groups["layout"].read("forces") - exact[audit.order]) / np.linalg.norm(exact)
    assert said["force_error"] == pytest.approx(error, rel=1e-6, abs=1e-12)  # of so few points all are looked at
    assert error <= said["force_error_bound"]
    assert said["sum_error_bound"] > 0
    names = ("hermite_bound", "taylor_bound", "translated_bound", "force_error_bound")
    furthest = np.linalg.norm(audit.run.groups["layout"].read("forces") - exact[audit.order], axis=1).max()
    less = 0.5 * furthest * math.sqrt(300) / np.linalg.norm(exact)
    assert verdicts(check_bounds, tmp_path / "run") == dict.fromkeys(names, "holds")
    for name, wrong in zip(names, (0.9 * said["hermite_bound"], 0, 1.1 * said["translated_bound"], less), strict=True):
        assert verdicts(check_bounds, tmp_path / "run", **{name: wrong})[name] == "fails"


def test_bounds_are_those_of_the_thesis():
    said = sm.ElasticEmbedding(settings=SETTINGS).fit(POINTS).certificates_["layout"]
    found = {}
    for order in range(1, 31):  # (5.5): N / (1 - r)^d sum_k C(d, k) (1 - r^p)^k (r^p / sqrt(p!))^(d - k), r = 1/2
        share = 0.5**order
        terms = [
            math.comb(2, k) * (1 - share) ** k * (share / math.sqrt(math.factorial(order))) ** (2 - k) for k in range(2)
        ]
        found[order] = 300 / 0.5**2 * sum(terms)
    assert min(abs(said["hermite_bound"] / one - 1) for one in found.values()) < 1e-9
    assert said["hermite_bound"] == said["taylor_bound"] <= said["translated_bound"]
    assert (
        "force_error_bound"
        not in sm.ElasticEmbedding(settings={**SETTINGS, "layout.repulsion": "exact"})
        .fit(POINTS)
        .certificates_["layout"]
    )
