"""Where points and results live: zarr arrays in groups, one group a stage, with a digest for everything committed."""
