"""Tables of text whose columns are as wide as what they hold."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line a row, cells aligned at the right of their columns.

    Parameters
    ----------
    rows : at least one; the header is one of them, and all have as many cells
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
