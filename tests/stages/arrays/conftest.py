"""Runs that store every array of the catalogue between them."""

import numpy as np
import pytest
from scipy import sparse

from scalemani.config.params import Parameters
from scalemani.config.routes import takes_labels
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_pixels, open_points
from scalemani.io.sources.side_data import with_labels, with_lists, with_weights
from scalemani.runs.doubting import measure_doubt
from scalemani.runs.opened import Run
from scalemani.runs.walk import run
from tests.every_stage import METHODS

BLOCK_ROWS = 1024
VALUES = {
    "neighbors": {"n_neighbors": 9, "method": "partition", "n_probes": 1, "recall": 1.0, "max_rounds": 1},
    "partition": {"cell_points": 60, "sketch_dimensions": 2, "sample_points": 2000},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 100},
    "landmark_weights": {"n_neighbors": 4},
    "embedding": {"solver": "lll+refine"},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 12, "exaggerated_iterations": 4, "snapshots": 6},
}
GIVEN = {"method": "given"}
DIAGONAL = {"covariances": "diagonal"}


@pytest.fixture(scope="session")
def finished(roll, tmp_path_factory) -> dict[str, Run]:
    """Return runs of 2,500 float32 points in one store, by methods and solvers; together they have all stages."""
    folder, params = tmp_path_factory.mktemp("records") / "run", Parameters().with_values(VALUES)
    found, by_solver, points, labels = {}, {}, open_points(roll[:2500]), np.arange(2500) % 3
    around_landmarks = {"lll": {}, "variational-nystrom": {}, "le-z": {"covariances": "full"}, "nystrom": DIAGONAL}
    for solver, around in around_landmarks.items():
        graph = {"kind": "bhattacharyya", **around} if around else {}
        made = {"symmetric_affinities": {"stored": False}} if solver == "lll" else {}
        asked = params.with_values({"embedding": {"solver": solver}, "landmark_graph": graph, **made})
        by_solver[solver] = run(points, folder, "laplacian-eigenmaps", asked, Executor(workers=2), BLOCK_ROWS)
    indices = (np.arange(2500)[:, np.newaxis] + np.arange(1, 10)) % 2500
    indices[::7, -2:] = -1
    listed, asked = with_lists(points, (indices, np.ones(indices.shape))), params.with_values({"neighbors": GIVEN})
    by_solver["given lists"] = run(listed, folder, "knn-graph", asked, Executor(workers=2), BLOCK_ROWS)
    for method in METHODS:
        given = with_labels(points, labels) if takes_labels(method) else points
        found[method] = run(given, folder, method, params, Executor(workers=2), BLOCK_ROWS)
    found["t-sne"] = measure_doubt(found["t-sne"], Executor(workers=2), {"doubt.null_points": 60, "doubt.halves": 1})
    return {**found, **by_solver}


@pytest.fixture(scope="session")
def group_of(finished):
    """Return the group of a stage by its name."""

    def group(stage):
        return next(one for one in finished.values() if stage in one.keys).group(stage)

    return group


@pytest.fixture(scope="session")
def sparse_run(tmp_path_factory) -> Run:
    """Return a run of 1,500 sparse rows of bytes in two blocks."""
    counts = sparse.random(1500, 400, 0.02, format="csr", random_state=3, data_rvs=lambda n: np.arange(n) % 7 + 1)
    values = {"neighbors": {"n_neighbors": 8}, "landmarks": {"n_landmarks": 30}}
    folder, params = tmp_path_factory.mktemp("records") / "sparse", Parameters().with_values(values)
    points = open_points(counts.astype(np.uint8))
    return run(points, folder, "knn-graph", params, Executor(workers=2), BLOCK_ROWS)


@pytest.fixture(scope="session")
def weighted(roll, tmp_path_factory) -> Run:
    """Return a run of rows that stand for one to three each, some of which are one point, with all that it writes."""
    values = {"neighbors": {"n_neighbors": 9}, "affinities": {"perplexity": 6}, "landmarks": {"n_landmarks": 30}}
    values["duplicates"] = {"tolerance": 0.0}
    folder, params = tmp_path_factory.mktemp("records") / "weighted", Parameters().with_values(values)
    points = with_weights(open_points(roll[np.arange(500) % 400]), 1 + np.arange(500) % 3)
    return run(points, folder, "laplacian-eigenmaps", params, Executor(workers=2, keep=True), BLOCK_ROWS)


@pytest.fixture(scope="session")
def wide(tmp_path_factory) -> Run:
    """Return a run of float64 points in two separate clouds, of which the larger is embedded."""
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(size=(1500, 4)), 100 + rng.normal(size=(400, 4))])
    values = {
        "neighbors": {"n_neighbors": 8, "method": "exact"},
        "affinities": {"kind": "gaussian", "bandwidth_neighbor": 4},
        "components": {"disconnected": "largest"},
        "landmarks": {"n_landmarks": 60, "method": "kmeans", "snap": False},
    }
    folder, params = tmp_path_factory.mktemp("records") / "wide", Parameters().with_values(values)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(workers=2), BLOCK_ROWS)


@pytest.fixture(scope="session")
def by_leaves(tmp_path_factory) -> Run:
    """Return a run of points whose neighbours were found within leaves, with all that such a search writes."""
    values = {"n_neighbors": 8, "method": "leaves", "leaf_points": 50, "recall": 0.5, "max_rounds": 0}
    points = np.random.default_rng(6).normal(size=(1500, 12)).astype(np.float32)
    folder, params = tmp_path_factory.mktemp("records") / "leaves", Parameters().with_values({"neighbors": values})
    return run(
        open_points(points), folder, "knn-graph", params, Executor("processes", workers=1, keep=True), BLOCK_ROWS
    )


@pytest.fixture(scope="session")
def by_stripes(tmp_path_factory) -> Run:
    """Return a run of points whose neighbours were searched by stripes, with all that such a search writes."""
    points = np.random.default_rng(7).normal(size=(4200, 5)).astype(np.float32)
    folder = tmp_path_factory.mktemp("records") / "stripes"
    params = Parameters().with_values({"neighbors": {"n_neighbors": 4, "method": "exact"}})
    executor = Executor("processes", workers=1, keep=True)
    return run(open_points(points), folder, "knn-graph", params, executor, BLOCK_ROWS)


@pytest.fixture(scope="session")
def pictured(tmp_path_factory) -> Run:
    """Return a run of the pixels of an image."""
    values = {"neighbors": {"method": "window", "window": 3}, "landmarks": {"n_landmarks": 60}}
    folder, image = tmp_path_factory.mktemp("records") / "pictured", np.random.default_rng(3).normal(size=(40, 50))
    params = Parameters().with_values(values)
    return run(open_pixels(image), folder, "laplacian-eigenmaps", params, Executor(workers=2), BLOCK_ROWS)
