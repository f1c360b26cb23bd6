"""What clusters are found among: directions of embedded points."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.landmarks.kmeans import kmeans
from scalemani.runs.walk import run
from scalemani.stages import clustering
from scalemani.stages.arrays.embeddings import StoredClustering, StoredEmbedding
from scalemani.stages.clustering import unit_rows
from scalemani.store.groups import StageGroup


@pytest.mark.parametrize("unit", [1e-200, 1e-12, 1.0, 1e12, 1e200])
def test_rows_are_clustered_by_their_direction_whatever_their_length(unit):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[7] = 0.0
    found = unit_rows(unit * rows)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.arange(50) != 7)
    np.testing.assert_allclose(found, unit_rows(rows), atol=1e-15)


def run_of(rows, folder, moved, progress):
    """Return what the stage says of rows (1500, 3) whose centres, the axes, were found before."""
    dimensions = Dimensions(1500, 3, "float64", 1024)
    embedding, output = (StageGroup(folder, f"stages/{name}/key", 1024) for name in ("embedding", "clustering"))
    embedding.create(len(rows), [StoredEmbedding.embedding.sized(3)])
    embedding.write_whole({StoredEmbedding.eigenvalues: np.array([0.1, 0.2, 0.2])}, "solution")
    for block in range(dimensions.n_blocks):
        embedding.write_block(block, {StoredEmbedding.embedding: rows[slice(*dimensions.rows(block))]})
    last = {StoredClustering.passes: np.array(9), StoredClustering.moved: np.array(moved)}
    output.write_whole({StoredClustering.centers: np.eye(3), **last}, StoredClustering.CENTERS_UNIT)
    params = Parameters().with_values({"clustering": {"n_clusters": 3}}).resolved("spectral-clustering")
    task = StageTask("clustering", dimensions, params, {"embedding": embedding}, output, 0)
    return clustering.run(StageContext(task, Executor(workers=2, progress=progress), 2))


@pytest.mark.parametrize(("moved", "settled"), [(0.5, False), (2e-4, False), (5e-5, True)])
def test_clusters_are_settled_where_no_centre_moved_far_in_the_last_pass(tmp_path, listening, moved, settled):
    rows = np.random.default_rng(5).normal(size=(1500, 3))
    said = run_of(rows, tmp_path, moved, listening)
    assert (said["settled"], said["passes"]) == (settled, 9)
    assert said["sizes"] == np.bincount(rows.argmax(axis=1)).tolist()
    assert listening.warned == []


def test_a_cluster_without_points_is_warned_of(tmp_path, listening):
    rows = np.random.default_rng(5).normal(size=(1500, 3))
    rows[:, 2] = rows.min() - 1
    assert run_of(rows, tmp_path, 0.0, listening)["sizes"][2] == 0
    (warned,) = listening.warned
    assert warned.startswith("clustering: 1 of 3 clusters have no points: ")


def clustered(points, folder, seed, n_restarts=1):
    values = {"clustering": {"n_clusters": 7, "n_restarts": n_restarts}, "affinities": {"perplexity": 8}}
    asked = {**values, "embedding": {"solver": "exact"}, "landmarks": {"n_landmarks": 100, "method": "random"}}
    params = Parameters().with_values({**asked, "seed": seed})
    return run(open_points(points), folder, "spectral-clustering", params, Executor(), 1024)


def test_k_means_starts_by_the_seed_from_the_landmarks(tmp_path):
    """On a ring, where to cut is left to the start: another seed cuts elsewhere, the same one in the same places."""
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) + 1e-3 * np.random.default_rng(0).normal(size=(400, 2))
    started = {}
    for seed in (1, 2):
        finished = clustered(ring, tmp_path / str(seed), seed)
        columns = np.asarray(finished.embedding[...])[:, :6]  # a ring has eigenvalues in pairs, so that the last is far
        landmarks = unit_rows(columns[np.asarray(finished.landmarks.rows)])
        stored = finished.group("clustering").read("pass_000")
        expected, other = (kmeans(landmarks, 7, start, 1).centers for start in (seed, 3 - seed))
        np.testing.assert_allclose(stored, expected, atol=1e-9)
        assert np.abs(stored - other).max() > 1e-3
        started[seed] = stored


def test_an_eigenvector_beyond_a_gap_cuts_no_cluster(tmp_path):
    """Four clusters of unlike sizes: three eigenvalues are small, and all of their points are found by these."""
    rng, sizes = np.random.default_rng(5), (600, 200, 120, 60)
    centres = 2.2 * rng.normal(size=(4, 10))
    points = np.concatenate([centre + rng.normal(size=(n, 10)) for centre, n in zip(centres, sizes, strict=True)])
    classes = np.repeat(range(4), sizes)
    asked = {"affinities": {"perplexity": 20}, "embedding": {"solver": "exact"}, "landmarks": {"n_landmarks": 200}}

    def error_of(**clustering) -> tuple[float, int]:
        params = Parameters().with_values({**asked, "clustering": {"n_clusters": 4, **clustering}})
        finished = run(open_points(points), tmp_path, "spectral-clustering", params, Executor(), 1024)
        counts = np.histogram2d(classes, np.asarray(finished.labels[...]), bins=(4, 4))[0]
        right = counts[linear_sum_assignment(-counts)].sum()
        return 1 - right / len(points), finished.certificates["clustering"]["columns"]

    assert error_of() == (0.0, 3)
    with pytest.raises(
        ConfigError, match=r"clustering\.n_columns must be at most landmark_embedding\.n_components=4, got 5"
    ):
        error_of(n_columns=5)
    error, columns = error_of(n_columns=4)
    assert columns == 4
    assert error > 0.2
