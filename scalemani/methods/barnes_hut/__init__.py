"""Sums of a kernel over the cells of a tree, after Barnes and Hut."""

REPULSIONS = {"barnes-hut": "kernels.BarnesHut"}
SUMS_BY_NUMBER = {"theta": "kernels.tree_sums"}
