"""What tests share: small points on a known surface, and the real data where it is at hand."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from scalemani.cli import main
from scalemani.datasets import generator


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


@pytest.fixture
def scalemani(monkeypatch, capsys):
    """Return the command line in this process: arguments in; exit status, standard output and error out."""

    def run(*arguments: object) -> tuple[int, str, str]:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
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
