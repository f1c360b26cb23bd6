"""Refinement on the workers of a cluster: vectors and graphs by panels of rows, small matrices on the driver.

A panel of vectors is one object beside the arrays of the stage. Tasks read panels, and write panels that no other task
has written: a task that is given twice writes the same bytes twice. Objects go when nothing on the driver refers to
them any more. The arithmetic is that of blocks in memory, panel by panel, and so are the bits.
"""
