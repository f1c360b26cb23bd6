"""Commands that are killed at a moment of their work, however fast this machine or whoever watches them is."""

import sys

PROGRAM = """
import contextlib, os, signal, threading
from scalemani.engine import context
from scalemani.interfaces.cli import main
write_ledger, counting, counts = context.write_ledger, threading.Lock(), []
@contextlib.contextmanager
def write_and_count(stage, unit, suffix=""):
    with write_ledger(stage, unit, suffix):
        yield
    with counting:  # of what is stored, which has no suffix
        counts.extend([unit] * (not suffix and (stage in STAGES or not STAGES)))
        if len(counts) >= UNITS:
            os.kill(os.getpid(), signal.SIGKILL)
context.write_ledger = write_and_count
main()
"""


def killed_after(units: int, *stages: str) -> list[str]:
    """Return a command `scalemani` that kills itself once it has finished so many units, of some stages or of any."""
    return [sys.executable, "-c", f"UNITS, STAGES = {units}, {stages!r}\n{PROGRAM}"]
