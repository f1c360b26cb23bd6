"""The affinities of edges: Gaussian with one bandwidth, with each point's own, and entropic at a perplexity."""
