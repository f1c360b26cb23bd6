"""Search directions against dense matrices: Hessians by differences of a plain objective, updates written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.directions import LEAST_SHARE, limited_memory
from scalemani.descents.phases import Phase, direction_of
from scalemani.descents.problem import Problem, affinity_scale
from scalemani.descents.repulsion import make_repulsion
from scalemani.kernels.graph.attraction import AffinityRows

STEP = 1e-3
KERNELS = {  # K of a squared distance, K' and K''
    "gaussian": (lambda s: np.exp(-s), lambda s: -np.exp(-s), lambda s: np.exp(-s)),
    "student": (lambda s: 1 / (1 + s), lambda s: -1 / (1 + s) ** 2, lambda s: 2 / (1 + s) ** 3),
}
METHODS = ["elastic-embedding", "s-sne", "t-sne", "sne"]


class Plain:
    """An objective in dense matrices: quadratic attraction, and the repulsion with its logarithms replaced by tangents.

    The Hessian of that is what the directions approximate: they leave out the rank-one part of a logarithm, which is
    negative, and take Student's attraction at X = 0, where it is quadratic.
    """

    def __init__(self, method, strength, n_points=14, n_dims=2, seed=0, spread=1.0):
        draws = np.random.default_rng(seed)
        dense = draws.random((n_points, n_points)) * (draws.random((n_points, n_points)) < 0.5)
        dense[np.arange(n_points), np.roll(np.arange(n_points), 1)] = 0.7
        np.fill_diagonal(dense, 0)
        matrix = sp.csr_matrix(dense + dense.T)
        rows = AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)
        objective = OBJECTIVES[method]
        self.kernel = KERNELS[objective.kernel]
        self.problem = Problem(rows, objective, affinity_scale(objective, rows), strength, exaggeration=1.5)
        self.affinities = matrix.toarray() * self.problem.scale * 1.5
        self.positions = spread * draws.normal(size=(n_points, n_dims))
        sums = self.pair_values(self.positions).sum(axis=1)
        parts = {"sum": np.ones(n_points), "log-sum": np.full(n_points, 1 / sums.sum()), "sum-log": 1 / sums}
        self.charges = strength * parts[objective.combine]
        self.gradient = self.problem.evaluate(self.positions, make_repulsion("exact", objective.kernel, 1e-3)).gradient

    @staticmethod
    def squares(positions):
        return ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)

    def pair_values(self, positions):
        values = self.kernel[0](self.squares(positions))
        np.fill_diagonal(values, 0)
        return values

    def repulsion(self, positions):
        return (self.charges[:, np.newaxis] * self.pair_values(positions)).sum()

    def value(self, positions):
        return (self.affinities * self.squares(positions)).sum() + self.repulsion(positions)

    def hessian(self, function, column):
        """Second derivatives of a function of positions by one column of theirs: (N, N), by central differences."""
        n_points = len(self.positions)
        found = np.empty((n_points, n_points))
        for n in range(n_points):
            for m in range(n_points):
                total = 0.0
                for one, other in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    moved = self.positions.copy()
                    moved[n, column] += one * STEP
                    moved[m, column] += other * STEP
                    total += one * other * function(moved)
                found[n, m] = total / (4 * STEP**2)
        return found

    def pair_weights(self, order):
        """u_n + u_m times a derivative of the kernel: (N, N), nothing on the diagonal."""
        weights = (self.charges[:, np.newaxis] + self.charges) * self.kernel[order](self.squares(self.positions))
        np.fill_diagonal(weights, 0)
        return weights

    def attraction_hessian(self, kept=None):
        """4 L+ of the affinities that are kept."""
        return laplacian(4 * (self.affinities if kept is None else np.where(kept, self.affinities, 0)))

    def curvature(self, column):
        """8 L^xx of one column: what is left of the repulsion's Hessian less the Laplacian of 2 (u_n + u_m) K'."""
        return self.hessian(self.repulsion, column) - laplacian(2 * self.pair_weights(1))

    def choose(self, direction, **values):
        """What a phase's direction returns at the positions, knowing nothing."""
        return direction_of(Phase(direction, 1, **values), self.problem)(self.positions, self.gradient, {})[0]


def laplacian(weights):
    return np.diag(weights.sum(axis=1)) - weights


