"""Verdicts of one check on what a layout claims, as it is or with other values in its record."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scalemani.audit.findings import Finding
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredRun


def verdicts(check: Callable[[Audit], Iterable[Finding]], folder: Path, **claimed: Any) -> dict[str, str]:
    """Return the verdicts of a check by their claims."""
    audit = Audit(StoredRun(folder), 500, 0, 10**9)
    audit.run.groups["layout"].certificates.update(claimed)
    return {finding.claim: finding.verdict for finding in check(audit)}
