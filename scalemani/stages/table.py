"""Every stage by its name, and what a module must have to be one."""

from typing import Any, Protocol

from scalemani.chunked.needs import Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageWork
from scalemani.stages import (
    affinities,
    affinity_weights,
    classes,
    clustering,
    coarse_embedding,
    coarse_graphs,
    components,
    diffusion_coordinates,
    discriminants,
    duplicates,
    embedding,
    graph,
    kernel_components,
    kernel_discriminants,
    landmark_embedding,
    landmark_graph,
    landmark_weights,
    landmarks,
    layout,
    local_reconstruction,
    neighbors,
    normalized_affinities,
    partition,
    points,
    principal_components,
    reduced,
    symmetric_affinities,
    weights,
    work_points,
)


class StageCode(Protocol):
    """The three functions of a stage's module."""

    def memory(self, sizes: Sizes) -> list[Held]:
        """List what the stage holds in memory."""

    def disk(self, sizes: Sizes) -> list[Written]:
        """List what the stage writes, at most."""

    def run(self, work: StageWork) -> dict[str, Any]:
        """Compute what is missing of the stage's group; return its certificates."""


STAGES: dict[str, StageCode] = {
    "duplicates": duplicates,
    "points": points,
    "partition": partition,
    "work_points": work_points,
    "weights": weights,
    "neighbors": neighbors,
    "graph": graph,
    "affinities": affinities,
    "components": components,
    "symmetric_affinities": symmetric_affinities,
    "normalized_affinities": normalized_affinities,
    "landmarks": landmarks,
    "landmark_weights": landmark_weights,
    "affinity_weights": affinity_weights,
    "reduced": reduced,
    "landmark_embedding": landmark_embedding,
    "landmark_graph": landmark_graph,
    "coarse_graphs": coarse_graphs,
    "coarse_embedding": coarse_embedding,
    "embedding": embedding,
    "diffusion_coordinates": diffusion_coordinates,
    "classes": classes,
    "principal_components": principal_components,
    "discriminants": discriminants,
    "kernel_components": kernel_components,
    "kernel_discriminants": kernel_discriminants,
    "local_reconstruction": local_reconstruction,
    "clustering": clustering,
    "layout": layout,
}
