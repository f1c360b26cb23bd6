"""The k-nearest-neighbour graph: cells, scans of cells, neighbours of neighbours, exact search."""
