"""Landmark Isomap: classical scaling of shortest paths from landmarks, by which all points are triangulated."""

from scalemani.config.stages import DISTANCES_ROUTE, Stage

GEODESICS = Stage(
    "geodesics",
    ("work_points", "neighbors", "components", "landmarks"),
    by_block=False,
    version=3,
    package=__name__,
)
ISOMAP = Stage("isomap", ("work_points", "geodesics"), also_reads=("landmark_embedding",), version=5, package=__name__)
ROUTES = {"isomap": (*DISTANCES_ROUTE, GEODESICS, ISOMAP)}
