"""Arrays out to files that other programs read, block by block: rows, several arrays together, sparse matrices."""

from scalemani.io.export.writers import Progress, checked_target, companion_path, export, rows_per_block, write_rows

__all__ = ["Progress", "checked_target", "companion_path", "export", "rows_per_block", "write_rows"]
