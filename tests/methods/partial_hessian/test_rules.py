"""The rate and the direction with a diagonal against dense matrices, by differences of plain objectives."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import scalemani as sm
from scalemani.config.params import LayoutParams
from scalemani.descents.phases import Phase, direction_of
from scalemani.errors import ConfigError
from scalemani.methods.partial_hessian import rules
from scalemani.methods.partial_hessian.audit import check_rate
from tests.audit.claims import verdicts
from tests.descents.test_directions import Plain, laplacian

N_POINTS = 40
POINTS = np.random.default_rng(3).normal(size=(N_POINTS, 5))
SETTINGS = {
    "layout.direction": "spectral",
    "layout.kappa": N_POINTS,
    "layout.max_iterations": 3000,
    "layout.converged": 1e-15,
    "layout.window": 1,
    "layout.measured_rate": True,
    "neighbors.n_neighbors": 10,
    "landmarks.n_landmarks": 20,
    "affinities.perplexity": 4.0,
}
OBJECTIVES = {  # E of d^2 and dense affinities
    "elastic-embedding": lambda s, w, strength: (w * s).sum() + strength * off(np.exp(-s)).sum(),
    "s-sne": lambda s, w, strength: (w / w.sum() * s).sum() + strength * np.log(off(np.exp(-s)).sum()),
    "t-sne": lambda s, w, strength: (w / w.sum() * np.log1p(s)).sum() + strength * np.log(off(1 / (1 + s)).sum()),
}
ESTIMATORS = {"elastic-embedding": sm.ElasticEmbedding, "s-sne": sm.SymmetricSNE, "t-sne": sm.TSNE}


def off(values):
    return values * (1 - np.eye(len(values)))


def value(method, positions, affinities, strength):
    return OBJECTIVES[method](Plain.squares(positions), affinities, strength)


def dense_hessian(function, at, step=2e-4):
    """All second derivatives by central differences of values."""
    size, found = at.size, np.empty((at.size, at.size))
    for n in range(size):
        for m in range(n + 1):
            total = 0.0
            for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                moved = at.ravel().copy()
                moved[n] += one * step
                moved[m] += other * step
                total += one * other * function(moved.reshape(at.shape))
            found[n, m] = found[m, n] = total / (4 * step**2)
    return found


def diagonal_of_repulsion(method, at, affinities, strength, step=2e-4):
    """The diagonal of the Hessian of E-, the rank-one part of a logarithm left out: that of u S, u as it is."""
    kernel = (lambda s: 1 / (1 + s)) if method == "t-sne" else (lambda s: np.exp(-s))
    sums = off(kernel(Plain.squares(at))).sum()
    factor = strength if method == "elastic-embedding" else strength / sums
    found = np.empty(at.size)
    for n in range(at.size):
        values = []
        for shift in (step, 0, -step):
            moved = at.ravel().copy()
            moved[n] += shift
            values.append(off(kernel(Plain.squares(moved.reshape(at.shape)))).sum())
        found[n] = factor * (values[0] - 2 * values[1] + values[2]) / step**2
    return found.reshape(at.shape)


@pytest.mark.parametrize("direction", ["spectral", "spectral+diagonal"])
@pytest.mark.parametrize("method", OBJECTIVES)
def test_the_rate_is_that_of_dense_matrices_and_predicts_the_decrease(tmp_path, method, direction):
    strength = 0.02 if method == "elastic-embedding" else 1.0
    settings = {**SETTINGS, "layout.strength": strength, "layout.direction": direction}
    model = ESTIMATORS[method](settings=settings, store=tmp_path / "run").fit(POINTS)
    said, at = model.certificates_["layout"], model.embedding_
    affinities = model.run_.affinities.tocsr().toarray().astype(np.float64)
    hessian = dense_hessian(lambda x: value(method, x, affinities, strength), at)
    scaled = affinities if method == "elastic-embedding" else affinities / affinities.sum()
    metric = np.kron(laplacian(4 * scaled), np.eye(2))
    if direction == "spectral+diagonal":
        metric += np.diag(np.maximum(diagonal_of_repulsion(method, at, affinities, strength), 0).ravel())
    metric += 4e-10 * scaled.sum(axis=1).min() * np.eye(at.size)
    turn = np.column_stack([-(at - at.mean(0))[:, 1], (at - at.mean(0))[:, 0]])
    motions = [np.tile([1.0, 0.0], (N_POINTS, 1)), np.tile([0.0, 1.0], (N_POINTS, 1)), turn]
    # Vectors that are B-orthogonal to motions of the whole map: the null space of motions^T B.
    basis = scipy.linalg.null_space(np.array([one.ravel() for one in motions]) @ metric)
    curvatures = scipy.linalg.eigh(basis.T @ hessian @ basis, basis.T @ metric @ basis, eigvals_only=True)
    assert said["rate"] == pytest.approx(np.abs(curvatures - 1).max(), abs=2e-3)
    assert said["least_curvature"] == pytest.approx(curvatures[0], abs=5e-3)
    assert said["largest_curvature"] == pytest.approx(curvatures[-1], abs=5e-3)
    assert said["rate_residual"] < 0.05
    rate = np.abs(1 - said["last_step"] * curvatures[[0, -1]]).max()
    if rate < 0.99:
        assert said["predicted_decrease"] == pytest.approx(rate**2, abs=1e-2)
    elif rate > 1.01:
        assert said["predicted_decrease"] is None
    assert set(verdicts(check_rate, tmp_path / "run").values()) == {"holds"}
    for name in ("rate", "least_curvature", "largest_curvature", "predicted_decrease", "measured_decrease"):
        wrong = 0.7 * (said[name] or 1.0) - 0.1
        assert verdicts(check_rate, tmp_path / "run", **{name: wrong})[name] == "fails"


@pytest.mark.parametrize("direction", ["spectral", "spectral+diagonal"])
def test_a_descent_of_unit_steps_falls_as_predicted(direction):
    graph = sm.knn_graph(POINTS, n_neighbors=10)
    affinities = sm.symmetric_affinities(graph.indices, sm.entropic_affinities(graph.distances, 4.0).values)
    settings = {name: value for name, value in SETTINGS.items() if name.startswith("layout.")}
    settings |= {"layout.strength": 0.003, "layout.converged": 1e-13}
    del settings["layout.direction"]
    start = POINTS[:, :2]
    said = sm.minimize(affinities, "elastic-embedding", start, direction=direction, settings=settings).certificates
    assert said["last_step"] == 1.0
    assert 0.5 < said["rate"] < 1
    assert said["predicted_decrease"] == pytest.approx(said["rate"] ** 2)
    assert said["measured_decrease"] == pytest.approx(said["predicted_decrease"], rel=5e-3)


@pytest.mark.parametrize("method", ["elastic-embedding", "s-sne", "sne"])
def test_the_direction_solves_with_the_diagonal_where_it_is_positive(method):
    plain = Plain(method, 5.0)
    chosen = plain.choose("spectral+diagonal", kappa=14)
    for column in range(2):
        repulsive = np.diag(plain.hessian(plain.repulsion, column))
        assert (repulsive > 0).any()
        metric = plain.attraction_hessian() + np.diag(np.maximum(repulsive, 0))
        np.testing.assert_allclose(chosen[:, column], np.linalg.solve(metric, -plain.gradient[:, column]), rtol=2e-4)


def test_the_diagonal_is_renewed_every_so_many_iterations():
    plain = Plain("elastic-embedding", 5.0)
    phase = Phase("spectral+diagonal", 1, kappa=14, params=LayoutParams(renewal=3))
    chosen, memory, diagonals = direction_of(phase, plain.problem), {}, []
    positions = plain.positions
    for _ in range(7):
        _, memory = chosen(positions, plain.gradient, memory)
        memory = {name: memory[name].copy() for name in sorted(memory)}  # as a checkpoint has it
        diagonals.append(memory["diagonal"])
        positions = 1.1 * positions
    changes = [bool((one != other).any()) for one, other in itertools.pairwise(diagonals)]
    assert changes == [False, False, True, False, False, True]
    resumed = direction_of(phase, plain.problem)(positions, plain.gradient, memory)[0]
    np.testing.assert_array_equal(resumed, chosen(positions, plain.gradient, memory)[0])


def test_many_points_are_solved_by_conjugate_gradients(monkeypatch):
    plain = Plain("elastic-embedding", 5.0)
    exact = plain.choose("spectral+diagonal", kappa=14)
    monkeypatch.setattr(rules, "FACTORED_UP_TO", 5)
    near = plain.choose("spectral+diagonal", kappa=14)
    missed = []
    for column in range(2):
        metric = plain.attraction_hessian() + np.diag(np.maximum(np.diag(plain.hessian(plain.repulsion, column)), 0))
        missed.append(metric @ near[:, column] + plain.gradient[:, column])
    assert 1e-6 < np.linalg.norm(missed) / np.linalg.norm(plain.gradient) <= 0.1 + 1e-3
    assert np.abs(near - exact).max() > 0
    assert (near * plain.gradient).sum() < 0


def test_what_has_no_rate_is_refused():
    with pytest.raises(ConfigError, match=r"spectral or spectral\+diagonal; here it is momentum"):
        sm.TSNE(settings={"layout.measured_rate": True}).fit(POINTS)
    for settings in (
        {"layout.measured_rate": True, "layout.direction": "spectral"},
        {"layout.direction": "spectral+diagonal"},
    ):
        with pytest.raises(ConfigError, match="know no weights"):
            sm.ElasticEmbedding(settings=settings).fit(POINTS, sample_weight=np.full(N_POINTS, 2.0))
