"""What measures a result is a finite number, or the result is refused."""

import contextlib
import json

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import NumericalError
from scalemani.io.sources import open_points
from scalemani.runs.walk import check_certificates, run

FEW = {"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 50}}


@pytest.mark.parametrize("name", ["early_exaggeration", "strength"])
def test_weights_of_forces_whose_squares_overflow_are_refused(scalemani, tmp_path, name):
    np.save(tmp_path / "points.npy", np.random.default_rng(0).random((200, 3)))
    words = ("embed", tmp_path / "points.npy", tmp_path / "run", "--method=t-sne", f"--set=layout.{name}=1e300")
    status, _, errors = scalemani(*words)
    assert status == 2
    assert f"layout.{name} must be <= 1{30 * '0'}, got 1e+300" in errors
    assert not (tmp_path / "run").exists()


def test_the_largest_weights_end_in_finite_numbers_or_an_error(tmp_path, scalemani):
    values = {
        **FEW,
        "layout": {"early_exaggeration": 1e30, "strength": 1e30, "max_iterations": 3, "exaggerated_iterations": 1},
    }
    points = open_points(np.random.default_rng(0).random((300, 3)))
    with contextlib.suppress(NumericalError):
        run(points, tmp_path / "run", "t-sne", Parameters().with_values(values), Executor(workers=1))
    _, output, _ = scalemani("info", tmp_path / "run", "--json")
    json.loads(output, parse_constant=pytest.fail)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, np.float64("inf")])
def test_a_certificate_that_is_no_number_ends_its_stage(value):
    check_certificates("layout", {"iterations": 3, "stopped": "converged", "gradient_norm": 1.0})
    with pytest.raises(NumericalError, match=r"gradient_norm (-?inf|nan)"):
        check_certificates("layout", {"iterations": 3, "gradient_norm": value})
