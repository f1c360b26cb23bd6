"""Whatever is wrong with an input: one clear line, exit status 2, and nothing of an earlier run is touched."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from scalemani.config.params import Parameters, parse_assignments
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")


def digests_of_files(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def only_one_error(errors, words):
    found = [line for line in errors.splitlines() if line.startswith("error:")]
    assert len(found) == 1, errors
    assert errors.splitlines()[-1] == found[0]
    assert "Traceback" not in errors
    for word in words:
        assert word in found[0]


@pytest.fixture(scope="session")
def tree():
    """Return what tells whether anything below a folder has changed."""
    return digests_of_files


@pytest.fixture(scope="session")
def one_error():
    """Return the check that standard error holds one line of an error, with given words."""
    return only_one_error


@pytest.fixture(scope="session")
def points(tmp_path_factory, roll):
    path = tmp_path_factory.mktemp("input") / "roll.npy"
    np.save(path, roll[:2000])
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory, points):
    folder = tmp_path_factory.mktemp("finished") / "run"
    params = Parameters().with_values(parse_assignments(word.removeprefix("--set=") for word in SMALL))
    run(open_points(points), folder, "laplacian-eigenmaps", params, Executor())
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copied"))


@pytest.fixture
def refused(scalemani, finished, tmp_path):
    """Return a check that `embed` refuses an input on an earlier run and on a new folder, and changes neither."""

    def check(given, words, *arguments):
        before = digests_of_files(finished)
        for folder in (finished, tmp_path / "new"):
            status, _, errors = scalemani("embed", given, folder, *arguments)
            only_one_error(errors, words)
            assert status == 2
        assert digests_of_files(finished) == before
        assert not (tmp_path / "new").exists()

    return check
