"""Where tasks run: threads, local processes, a Dask cluster."""
