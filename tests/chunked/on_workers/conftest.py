"""Runs whose last stages are done once more, with the vectors by panels."""

import shutil

import numpy as np
import pytest

from scalemani.chunked.on_workers import spread
from scalemani.kernels.arrays import columns
from scalemani.params import Parameters
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.workers.executor import Executor

VALUES = {"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}, "embedding": {"residual": 1e-3}}


@pytest.fixture(scope="module")
def small_panels():
    """Panels so small that a few thousand points have several, on the driver and, as it says which, on workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "PANEL", 1024)
        patch.setattr(spread, "SPREAD_ROWS", 1100)
        yield


@pytest.fixture(scope="module")
def embed(roll, small_panels):
    """Return embed(root, residual, **resources): the Laplacian eigenmaps of 3,500 points."""

    def embed(root, residual=1e-3, **resources):
        params = Parameters().with_values({**VALUES, "embedding": {"residual": residual}})
        executor = resources.pop("executor", None) or Executor(**resources)
        return run(open_points(roll[:3500]), root, "laplacian-eigenmaps", params, executor, 2048)

    return embed


@pytest.fixture(scope="module")
def in_memory(embed, tmp_path_factory):
    """The run of threads, whose vectors are arrays."""
    return embed(tmp_path_factory.mktemp("memory") / "run")


@pytest.fixture
def without_vectors(in_memory, tmp_path):
    """A copy of it that lacks what is computed of vectors."""
    shutil.copytree(in_memory.store.root, tmp_path / "run")
    for stage in ("coarse_embedding", "embedding"):
        shutil.rmtree(tmp_path / "run" / "stages" / stage)
    return tmp_path / "run"


@pytest.fixture(scope="session")
def assert_same_vectors():
    """A function that asserts that two runs have the same vectors to the last bit, and that no panel is left over."""

    def assert_same(one, other):
        for stage, name in (("coarse_embedding", "vectors"), ("embedding", "embedding"), ("embedding", "eigenvalues")):
            np.testing.assert_array_equal(one.group(stage).read(name), other.group(stage).read(name), err_msg=stage)
            assert "panels" not in other.group(stage).objects.names()
            assert "panels.json" not in other.group(stage).objects.names()
        assert one.certificates["embedding"] == other.certificates["embedding"]

    return assert_same
