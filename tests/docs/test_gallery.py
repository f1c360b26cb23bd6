"""The gallery: a few examples every day, so that all run within two weeks; SCALEMANI_GALLERY=all runs all of them.

All are run whenever the site is built. Together they take two minutes of processor time, which every change would pay.
"""

import datetime
import os
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "pipelines" / "docs" / "gallery").rglob("*.py"))
DAYS = 13
LEAST_EXAMPLES = 15


def todays(examples: list[Path]) -> list[Path]:
    """Return every so many-th example, others on another day."""
    if os.environ.get("SCALEMANI_GALLERY") == "all":
        return examples
    return examples[datetime.datetime.now(datetime.UTC).toordinal() % DAYS :: DAYS]


def test_there_is_a_gallery():
    assert len(EXAMPLES) >= LEAST_EXAMPLES


@pytest.mark.parametrize("example", todays(EXAMPLES), ids=lambda path: path.stem)
def test_an_example_runs_as_written(example, tmp_path, monkeypatch):
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example))
    plt.close("all")
