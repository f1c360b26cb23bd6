"""The stage `landmarks`: the method, the seed and the sample that were asked for are those that choose."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

METHODS = ["random", "spread", "kmeans", "kmeans++", "kmeans++ seeding", "minmax"]
N_LANDMARKS = 80


def landmarks_of(points, folder, seed=3, **values):
    """Return the rows of the landmarks that a run chooses."""
    asked = {"affinities": {"perplexity": 8}, "seed": seed, "embedding": {"max_passes": 2, "residual": 0.1}}
    params = Parameters().with_values({**asked, "landmarks": {"n_landmarks": N_LANDMARKS, **values}})
    finished = run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(), 1024)
    return finished.group("landmarks").read("rows")


def closest_pair(points):
    """Return the smallest distance between two points."""
    distances = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=2))
    return distances[~np.eye(len(points), dtype=bool)].min()


@pytest.fixture(scope="module")
def chosen(roll, tmp_path_factory):
    """Return the rows of each method, of one store."""
    folder = tmp_path_factory.mktemp("landmarks") / "run"
    return {method: landmarks_of(roll, folder, method=method, sample_points=1500) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_chooses_the_landmarks_that_the_function_chooses(roll, chosen, method):
    selected = sm.select_landmarks(roll, N_LANDMARKS, method, random_state=3, sample_points=1500)
    np.testing.assert_array_equal(chosen[method], selected.indices)


def test_each_method_chooses_other_landmarks(chosen):
    assert len({tuple(rows) for rows in chosen.values()}) == len(METHODS)


def test_spread_landmarks_keep_away_from_each_other_as_random_ones_do_not(roll, chosen):
    points = roll.astype(np.float64)
    assert closest_pair(points[chosen["spread"]]) > 2 * closest_pair(points[chosen["random"]])


def test_another_seed_and_another_sample_choose_other_landmarks(roll, tmp_path, chosen):
    assert not np.array_equal(landmarks_of(roll, tmp_path / "run", seed=4), chosen["random"])
    larger = landmarks_of(roll, tmp_path / "run", method="minmax", sample_points=2500)
    assert not np.array_equal(larger, chosen["minmax"])


class Counting(Progress):
    """Notes the units of the landmarks that are announced, and counts those that are done."""

    def __init__(self):
        self.announced, self.done, self.stage = [], 0, None

    def begin(self, stage):
        self.stage = stage

    def start(self, stage, total, unit="block", done=0):
        if stage == "landmarks":
            self.announced.append((total, unit))

    def advance(self, done=1):
        self.done += done if self.stage == "landmarks" else 0


@pytest.mark.parametrize(("method", "units"), [("gp", (12, "landmark")), ("random", (1, "selection"))])
def test_each_landmark_of_a_gaussian_process_is_told_of(tmp_path, method, units):
    points, counting = np.random.default_rng(0).normal(size=(600, 8)), Counting()
    asked = {"landmarks": {"n_landmarks": 12, "method": method, "steps": 2}, "embedding": {"solver": "nystrom"}}
    params = Parameters().with_values(asked)
    run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(progress=counting), 1024)
    assert counting.announced == [units]
    assert counting.done == units[0]
