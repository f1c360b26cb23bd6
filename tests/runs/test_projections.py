"""Memory and disk as projected, beside what real runs on narrow and wide points take, dense and sparse."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.memory_model import process_bytes
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.plan import overhead_bytes
from scalemani.runs.walk import plan_run

# Stages also load kernels and libraries that those before did not need, and compile: of a process bytes are planned.
LOADED = 150 * 10**6
LEAST_TOLD_APART = 60 * 10**6  # smaller needs drown in what is loaded
MOST_OF_WHAT_IS_MEASURED = 3.0  # of memory, where kernels of which little was loaded before make a need larger
MOST_OF_WHAT_IS_WRITTEN = 2.7  # of the disk, all stages: rounds of neighbours and edges that all go one way are at most
FEW_ROWS = 1100  # two blocks
VALUES = {
    "neighbors": {"n_neighbors": 15, "method": "partition", "recall": 0.5, "max_rounds": 1},
    "affinities": {"perplexity": 5},
    "landmarks": {"n_landmarks": 200},
    "embedding": {"solver": "lll+refine", "residual": 0.01},
}


# Most edges of a graph of many neighbours go one way where points have no low dimension: rows of coarse graphs fill up.
MANY_NEIGHBORS = {**VALUES, "neighbors": {**VALUES["neighbors"], "n_neighbors": 90}, "affinities": {"perplexity": 30}}


def surface(n_features):
    """Return a surface of two dimensions among many features, and of a type that wide points often have."""
    rng = np.random.default_rng(n_features)
    surface = rng.random((40_000 if n_features < 100 else 4096 if n_features < 1000 else 2500, 2))
    points = np.sin(surface @ rng.normal(size=(2, n_features)) * 2)
    return points.astype(np.float32) if n_features < 1000 else np.round(100 + 100 * points).astype(np.int32)


def normal():
    """Return points that fill all their dimensions."""
    return np.random.default_rng(0).normal(size=(10_000, 50)).astype(np.float32)


def documents():
    """Return sparse counts of words, of which some are much more frequent than others."""
    n_documents, n_words, length = 8000, 10_000, 40
    words = np.minimum(np.random.default_rng(1).zipf(1.3, (n_documents, length)), n_words) - 1
    ones, rows = np.ones(words.size, np.float32), np.repeat(np.arange(n_documents), length)
    return sp.csr_matrix((ones, (rows, words.ravel())), (n_documents, n_words))


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes of its disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.mark.parametrize("n_features", [3, 784, 9000])
def test_no_stage_takes_more_memory_or_disk_than_projected_nor_much_less(tmp_path, n_features):
    np.save(tmp_path / "points.npy", surface(n_features))
    check_projections(str(tmp_path / "points.npy"), VALUES, tmp_path)


def test_of_points_without_structure_and_many_neighbors_none_does_either(tmp_path):
    np.save(tmp_path / "points.npy", normal())
    check_projections(str(tmp_path / "points.npy"), MANY_NEIGHBORS, tmp_path)


def test_of_sparse_rows_none_does_either(tmp_path):
    sp.save_npz(tmp_path / "points.npz", documents())
    check_projections(str(tmp_path / "points.npz"), VALUES, tmp_path)


def few_rows(given: Path) -> Path:
    """Write the first rows of a file next to it, and return where."""
    few = given.with_stem("few")
    if given.suffix == ".npz":
        sp.save_npz(few, sp.load_npz(given)[:FEW_ROWS])
    else:
        np.save(few, np.load(given, mmap_mode="r")[:FEW_ROWS])
    return few


def check_projections(given, values, tmp_path):
    """Run in a process of its own, whose heap holds no memory of other tests, and compare each stage with its plan."""
    points, params = open_points(given), Parameters().with_values(values)
    plan = plan_run(points, tmp_path / "run", "laplacian-eigenmaps", params, Executor(workers=2))
    sets = [f"--set={stage}.{name}={value}" for stage, numbers in values.items() for name, value in numbers.items()]
    few, command = few_rows(Path(given)), [sys.executable, "-m", "scalemani", "embed"]
    for rows, folder in ((few, "few"), (given, "run")):  # the first compiles the kernels that no cache has
        subprocess.run([*command, rows, tmp_path / folder, "--workers=2", "--quiet", *sets], check=True)
    finished = open_run(tmp_path / "run")
    written, said, overhead = {}, {}, overhead_bytes(plan.dimensions.n_blocks)
    for record in [*open_run(tmp_path / "few").records().values(), *finished.records().values()]:
        assert record["peak_memory"] <= record["projected_memory"], record["stage"]
    for stage in plan.stages:
        name, record = stage.stage.name, finished.group(stage.stage.name).record
        projected = record["projected_memory"] - process_bytes()
        measured = record["peak_memory"] - record["memory_before"]
        assert measured <= projected + LOADED, name
        if projected > LEAST_TOLD_APART:
            assert projected <= MOST_OF_WHAT_IS_MEASURED * max(measured, LEAST_TOLD_APART), (name, measured)
        written[name], said[name] = on_disk(Path(finished.group(name).objects.root)), sum(stage.disk.stored.values())
        assert written[name] <= said[name], name
    assert sum(said.values()) - len(said) * overhead <= MOST_OF_WHAT_IS_WRITTEN * sum(written.values())
