"""Distances that certificates, audits and invariants compute by themselves, of all metrics."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.judged import distances_between
from scalemani.config.metrics import METRICS, compares_rows
from scalemani.kernels.rows.metrics import map_rows
from scalemani.store.invariants.orders import CONVERSIONS

COMPARED = sorted(name for name in METRICS if compares_rows(name))
MAPPED = sorted(name for name in METRICS if not compares_rows(name) and name not in ("euclidean", "precomputed"))


@pytest.mark.parametrize("metric", COMPARED)
def test_every_metric_that_compares_rows_has_a_judge(metric):
    rows = np.random.default_rng(0).random((6, 2))
    away = distances_between(metric, rows, rows[:4])
    assert away.shape == (6, 4)
    np.testing.assert_allclose(np.diag(away[:4]), 0, atol=1e-12)
    assert away[5].min() > 0


@pytest.mark.parametrize("metric", MAPPED)
def test_every_metric_with_coordinates_says_how_its_distances_come_of_theirs(metric):
    rows = np.random.default_rng(1).integers(0, 2, (30, 9))
    rows[:, :2] = [1, 0]  # no row is constant
    mapped = np.asarray(map_rows(rows.astype(np.uint8 if metric in ("hamming", "jaccard") else float), metric), float)
    power, unit = CONVERSIONS[metric]
    if metric == "jaccard":
        pytest.skip("its rows are sets of bits, whose distance is the square root of the metric's")
    if metric == "hellinger":
        shares = rows / rows.sum(axis=1, keepdims=True)
        expected = cdist(np.sqrt(shares), np.sqrt(shares)) / np.sqrt(2)
    else:
        expected = cdist(rows.astype(float), rows.astype(float), metric)
    np.testing.assert_allclose(cdist(mapped, mapped) ** power / unit, expected, atol=1e-7)
