"""Runs that are cut short at their writes end the same: a sample of what `tests/crash_points.py` tries in full."""

import os
import subprocess
import sys
from pathlib import Path

from scalemani.store.objects import LocalObjects

SCRIPT = Path(__file__).parents[1] / "crash_points.py"
EVERY = 397  # of some 6,000 pairs of a call and a way to fail; prime, so that all ways come


def test_runs_that_were_cut_short_end_the_same(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--every", str(EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 amiss" in done.stdout


def test_a_run_that_is_killed_ten_times_in_a_row_ends_the_same(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--in-a-row", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 kills of one run, 0 amiss" in done.stdout


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, spy):
    """A power cut may take whatever was not synced: what has a name then has its content."""
    calls = []
    spy(os, "fsync", lambda file: calls.append(("synced", os.fstat(file).st_ino)))
    spy(os, "replace", lambda *names: calls.append(("named", os.stat(names[0]).st_ino)))
    LocalObjects(tmp_path).set("a/b", b"content")
    number = (tmp_path / "a" / "b").stat().st_ino
    assert calls == [("synced", number), ("named", number)]
