"""Particle-mesh sums: splines onto a grid, a convolution there, splines back."""
