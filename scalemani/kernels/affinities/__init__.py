"""The affinities of edges: Gaussian with one bandwidth for all points or one for each, and entropic at a perplexity."""
