"""Damaged files end in an answer or an error of ours: some of each kind; `python -m tests.fuzz` tries a thousand."""

import subprocess
import sys
from pathlib import Path

CASES, SECONDS = 12, 60  # of each kind, that one may take on a busy machine


def test_damaged_files_of_every_kind_are_read_or_refused_in_time_and_in_little_memory(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", tmp_path / "fuzz", "--cases", CASES, "--seconds", SECONDS]
    root = Path(__file__).parents[2]
    done = subprocess.run(list(map(str, command)), cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "amiss" not in done.stdout
