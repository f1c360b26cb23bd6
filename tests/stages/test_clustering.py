"""What clusters are found among: directions of embedded points."""

import numpy as np
import pytest

from scalemani.stages.clustering import unit_rows


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_rows_are_clustered_by_their_direction_whatever_their_length(unit):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[7] = 0.0
    found = unit_rows(unit * rows)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.arange(50) != 7)
    np.testing.assert_allclose(found, unit_rows(rows), atol=1e-15)
