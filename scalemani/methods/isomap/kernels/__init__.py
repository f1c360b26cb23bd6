"""Shortest paths over a neighbour graph, and coordinates that have given distances."""
