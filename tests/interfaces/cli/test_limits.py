"""What a run needs of its machine, and what of it changes nothing."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scalemani.runs.opened import open_run

SMALL = ("--set=neighbors.n_neighbors=8", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")
MOST_DESCRIPTORS = 128
LISTENING = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(arguments) if event == "socket.connect" else None)
sys.argv = ["scalemani", *sys.argv[1:]]
from scalemani.interfaces.cli.process import main
try:
    main()
finally:
    assert not opened, opened
"""
SEVERAL_COMMANDS = """
import gc, os, sys
from scalemani.interfaces.cli.process import main
def run_command():
    try:
        main()
    except SystemExit as ended:
        return ended.code

points, run, folder, *small = sys.argv[1:]
os.chdir(folder)
for words in (
    ["plan", points, run, *small],
    ["embed", points, run, *small],
    ["stage", "embedding", points, run, *small],
    ["info", run],
    ["runs", run],
    ["measure", run],
    ["transform", run, points, "placed.npy"],
    ["transform", run, points, "placed.parquet"],
    ["export", run, "out.npy"],
    ["export", run, "out.zarr"],
    ["plot", run, "map.png"],
    ["report", run, "page.html"],
    ["generate", "swiss-roll", "roll.npy", "--n-points", "300"],
    ["append", run, points],
    ["params"],
    ["doctor", folder],
    ["embed", points, "other", *small, "--set=embedding.residual=0.01"],
    ["align", run, "other"],
    ["landmarks", points, "--methods=random,kmeans", "--landmarks=20"],
    ["tune", points, "tuned", *small, "--set=embedding.residual=0.1,0.01"],
):
    sys.argv = ["scalemani", *words]
    assert run_command() == 0, words
    gc.collect()
"""


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "points.npy"
    np.save(path, np.random.default_rng(0).random((400, 3)))
    return path


def ended(points, folder, *program, **options):
    """Run `embed` in a process of its own and return how it ended."""
    command = [sys.executable, *(program or ("-m", "scalemani")), "embed", str(points), str(folder), *SMALL]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def embed(points, folder, *program, **options):
    """Run `embed` in a process of its own and return the digests of all its stages."""
    done = ended(points, folder, *program, **options)
    assert done.returncode == 0, done.stderr
    return digests(open_run(folder))


@pytest.fixture(scope="module")
def finished(points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "run"
    embed(points, folder)
    return open_run(folder)


@pytest.fixture(scope="module")
def reference(finished):
    return digests(finished)


def digests(run):
    return {stage: run.group(stage).content_digest for stage in run.keys}


def test_a_run_needs_few_descriptors(points, reference, tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_DESCRIPTORS, MOST_DESCRIPTORS))

    assert embed(points, tmp_path / "run", preexec_fn=limited) == reference


def test_a_run_opens_no_connection(points, reference, tmp_path):
    assert embed(points, tmp_path / "run", "-c", LISTENING) == reference


def libraries_of_an_old_processor():
    """OpenBLAS takes the kernels of an old processor, and NumPy those that any processor has."""
    dispatched = ",".join(np._core._multiarray_umath.__cpu_dispatch__)  # type: ignore[attr-defined]
    return {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": dispatched}


def kernels_for_an_old_processor():
    """What numba compiles has vectors of half the length, and rounds a product before it is added to a sum."""
    return {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""}


@pytest.mark.parametrize(
    ("old", "rounded"), [(libraries_of_an_old_processor, "embedding"), (kernels_for_an_old_processor, "neighbors")]
)
def test_another_type_of_processor_changes_no_decision_and_nothing_beyond_the_certificates(
    old, rounded, points, finished, tmp_path
):
    embed(points, tmp_path / "run", env={**os.environ, **old()})
    other = open_run(tmp_path / "run")
    assert other.group(rounded).content_digest != finished.group(rounded).content_digest  # it was another indeed
    assert other.keys == finished.keys
    np.testing.assert_array_equal(other.graph.indices, finished.graph.indices)
    np.testing.assert_array_equal(other.landmarks.rows, finished.landmarks.rows)
    bounds = [run.certificates["embedding"] for run in (other, finished)]
    error = sum(found["eigenvalue_error_bound"] for found in bounds)
    np.testing.assert_allclose(other.eigenvalues, finished.eigenvalues, rtol=0, atol=error)
    expected, angle = finished.embedding[...], sum(found["angle_bound"] for found in bounds)
    assert np.linalg.norm(other.embedding[...] - expected) <= angle * np.linalg.norm(expected)


def test_no_file_or_socket_is_left_to_the_garbage_collector(points, tmp_path):
    program = [sys.executable, "-W", "always::ResourceWarning", "-c", SEVERAL_COMMANDS]
    command = [*program, str(points), str(tmp_path / "run"), str(tmp_path), *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning" not in done.stderr


def test_the_environment_changes_no_bit(points, reference, tmp_path):
    other = {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "2", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, **other, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    assert embed(points, tmp_path / "run", cwd=tmp_path, env=environment) == reference
