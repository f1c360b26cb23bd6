"""Small runs of every kind of method, for the pages about them."""

import numpy as np
import pytest

from scalemani.params import Parameters
from scalemani.report.opened import open_run
from scalemani.routes import takes_labels
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.sources.beside.labelled import LabelledPoints
from scalemani.workers.executor import Executor

N_POINTS = 1500
METHODS = ("spectral-clustering", "diffusion-maps", "pca", "lda", "kernel-pca", "kernel-lda", "knn-graph", "t-sne")
VALUES = {
    "neighbors": {"n_neighbors": 12, "exact_below": 1000},
    "affinities": {"perplexity": 4.0},
    "landmarks": {"n_landmarks": 60},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 12, "direction": "spectral", "converged": 0, "repulsion": "exact"},
    "embedding": {"solver": "lll+refine"},
}


@pytest.fixture(scope="session")
def classes(roll):
    return (roll[:N_POINTS, 0] > 0).astype(int)


@pytest.fixture(scope="session")
def runs(roll, classes, tmp_path_factory):
    """Runs of 1,500 points in two blocks, by method: all go on from one graph."""
    folder, params = tmp_path_factory.mktemp("report"), Parameters().with_values(VALUES)
    made = {}
    for method in METHODS:
        source = open_points(np.asarray(roll[:N_POINTS], np.float64))
        given = LabelledPoints(source, classes) if takes_labels(method) else source
        run(given, folder / method, method, params, Executor(), 1024)
        made[method] = open_run(folder / method)
    return made
