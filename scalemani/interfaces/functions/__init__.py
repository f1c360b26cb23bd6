"""Functions on arrays in memory: the steps of the routes one by one.

Here input is checked and refused with one clear message; the kernels below compute. Papers are cited by the marks that
`scalemani.kernels` lists.
"""
