"""An audit of a run by whoever receives it: NumPy, SciPy, zarr and the format, and nothing of what made the run."""
