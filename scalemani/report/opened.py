"""What users open: a run that also writes a page about itself."""

from pathlib import Path
from typing import Any

from scalemani.runs.opened import Run


class ReportedRun(Run):
    """A run as it stands in its store, with a report."""

    def report(
        self,
        path: str | Path | None = None,
        labels: Any = (),
        *,
        n_sampled: int | None = None,
        random_state: Any = 0,
    ) -> Path:
        """Write one self-contained HTML page about the run, which opens without a network, and return its path.

        Parameters
        ----------
        path : where to, ending in .html; None: `report.html` in the folder of the run
        labels : labels or values of the points to colour the map by: (N,) arrays in input order or files of them, one,
            a list, or by their names
        n_sampled : points by which quality is measured; None: up to 1,000, fewer of many; 0: none
        random_state : of this sample
        """
        from scalemani.report.writing import write_report

        return write_report(self, path, labels, n_sampled=n_sampled, random_state=random_state)


def open_run(root: str | Path) -> ReportedRun:
    """Open a run for reading."""
    return ReportedRun(root)
