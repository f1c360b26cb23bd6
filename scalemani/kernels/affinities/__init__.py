"""Bandwidths and the affinities of edges: the perplexity search and its alternatives."""