@pytest.mark.parametrize("method", ["elastic-embedding", "s-sne", "sne"])
def test_the_tangent_has_the_gradient_of_the_objective(method):
    plain = Plain(method, 0.8)
    for n, column in ((0, 0), (5, 1), (13, 0)):
        ahead, behind = plain.positions.copy(), plain.positions.copy()
        ahead[n, column] += 1e-5
        behind[n, column] -= 1e-5
        slope = (plain.value(ahead) - plain.value(behind)) / 2e-5
        assert slope == pytest.approx(plain.gradient[n, column], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_the_diagonal_hessian_is_that_of_the_plain_objective(method):
    plain = Plain(method, 0.1)
    expected = np.column_stack([np.diag(plain.hessian(plain.value, column)) for column in range(2)])
    attractive = np.diag(plain.attraction_hessian())[:, np.newaxis]
    assert (expected > LEAST_SHARE * (attractive + 1)).all()  # nowhere left to its positive parts
    assert np.abs(expected / attractive - 1).max() > 0.01  # nor the diagonal of the attraction alone
    np.testing.assert_allclose(plain.choose("diagonal-hessian"), -plain.gradient / expected, rtol=1e-5)


def test_where_the_diagonal_is_not_positive_its_positive_parts_are_taken():
    plain = Plain("elastic-embedding", 50.0, spread=0.5)
    whole = np.column_stack([np.diag(plain.hessian(plain.value, column)) for column in range(2)])
    curvatures = np.column_stack([np.diag(plain.curvature(column)) for column in range(2)])
    positive = np.diag(plain.attraction_hessian())[:, np.newaxis] + curvatures
    trusted = whole > LEAST_SHARE * positive
    assert (whole < 0).any()
    expected = -plain.gradient / np.where(trusted, whole, positive)
    np.testing.assert_allclose(plain.choose("diagonal-hessian"), expected, rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_sd_minus_solves_with_the_curvature_of_the_repulsion(method):
    plain = Plain(method, {"elastic-embedding": 5.0, "sne": 20.0}.get(method, 100.0), spread=0.7)
    found = plain.choose("spectral-minus", kappa=14)
    missed = {"with": 0.0, "without": 0.0}
    for column in range(2):
        attraction, right = plain.attraction_hessian(), -plain.gradient[:, column]
        whole = attraction + plain.curvature(column)
        alone = np.linalg.lstsq(attraction, right, rcond=None)[0]
        missed["with"] += ((whole @ found[:, column] - right) ** 2).sum()
        missed["without"] += ((whole @ alone - right) ** 2).sum()
    size = np.linalg.norm(plain.gradient)
    assert np.sqrt(missed["with"]) <= 0.101 * size
    assert np.sqrt(missed["without"]) > 0.5 * size  # the spectral direction is no solution of it


def test_sd_minus_goes_on_from_its_last_direction():
    plain = Plain("elastic-embedding", 5.0, spread=0.7)
    chosen = direction_of(Phase("spectral-minus", 1, kappa=14), plain.problem)
    solved = np.empty_like(plain.gradient)
    for column in range(2):
        whole = plain.attraction_hessian() + plain.curvature(column)
        solved[:, column] = np.linalg.lstsq(whole, -plain.gradient[:, column], rcond=None)[0]
    afresh, _ = chosen(plain.positions, plain.gradient, {})
    found, memory = chosen(plain.positions, plain.gradient, {"direction": solved})
    missed = np.linalg.norm(afresh - solved)
    assert missed > 1e-3 * np.linalg.norm(solved)  # of a tenth of the residual that is left to be found
    assert np.linalg.norm(found - solved) < 1e-6 * missed
    np.testing.assert_array_equal(memory["direction"], found)


@pytest.mark.parametrize("kappa", [1, 2, 4, 14])
@pytest.mark.parametrize("method", ["elastic-embedding", "t-sne"])
def test_the_spectral_direction_keeps_the_strongest_neighbours(method, kappa):
    plain = Plain(method, 0.5)
    strongest = np.zeros_like(plain.affinities, dtype=bool)
    for n, row in enumerate(plain.affinities):
        strongest[n, np.argsort(-row)[:kappa]] = True
    kept = (strongest | strongest.T) & (plain.affinities > 0)
    matrix = plain.attraction_hessian(kept)
    found = plain.choose("spectral", kappa=kappa)
    # What the shift of B alone decides is left out: a vector that is constant on each piece of the graph that is kept.
    within = matrix @ np.linalg.pinv(matrix, rcond=1e-10, hermitian=True)
    np.testing.assert_allclose(
        within @ matrix @ found, -within @ plain.gradient, atol=1e-4 * np.abs(plain.gradient).max()
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_fixed_point_direction_divides_by_the_degrees(method):
    plain = Plain(method, 0.5)
    degrees = 4 * plain.affinities.sum(axis=1)
    np.testing.assert_allclose(plain.choose("fixed-point"), -plain.gradient / degrees[:, np.newaxis], rtol=1e-8)
    np.testing.assert_array_equal(plain.choose("gradient-descent"), -plain.gradient)


def inverse_hessian(start, steps, changes):
    """The inverse Hessian of BFGS, written out: H <- (I - s y^T / s.y) H (I - y s^T / s.y) + s s^T / s.y."""
    found = start
    for step, change in zip(steps, changes, strict=True):
        share = 1 / (step @ change)
        left = np.eye(len(step)) - share * np.outer(step, change)
        found = left @ found @ left.T + share * np.outer(step, step)
    return found


@pytest.mark.parametrize(
    ("direction", "pairs"), [("l-bfgs", 1), ("l-bfgs", 4), ("spectral+l-bfgs", 3), ("spectral+l-bfgs", 10)]
)
def test_l_bfgs_is_bfgs_of_its_last_pairs(direction, pairs):
    plain = Plain("elastic-embedding", 0.3)
    chosen = direction_of(Phase(direction, 1, pairs=pairs, kappa=14), plain.problem)
    mean_degree = np.diag(plain.attraction_hessian()).mean()
    spectral = np.linalg.inv(plain.attraction_hessian() + 4e-10 * plain.affinities.sum(axis=1).min() * np.eye(14))
    sums, draws = make_repulsion("exact", "gaussian", 1e-3), np.random.default_rng(3)
    positions, memory, steps, changes = plain.positions, {}, [], []
    last = positions, plain.gradient
    for number in range(14):
        gradient = plain.problem.evaluate(positions, sums).gradient
        if number:
            step, change = (positions - last[0]).ravel(), (gradient - last[1]).ravel()
            assert step @ change > 0
            steps, changes = [*steps, step][-pairs:], [*changes, change][-pairs:]
        if direction == "l-bfgs":
            scale = steps[-1] @ changes[-1] / (changes[-1] @ changes[-1]) if steps else 1 / mean_degree
            start = scale * np.eye(28)
        else:
            start = np.kron(spectral, np.eye(2))
        found, memory = chosen(positions, gradient, memory)
        expected = -inverse_hessian(start, steps, changes) @ gradient.ravel()
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
        last = positions, gradient
        # Small steps anywhere: the pairs differ, and the objective is convex enough along them.
        positions = positions + 0.05 * draws.normal(size=positions.shape)


def test_conjugate_gradients_are_those_of_polak_and_ribiere():
    plain = Plain("s-sne", 1.0)
    chosen = direction_of(Phase("conjugate-gradients", 1), plain.problem)
    draws = np.random.default_rng(1)
    first, second = draws.normal(size=(2, 14, 2))
    second += 2 * first  # so that the weight is neither zero nor one
    before, memory = chosen(plain.positions, first, {})
    np.testing.assert_array_equal(before, -first)
    found, memory = chosen(plain.positions, second, memory)
    weight = (second * (second - first)).sum() / (first**2).sum()
    expected = -second + weight * before
    if (expected * second).sum() >= 0:
        expected = -second
    assert weight > 0
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    uphill, _ = chosen(plain.positions, 0.5 * second, {"gradient": -second, "direction": 100 * second})
    np.testing.assert_array_equal(uphill, -0.5 * second)  # it would go up: started afresh


def test_momentum_keeps_a_velocity_and_a_gain_for_each_coordinate():
    plain = Plain("t-sne", 1.0)
    chosen = direction_of(Phase("momentum", 1, length=40.0, momentum=0.6), plain.problem)
    draws, memory = np.random.default_rng(2), {}
    velocity, gains = np.zeros((14, 2)), np.ones((14, 2))
    for number in range(6):
        gradient = draws.normal(size=(14, 2)) * (10.0 if number == 4 else 0.01)
        for n in range(14):
            for d in range(2):
                agree = (velocity[n, d] > 0) == (gradient[n, d] > 0)
                gains[n, d] = max(0.8 * gains[n, d], 0.01) if agree else gains[n, d] + 0.2
                velocity[n, d] = 0.6 * velocity[n, d] - 40.0 / 4 * gains[n, d] * gradient[n, d]
            length = np.linalg.norm(velocity[n])
            velocity[n] *= min(1.0, 5.0 / length)
        found, memory = chosen(plain.positions, gradient, memory)
        np.testing.assert_allclose(found, velocity, rtol=1e-12)


def test_a_memory_in_the_order_of_its_names_chooses_the_same_direction():
    # step_10 comes before step_2 where names are sorted, as in the table of a checkpoint.
    draws = np.random.default_rng(3)
    diagonal, positions, memory = draws.uniform(1, 50, size=(14, 2)), draws.normal(size=(14, 2)), {}
    for _ in range(13):
        chosen, memory = limited_memory(positions, diagonal * positions, memory, n_pairs=20)
        positions = positions + 0.1 * chosen
    assert len(memory) > 2 + 2 * 10
    gradient, ordered = diagonal * positions, dict(sorted(memory.items()))
    assert list(ordered) != list(memory)
    for one, other in zip(
        limited_memory(positions, gradient, memory, 20), limited_memory(positions, gradient, ordered, 20), strict=True
    ):
        np.testing.assert_equal(one, other)
