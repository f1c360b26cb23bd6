"""Eigenproblems: reduced to landmarks, exact, and refined over coarse graphs."""
