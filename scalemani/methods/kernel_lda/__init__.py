"""Discriminants of classes for a sparse kernel K = I + W, in the span of its columns that landmarks combine."""

from dataclasses import replace

from scalemani.config.stages import CLASSES, KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, Key, Stage

KERNEL_DISCRIMINANTS = Stage(
    "kernel_discriminants",
    ("work_points", "components", "symmetric_affinities", "landmarks", "landmark_weights", "classes"),
    package=__name__,
    key=Key(version=2, parameters_of=("landmark_embedding",), without=("components", "landmarks")),
)
ROUTES = {
    "kernel-lda": (*KERNEL_ROUTE, LANDMARKS, replace(LANDMARK_WEIGHTS, solvers=()), CLASSES, KERNEL_DISCRIMINANTS)
}
