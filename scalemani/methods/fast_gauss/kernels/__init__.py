"""The fast Gauss transform with its error bounds."""
