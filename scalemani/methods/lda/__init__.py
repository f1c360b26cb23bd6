"""Linear discriminants of classes, in the span of the landmarks' moments."""

from dataclasses import replace

from scalemani.config.stages import CLASSES, LINEAR_ROUTE, Stage

DISCRIMINANTS = Stage(
    "discriminants",
    ("points", "landmarks", "landmark_weights", "classes"),
    also_reads=("landmark_embedding",),
    version=2,
    package=__name__,
)
ROUTES = {"lda": (*LINEAR_ROUTE, replace(CLASSES, inputs=("points",)), DISCRIMINANTS)}
