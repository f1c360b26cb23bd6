"""What the public tests share. They use `import scalemani` and the command line alone, so that modules can move."""

import importlib.metadata
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_swiss_roll


def pytest_collection_modifyitems(items):
    """Mark every test of this folder as public."""
    for item in items:
        if "tests/public/" in item.path.as_posix():
            item.add_marker(pytest.mark.public)


@pytest.fixture(scope="session")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """800 handwritten digits of 64 pixels, and what they show."""
    data = load_digits()
    return data.data[:800].astype(np.float32), data.target[:800]


@pytest.fixture(scope="session")
def surface() -> tuple[np.ndarray, np.ndarray]:
    """600 points of a Swiss roll, and how far along the roll each lies."""
    points, position = make_swiss_roll(600, random_state=0)
    return points, position


@pytest.fixture(scope="session")
def files(tmp_path_factory, digits):
    """A folder with digits.npy, labels.npy and `run`, an embedding of them from the command line."""
    folder = tmp_path_factory.mktemp("public")
    np.save(folder / "digits.npy", digits[0])
    np.save(folder / "labels.npy", digits[1])
    status = run_command("embed", folder / "digits.npy", folder / "run", "--quiet")
    assert status == 0
    return folder


def run_command(*arguments: object) -> int:
    """Run `scalemani ARGUMENTS` in this process and return its exit status."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="scalemani")
    before, sys.argv = sys.argv, ["scalemani", *map(str, arguments)]
    try:
        with pytest.raises(SystemExit) as ended:
            script.load()()
    finally:
        sys.argv = before
    return int(ended.value.code or 0)


@pytest.fixture
def command(capsys):
    """The command line: arguments in; exit status, standard output and standard error out."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run_command(*arguments)
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def dense_affinities(surface) -> np.ndarray:
    """A connected symmetric matrix of affinities over the roll, dense."""
    distances = np.linalg.norm(surface[0][:, None] - surface[0][None], axis=2)
    affinities = np.exp(-(distances**2) / 8.0)
    np.fill_diagonal(affinities, 0.0)
    affinities[affinities < 1e-6] = 0.0
    assert sp.csgraph.connected_components(sp.csr_array(affinities))[0] == 1
    return affinities
