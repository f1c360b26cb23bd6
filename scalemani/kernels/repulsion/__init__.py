"""Sums of a kernel over all pairs of points: exact, by trees, meshes and expansions."""
