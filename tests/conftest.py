"""What tests share: small points on a known surface, and the real data where it is at hand."""

import functools
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from scalemani.datasets import generator
from scalemani.engine.progress import Progress
from scalemani.engine.reading import landmark_matrix
from scalemani.interfaces.cli import main
from scalemani.stages.table import arrays_of
from scalemani.store.schema import numberless
from tests.spies import watch

CLUSTER = ("tests/cluster/", "tests/engine/workers/")
DEPLOY = ("tests/deploy/", "tests/airflow/", "tests/docs/")
SLOW = (
    *("tests/bad_input/", "tests/fuzz/", "tests/interfaces/", "tests/runs/", "tests/stages/"),
    *("tests/config/params/test_effects", "tests/test_platforms.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they need and how long they take: `cluster`, `browser`, `deploy` and `fast`."""
    for item in items:
        place = f"tests/{item.path.relative_to(Path(__file__).parent).as_posix()}"
        needs = {
            "cluster": place.startswith(CLUSTER),
            "browser": "open_browser" in item.fixturenames,
            "deploy": place.startswith(DEPLOY),
        }
        for name in (name for name, needed in needs.items() if needed):
            item.add_marker(name)
        if not any(needs.values()) and not place.startswith(SLOW) and item.get_closest_marker("large") is None:
            item.add_marker("fast")


# The first call of a kernel compiles it, and examples are drawn as fast as the machine is that does much else. They are
# the same in every run: `--hypothesis-profile=drawn` draws others.
EXAMPLES = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("drawn", **EXAMPLES)
hypothesis.settings.register_profile("scalemani", derandomize=True, **EXAMPLES)
hypothesis.settings.load_profile("scalemani")


@pytest.fixture(scope="session")
def roll() -> np.ndarray:
    """5,000 points of a Swiss roll: several blocks of 1,024 rows, the last one short."""
    data = generator("swiss-roll", 5000, seed=3)
    return np.asarray(data.read(0, 5000), dtype=np.float32)


@pytest.fixture(scope="session")
def mnist() -> np.ndarray:
    """70,000 digits of 784 pixels, where SCALEMANI_DATA names the folder that holds them."""
    folder = os.environ.get("SCALEMANI_DATA")
    if not folder or not (Path(folder) / "mnist.npz").exists():
        pytest.skip("SCALEMANI_DATA does not name a folder with mnist.npz")
    with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
        return file["X"]


class Listening(Progress):
    """Keeps what a run warns of, and what it notes."""

    def __init__(self) -> None:
        self.warned: list[str] = []
        self.noted: list[str] = []

    def warn(self, message: str, kind: type | None = None) -> None:
        self.warned.append(message)

    def note(self, message: str) -> None:
        self.noted.append(message)


@pytest.fixture
def listening() -> Listening:
    """Progress of a run, which keeps in `warned` and `noted` what it is told to warn of and to note."""
    return Listening()


@pytest.fixture
def spy(monkeypatch) -> Callable[..., list]:
    """Return what watches calls of a function in a test: `spy(owner, name, seen)`, as `tests.spies.watch`."""
    return functools.partial(watch, monkeypatch)


@pytest.fixture
def temporary_files(monkeypatch, tmp_path) -> Path:
    """A folder that TMPDIR names, where this process and those that it starts put temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # the module looks again
    return folder


@pytest.fixture
def scalemani(monkeypatch, capsys):
    """Return the command line in this process: arguments in; exit status, standard output and error out."""

    def run(*arguments: object) -> tuple[int, str, str]:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        monkeypatch.setattr(sys, "argv", ["scalemani", *map(str, arguments)])
        capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


SECRETS = {"AWS_ACCESS_KEY_ID": "AKIAPLANTEDBYTESTS00", "AWS_SECRET_ACCESS_KEY": "planted/secret+of/the+tests"}


# It takes a port that the system gives it: another test may have taken one that was found before.
S3_SERVER = """
import contextlib, sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0)
with contextlib.redirect_stdout(sys.stderr):
    server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3, started for the tests."""
    pytest.importorskip("moto.server")
    pytest.importorskip("obstore")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", S3_SERVER], **pipes) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@pytest.fixture
def bucket(s3_server, monkeypatch) -> Iterator[str]:
    """s3://NAME of a new bucket; the environment holds its endpoint and credentials that are planted."""
    from scalemani.store.buckets import open_bucket

    for name, value in {**SECRETS, "AWS_ENDPOINT_URL": s3_server, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    open_bucket.cache_clear()
    name = f"test-{uuid.uuid4().hex[:12]}"
    urllib.request.urlopen(urllib.request.Request(f"{s3_server}/{name}", method="PUT")).close()
    yield f"s3://{name}"
    open_bucket.cache_clear()


# Arrays that stages of an older version wrote: stores have them, no stage reads them.
OLDER = {
    "reduced": (
        *landmark_matrix("reduced", "laplacian", "whole", ("",), "Z^T (D - W) Z, symmetric"),
        *landmark_matrix("reduced", "mass", "whole", ("",), "Z^T D Z, symmetric"),
    )
}


@pytest.fixture(scope="session")
def description_of():
    """A function that returns the description of the array at a path of a group of a stage."""

    def described(stage, path):
        found = [one for one in (*arrays_of(stage), *OLDER.get(stage, ())) if numberless(path) in one.paths]
        assert found, f"stage {stage} describes no array at {path!r}"
        return found[0]

    return described
