"""Discriminants of classes for a sparse kernel K = I + W, in the span of its columns that landmarks combine."""

from dataclasses import replace

from scalemani.config.stages import CLASSES, KERNEL_ROUTE, LANDMARK_WEIGHTS, LANDMARKS, Stage

KERNEL_DISCRIMINANTS = Stage(
    "kernel_discriminants",
    ("work_points", "components", "symmetric_affinities", "landmarks", "landmark_weights", "classes"),
    also_reads=("landmark_embedding",),
    follows=("components", "landmarks"),
    version=2,
    package=__name__,
)
ROUTES = {
    "kernel-lda": (*KERNEL_ROUTE, LANDMARKS, replace(LANDMARK_WEIGHTS, solvers=()), CLASSES, KERNEL_DISCRIMINANTS)
}
