"""Principal components of points that are combinations of landmarks: Z alone is formed, and no neighbour graph."""

from scalemani.config.stages import LINEAR_ROUTE, Stage

PRINCIPAL_COMPONENTS = Stage(
    "principal_components",
    ("points", "landmarks", "landmark_weights"),
    also_reads=("landmark_embedding",),
    version=2,
    package=__name__,
)
ROUTES = {"pca": (*LINEAR_ROUTE, PRINCIPAL_COMPONENTS)}
