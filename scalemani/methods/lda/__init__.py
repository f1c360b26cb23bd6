"""Linear discriminants of classes, in the span of the landmarks' moments."""

from dataclasses import replace

from scalemani.config.stages import CLASSES, LINEAR_ROUTE, Key, Stage

DISCRIMINANTS = Stage(
    "discriminants",
    ("points", "landmarks", "landmark_weights", "classes"),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",)),
)
ROUTES = {"lda": (*LINEAR_ROUTE, replace(CLASSES, inputs=("points",)), DISCRIMINANTS)}
