"""Whole runs with plain kernels and with compiled ones: the same arrays, to the rounding of what is stored."""

import os
import subprocess
import sys

import numpy as np
import pytest
import zarr

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.machine.compile import PLAIN
from scalemani.runs.walk import run

VALUES = {
    "partition": {"cell_points": 100},
    "neighbors": {"n_neighbors": 10, "method": "partition", "recall": 1.0},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 50},
    "layout": {"max_iterations": 2, "repulsion": "grid"},  # rounding grows from step to step of a descent
}
N_POINTS = 300
ROUNDING = 1e-14  # of what is a difference, such as residuals
OF_VECTORS = 1e-4  # rounding to float32 divided by the gaps between eigenvalues


def run_both_routes(points, folder):
    """Run the spectral route, and t-SNE from there."""
    for method in ("laplacian-eigenmaps", "t-sne"):
        run(open_points(points), folder, method, Parameters().with_values(VALUES), Executor(), 1024)


def arrays_of(folder):
    """Return every stored array of a run, by stage and name."""
    found = {}
    for stage in sorted((folder / "stages").iterdir()):
        for key in stage.iterdir():
            for name, array in zarr.open_group(key / "arrays", mode="r").members(max_depth=None):
                if isinstance(array, zarr.Array):
                    found[f"{stage.name}/{name}"] = array[...]
    return found


@pytest.mark.skipif(PLAIN, reason="this process has no compiled kernels to compare with")
def test_plain_kernels_store_what_compiled_ones_do(roll, tmp_path):
    np.save(tmp_path / "points.npy", roll[:N_POINTS])
    run_both_routes(tmp_path / "points.npy", tmp_path / "compiled")
    command = [sys.executable, __file__, str(tmp_path / "points.npy"), str(tmp_path / "plain")]
    subprocess.run(command, check=True, env={**os.environ, "SCALEMANI_PLAIN": "1"})
    all_compiled, all_plain = arrays_of(tmp_path / "compiled"), arrays_of(tmp_path / "plain")
    assert all_plain.keys() == all_compiled.keys()
    assert any(name.startswith("layout/") for name in all_plain)
    for name, compiled in all_compiled.items():
        plain = all_plain[name]
        assert (plain.dtype, plain.shape) == (compiled.dtype, compiled.shape), name
        if name == "embedding/guards":  # vectors that are not wanted turn within those of close values
            continue
        if np.issubdtype(compiled.dtype, np.inexact):
            error = OF_VECTORS if name.startswith(("coarse_embedding/", "embedding/", "layout/")) else 1e-6
            largest = 1.0 if "residuals" in name else np.abs(compiled).max(initial=0)  # of unit vectors
            assert np.abs(plain - compiled).max(initial=0) <= error * largest + ROUNDING, name
        else:
            np.testing.assert_array_equal(plain, compiled, err_msg=name)


if __name__ == "__main__":
    assert PLAIN
    run_both_routes(*sys.argv[1:])
