"""Arrays out to files that other programs read, block by block: rows, several arrays together, sparse matrices."""

from scalemani.io.export.writers import Progress, beside, checked_target, export, rows_per_block, write_rows

__all__ = ["Progress", "beside", "checked_target", "export", "rows_per_block", "write_rows"]
