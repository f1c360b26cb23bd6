"""Landmark Isomap: classical scaling of shortest paths from landmarks, by which all points are triangulated."""

from scalemani.config.stages import DISTANCES_ROUTE, Key, Stage

GEODESICS = Stage(
    "geodesics",
    ("work_points", "neighbors", "components", "landmarks"),
    by_block=False,
    package=__name__,
    key=Key(version=3),
)
ISOMAP = Stage(
    "isomap", ("work_points", "geodesics"), package=__name__, key=Key(version=5, parameters_of=("landmark_embedding",))
)
ROUTES = {"isomap": (*DISTANCES_ROUTE, GEODESICS, ISOMAP)}
