"""The symmetric affinity graph: its rows, components, products and attraction."""
