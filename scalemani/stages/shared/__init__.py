"""Sums and readers that several stages use."""
