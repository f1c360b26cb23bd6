"""Principal components of points that are combinations of landmarks: Z alone is formed, and no neighbour graph."""

from scalemani.config.stages import LINEAR_ROUTE, Key, Stage

PRINCIPAL_COMPONENTS = Stage(
    "principal_components",
    ("points", "landmarks", "landmark_weights"),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",)),
)
ROUTES = {"pca": (*LINEAR_ROUTE, PRINCIPAL_COMPONENTS)}
