"""What the data allow kernel discriminants."""

from scalemani.runs.survey import Survey


def most_components(found: Survey) -> int | None:
    """Return how many discriminants there are, by classes; None without labels, which are asked for."""
    return None if found.side.labels is None else len(found.side.labels.counts) - 1
