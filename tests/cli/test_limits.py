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
from scalemani.cli.process import run_command
status = run_command()
assert not opened, opened
sys.exit(status)
"""


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "points.npy"
    np.save(path, np.random.default_rng(0).random((400, 3)))
    return path


def embed(points, folder, *program, **options):
    """Run `embed` in a process of its own and return the digests of all its stages."""
    command = [sys.executable, *(program or ("-m", "scalemani")), "embed", str(points), str(folder), *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    finished = open_run(folder)
    return {stage: finished.group(stage).content_digest for stage in finished.keys}


@pytest.fixture(scope="module")
def reference(points, tmp_path_factory):
    return embed(points, tmp_path_factory.mktemp("reference") / "run")


def test_a_run_needs_few_descriptors(points, reference, tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_DESCRIPTORS, MOST_DESCRIPTORS))

    assert embed(points, tmp_path / "run", preexec_fn=limited) == reference


def test_a_run_opens_no_connection(points, reference, tmp_path):
    assert embed(points, tmp_path / "run", "-c", LISTENING) == reference


def test_the_environment_changes_no_bit(points, reference, tmp_path):
    other = {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "2", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, **other, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    assert embed(points, tmp_path / "run", cwd=tmp_path, env=environment) == reference
