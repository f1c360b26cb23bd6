"""Sums of a kernel over the cells of a tree, after Barnes and Hut."""

REPULSIONS = {"barnes-hut": "kernels.barnes_hut.BarnesHut"}
SUMS_BY_NUMBER = {"theta": "kernels.barnes_hut.tree_sums"}
