"""Dask over zarr, by pattern: map over row blocks, gather rows by index, and what a process keeps at hand."""
