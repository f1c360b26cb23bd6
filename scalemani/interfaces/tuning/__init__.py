"""Choosing parameters: runs over a grid in one store, which share what they have in common, scored and compared."""

METHOD = "method"  # the name that the method has among the parameters of a grid
