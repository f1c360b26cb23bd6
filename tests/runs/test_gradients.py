"""Derivatives of maps by features: of minima against textbook gradients solved anew by SciPy."""

import numpy as np
import pytest
from scipy.optimize import brentq, root

import scalemani as sm
from scalemani.runs.gradients import gathered, read_gradients

N, K, PERPLEXITY = 150, 20, 6


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, 5)) * [3, 2, 1, 0.5, 0.5] + 6 * (np.arange(N) % 2)[:, np.newaxis] * [1, 0, 0, 0, 0]


def shares_of(squares):
    """Gaussian affinities of one row whose entropy is the logarithm of the perplexity."""

    def shares(beta):
        values = np.exp(-beta * (squares - squares.min()))
        return values / values.sum()

    def excess(beta):
        values = shares(beta)
        return -(values[values > 0] * np.log(values[values > 0])).sum() - np.log(PERPLEXITY)

    return shares(brentq(excess, 1e-6, 1e4, xtol=1e-14, rtol=1e-14))


def gradient_of_t_sne(y, row, w, positions):
    """4 sum_j (p_ij - q_ij) (y_i - y_j) / (1 + |y_i - y_j|^2)."""
    moved = positions.copy()
    moved[row] = y
    squares = ((moved[:, np.newaxis] - moved) ** 2).sum(axis=2)
    kernel = 1 / (1 + squares)
    np.fill_diagonal(kernel, 0)
    return 4 * ((w[row] / w.sum() - kernel[row] / kernel.sum()) * kernel[row]) @ (y - moved)


def gradient_of_elastic_embedding(y, row, w, positions):
    """4 sum_j (w_ij - strength exp(-|y_i - y_j|^2)) (y_i - y_j)."""
    others = np.delete(np.arange(N), row)
    moves = y - positions[others]
    return 4 * (w[row, others] - 1e-4 * np.exp(-(moves**2).sum(axis=1))) @ moves


@pytest.mark.parametrize(
    ("estimator", "gradient"), [(sm.TSNE, gradient_of_t_sne), (sm.ElasticEmbedding, gradient_of_elastic_embedding)]
)
def test_a_minimum_moves_as_its_own_gradient_solved_anew(points, tmp_path, estimator, gradient):
    estimator(n_neighbors=K, perplexity=PERPLEXITY, store=tmp_path, random_state=0).fit(points)
    run = sm.open_run(tmp_path)
    positions, lists = np.asarray(run.embedding[...]), np.asarray(run.graph.indices[0:N])
    shares = np.zeros((N, N))
    for row in range(N):
        shares[row, lists[row]] = shares_of(((points[row] - points[lists[row]]) ** 2).sum(axis=1))
    gradients, work_rows = read_gradients(run), run.order.work_rows
    rows, step, errors = np.arange(0, N, 10), 1e-4, []
    slopes = gradients.at(work_rows[rows], gathered(run, work_rows[rows]))
    for row, slope in zip(rows, slopes, strict=True):
        ends = []
        for sign in (1, -1):
            changed, point = shares.copy(), points[row] + sign * step * np.array([1, -2, 1, 0.5, 3])
            moved = points.copy()
            moved[row] = point
            for giver in [row, *np.flatnonzero((lists == row).any(axis=1))]:  # whose distance to the point changes
                changed[giver, lists[giver]] = shares_of(((moved[giver] - moved[lists[giver]]) ** 2).sum(axis=1))
            sums = (shares + shares.T) / 2, (changed + changed.T) / 2
            left = gradient(positions[row], row, sums[0], positions)

            def excess(y, row=row, w=sums[1], left=left):
                return gradient(y, row, w, positions) - left

            ends.append(root(excess, positions[row], tol=1e-13).x)
        expected = (ends[0] - ends[1]) / (2 * step)
        errors.append(np.linalg.norm(slope @ [1, -2, 1, 0.5, 3] - expected) / np.linalg.norm(expected))
    assert np.median(errors) < 1e-4
    assert np.mean(np.array(errors) < 1e-3) >= 0.9
