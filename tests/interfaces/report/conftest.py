"""Small runs of every kind of method, for the pages about them, and a browser that opens these."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.config.routes import takes_labels
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.report.map_data import map_data
from scalemani.interfaces.report.opened import open_run
from scalemani.interfaces.report.page import measure_quality, page
from scalemani.io.sources import named_labels, open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.runs.walk import run
from tests.every_stage import METHODS

N_POINTS = 1500
VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4.0},
    "landmarks": {"n_landmarks": 60},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 12, "direction": "spectral", "converged": 0, "repulsion": "exact"},
    "embedding": {"solver": "lll+refine"},
}


def shared_browser() -> Any:
    """Return the browser that benchmarks of the page drive too."""
    path = Path(__file__).parents[3] / "pipelines" / "benchmarks" / "browser.py"
    spec = importlib.util.spec_from_file_location("browser", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def open_browser(tmp_path_factory) -> Iterator[Callable[..., Any]]:
    """Return what starts a browser with further options; where none is installed, the test is skipped."""
    shared, started = shared_browser(), []
    if shared.CHROMIUM is None:
        pytest.skip("no Chromium is installed")

    def start(*options: str) -> Any:
        started.append(shared.Browser(tmp_path_factory.mktemp("browser") / "chromium", *options))
        return started[-1]

    yield start
    for browser in started:
        browser.close()


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
        given = with_labels(source, classes) if takes_labels(method) else source
        run(given, folder / method, method, params, Executor(), 1024)
        made[method] = open_run(folder / method)
    return made


def write_tiled(path: Path, run: Any, columns: dict[str, np.ndarray], n_sampled: int = 0) -> Path:
    """Write the page of a run as if it had millions of points: 30 are drawn, on top of tiles that count all."""
    data = map_data(run, named_labels(columns, N_POINTS), most_points=N_POINTS - 1, sampled_points=30)
    path.write_text(page(run, measure_quality(run, {}, n_sampled, 0), data))
    return path
