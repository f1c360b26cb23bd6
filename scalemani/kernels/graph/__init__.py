"""The symmetric affinity graph: its rows, components, strongest edges, products with vectors, and attraction."""
