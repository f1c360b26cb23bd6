"""What the audit of landmarks allows to numbers that a run took from a sample of its points."""

import numpy as np
import pytest

from scalemani.audit.landmarks import SPACING_ROWS, SPACING_SAMPLE, range_of_usual
from scalemani.kernels.neighbors.isolation import usual_ratio

PAIRS, RESAMPLES = 150, 99  # of 99 resamples and another sample, each is as often the least or the largest: 2 in 100

SHAPES = {
    "narrow": lambda rng, size: np.exp(0.15 * rng.normal(size=size)),
    "wide": lambda rng, size: np.exp(0.5 * rng.normal(size=size)),
    "long tail": lambda rng, size: 1 + rng.pareto(2, size),
    "outliers": lambda rng, size: np.where(rng.random(size) < 0.15, 9, 1) * np.exp(0.2 * rng.normal(size=size)),
    "nearly a quarter of outliers": lambda rng, size: (
        np.where(rng.random(size) < 0.24, 9, 1) * np.exp(0.2 * rng.normal(size=size))
    ),
    "half of copies": lambda rng, size: np.where(rng.random(size) < 0.5, 0, 1) * np.exp(0.3 * rng.normal(size=size)),
}


@pytest.mark.parametrize("n_points", [5000, 100_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_usual_ratio_of_another_sample_is_beyond_the_range_as_rarely_as_resamples_say(shape, n_points):
    rng = np.random.default_rng(0)
    ratios = SHAPES[shape](rng, n_points)
    n_sampled = int(n_points * -np.expm1(-SPACING_SAMPLE / n_points))
    differing = 1 / SPACING_ROWS + 1 / n_sampled - 2 / n_points
    missed = caught = 0
    for _ in range(PAIRS):
        of_run = usual_ratio(ratios[np.unique(rng.integers(0, n_points, SPACING_SAMPLE))])
        drawn = ratios[rng.choice(n_points, SPACING_ROWS, replace=False)]
        least, most = range_of_usual(drawn, drawn, differing, rng, RESAMPLES)
        missed += not least <= of_run <= most
        caught += not least <= 2 * of_run <= most
    assert missed <= 10  # 3 are expected, and 11 in one of 3,000 such tests
    assert (
        caught == PAIRS or shape == "nearly a quarter of outliers"
    )  # which are some in one sample, and not in another


def test_samples_of_all_points_have_one_usual_ratio():
    ratios = np.random.default_rng(1).gamma(3.0, size=1000)
    assert range_of_usual(ratios, ratios, 0.0, np.random.default_rng(2)) == (usual_ratio(ratios),) * 2
