"""An estimator and the command line share a store: what one has stored the other finds complete."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES

ESTIMATORS = {
    "laplacian-eigenmaps": sm.LaplacianEigenmaps,
    "spectral-clustering": sm.SpectralClustering,
    "diffusion-maps": sm.DiffusionMaps,
    "pca": sm.LandmarkPCA,
    "kernel-pca": sm.LandmarkKernelPCA,
    "kernel-function-pca": sm.KernelFunctionPCA,
    "locally-linear-embedding": sm.LandmarkLLE,
    "isomap": sm.LandmarkIsomap,
    "combined-isomap": sm.CombinedIsomap,
    **{method: getattr(sm, row.estimator) for method, row in OBJECTIVES.items()},
}


def missing(output: str) -> dict[str, str]:
    """Return what `scalemani plan` shows as missing of each stage."""
    lines = output.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("stage"))
    return {line.split()[0]: line.split()[2] for line in lines[header + 1 : -1]}


@pytest.fixture(scope="module", params=[2000, 40])
def points(request, tmp_path_factory):
    """The file of points of which every default is the usual one, and of which there are few."""
    path = tmp_path_factory.mktemp("points") / "points.npy"
    np.save(path, np.random.default_rng(0).normal(size=(request.param, 5)).astype(np.float32))
    return path


@pytest.mark.parametrize("method", ESTIMATORS)
def test_nothing_is_missing_of_what_an_estimator_has_stored(method, points, tmp_path, scalemani):
    settings = {"max_iter": 3} if method in OBJECTIVES else {}
    options = ["--set=layout.max_iterations=3"] if settings else []
    ESTIMATORS[method](store=tmp_path / "run", **settings).fit(np.load(points))
    status, output, errors = scalemani("plan", points, tmp_path / "run", "--method", method, *options)
    assert (status, errors) == (0, "")
    assert set(missing(output).values()) == {"complete"}


def test_nothing_is_missing_of_a_graph_that_was_stored(points, tmp_path, scalemani):
    sm.knn_graph(points, store=tmp_path / "run")
    status, output, _ = scalemani("plan", points, tmp_path / "run", "--method", "knn-graph")
    assert status == 0
    assert set(missing(output).values()) == {"complete"}


def test_what_the_command_line_has_stored_is_what_an_estimator_returns(points, tmp_path, scalemani):
    status, *_ = scalemani("embed", points, tmp_path / "run", "--method", "t-sne", "--set=layout.max_iterations=3")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "stages").rglob("*") if path.is_file()}
    model = sm.TSNE(max_iter=3, store=tmp_path / "run").fit(np.load(points))
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "stages").rglob("*") if path.is_file()}
    assert (status, before) == (0, after)
    np.testing.assert_array_equal(model.embedding_, sm.open_run(tmp_path / "run").embedding[...])
