"""Nonlinear embeddings: objectives, sums of repulsion, search directions and line searches, as parts that compose."""
