"""Orders of a tile's rows in which entropic affinities are solved, for comparisons with the one by density."""

AFFINITY_ORDERS = {"mst": "kernels.mst", "path": "kernels.path", "raster": "kernels.raster", "random": "kernels.random"}
GRAPH_ORDERS = ("mst", "path")  # that need the neighbours of the rows
