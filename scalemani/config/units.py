"""Sizes in the units that options take: a budget is written `4GB`, and what is said of it has the same unit."""

UNITS = ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)


def format_bytes(n_bytes: int | float) -> str:
    """Return a number of bytes in decimal units, such as "0.96 GB", which `--memory` takes as it stands."""
    for unit, size in UNITS:
        if n_bytes >= 0.9 * size:
            return f"{n_bytes / size:.2f} {unit}"
    return f"{n_bytes:.0f} B"
