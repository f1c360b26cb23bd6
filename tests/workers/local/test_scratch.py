"""Scratch of local worker processes: gone with a driver that was killed, once the next one starts."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from scalemani.workers.local.scratch import DRIVER, SCRATCH_PREFIX, owned, sweep_scratch

HOLDING = """
import sys, tempfile, time
from pathlib import Path
from scalemani.workers.local.scratch import SCRATCH_PREFIX, owned
with owned(Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))):
    print("held", flush=True)
    time.sleep(60)
"""


def test_scratch_of_a_killed_process_is_removed_and_that_of_others_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{SCRATCH_PREFIX}somebody's").mkdir()  # without the file of a driver
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HOLDING], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (scratch,) = (path.parent for path in tmp_path.glob(f"*/{DRIVER}"))
        sweep_scratch()
        assert scratch.exists()
        process.send_signal(signal.SIGKILL)
    own = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
    with owned(own):
        sweep_scratch()
        assert own.exists()
    assert not scratch.exists()
    assert (tmp_path / f"{SCRATCH_PREFIX}somebody's").exists()


def test_a_link_that_somebody_planted_leads_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / DRIVER).touch()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary" / f"{SCRATCH_PREFIX}link").symlink_to(tmp_path / "elsewhere")
    sweep_scratch()
    assert (tmp_path / "elsewhere" / DRIVER).exists()
