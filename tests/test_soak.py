"""A few rounds of the soak, of which an hour is for a machine that has nothing else to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "soak.py"
ROUNDS, SECONDS = 8, 120  # some fifteen seconds; a machine under load does fewer rounds


def test_a_store_outlasts_failures_and_damage_at_random(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), f"--rounds={ROUNDS}", f"--seconds={SECONDS}"]
    # The script imports one that is beside it, also where Python is told to leave out folders of scripts.
    path = os.pathsep.join([str(SCRIPT.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rounds"] >= 1
