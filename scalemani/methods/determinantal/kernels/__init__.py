"""Determinantal point processes, exact and approximate."""
