"""An audit of a run, by code that shares nothing with what made it: what of a run is passed to the audit."""

from typing import TYPE_CHECKING

from scalemani.audit.findings import Verification
from scalemani.audit.verifying import ROWS, write_findings
from scalemani.audit.verifying import verify as verify_root
from scalemani.config.validation import check_count, check_seed
from scalemani.engine.workers.executor import bytes_of
from scalemani.errors import ConfigError
from scalemani.stages.table import arrays_of

if TYPE_CHECKING:
    from scalemani.runs.opened import Run

FEWEST_ROWS = 10
LEAST_MEMORY = 2**28  # a block of wide points, and products with the rows drawn


def verify_run(
    run: "Run", rows: int = ROWS, memory: str | int = "4GB", seed: int | None = None, write: bool = True
) -> Verification:
    """Audit a run; the parameters are those of `Run.verify`."""
    n_rows, budget = check_count(rows, "rows", FEWEST_ROWS), bytes_of(memory)
    if budget < LEAST_MEMORY:
        raise ConfigError(f"memory must be at least {LEAST_MEMORY} bytes for an audit, got {memory}")
    descriptions = {stage: arrays_of(stage) for stage in run.keys}
    root = str(run.store.root)
    verification = verify_root(root, descriptions, n_rows, budget, check_seed(seed))
    if write:
        write_findings(root, verification)
    return verification
