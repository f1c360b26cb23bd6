"""Rows of points compared: distances, products, the smallest values, sketches, orders in space."""
