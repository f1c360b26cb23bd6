"""A few rounds of the soak, of which an hour is for a machine that has nothing else to do."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "soak.py"
ROUNDS, SECONDS = 8, 120  # some fifteen seconds; a machine under load does fewer rounds


def test_a_store_outlasts_failures_and_damage_at_random(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), f"--rounds={ROUNDS}", f"--seconds={SECONDS}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rounds"] >= 1
