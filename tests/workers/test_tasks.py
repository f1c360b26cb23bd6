"""What a process loads before its first task: a worker that replaces a lost one is waited for as long."""

import subprocess
import sys

LOADED = """
import sys
from scalemani.stages.table import STAGES
from scalemani.workers.tasks import run_unit
assert STAGES
print(*sorted(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_a_worker_does_not_load_what_only_drivers_need():
    needless = ["dask.array", "matplotlib", "pandas", "pyarrow", "sklearn.manifold", "typer"]
    command = [sys.executable, "-c", LOADED, *needless]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
