"""Arrays in, arrays out: numpy, scipy and numba. No Dask, no zarr, no logging, no parameter objects."""
