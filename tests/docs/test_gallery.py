"""The gallery: a few examples with each state of the code; SCALEMANI_GALLERY=all runs all of them.

All are run whenever the site is built. Together they take two minutes of processor time, which every change would pay.
Which ones are run follows from the code: they are the same wherever and whenever it is tested, and others once it
changes.
"""

import os
import runpy
import zlib
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "pipelines" / "docs" / "gallery").rglob("*.py"))
EVERY = 13
LEAST_EXAMPLES = 15


def checksum_of_code() -> int:
    """Return a number that changes with any module of the package and any example."""
    found = 0
    for path in (*sorted((ROOT / "scalemani").rglob("*.py")), *EXAMPLES):
        found = zlib.crc32(path.read_bytes(), found)
    return found


def chosen(examples: list[Path], number: int) -> list[Path]:
    """Return every so many-th example, from one that a number says."""
    return examples if os.environ.get("SCALEMANI_GALLERY") == "all" else examples[number % EVERY :: EVERY]


def test_there_is_a_gallery():
    assert len(EXAMPLES) >= LEAST_EXAMPLES


def test_every_example_draws():
    """The gallery shows a placeholder where one does not."""
    assert [path.name for path in EXAMPLES if "plt." not in path.read_text()] == []


def test_all_examples_have_their_turn(monkeypatch):
    monkeypatch.delenv("SCALEMANI_GALLERY", raising=False)
    assert sorted(example for number in range(EVERY) for example in chosen(EXAMPLES, number)) == EXAMPLES


@pytest.mark.parametrize("example", chosen(EXAMPLES, checksum_of_code()), ids=lambda path: path.stem)
def test_an_example_runs_as_written(example, tmp_path, monkeypatch):
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example))
    plt.close("all")
