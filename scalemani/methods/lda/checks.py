"""What the data allow linear discriminants."""

from scalemani.runs.survey import Survey


def most_components(found: Survey) -> int | None:
    """Return how many discriminants there are, by features and classes; None without labels, which are asked for."""
    if found.side.labels is None:
        return None
    return min(found.dimensions.n_features, len(found.side.labels.counts) - 1)
