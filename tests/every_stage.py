"""Methods whose runs have every stage between them, but for those of single solvers: a new method is among them."""

from scalemani.config.routes import ROUTES
from scalemani.config.stages import Stage

SHARED = ("knn-graph", "spectral-clustering", "diffusion-maps", "t-sne")  # have all stages that methods share
OWN = [
    method for method, route in ROUTES.items() if any(one.package != Stage.package and not one.solvers for one in route)
]
METHODS = (*SHARED, *OWN)
