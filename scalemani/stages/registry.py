"""The module of every stage."""

from types import ModuleType

from scalemani.stages import (
    affinities,
    clustering,
    coarse_embedding,
    coarse_graphs,
    components,
    embedding,
    graph,
    landmark_embedding,
    landmark_weights,
    landmarks,
    layout,
    neighbors,
    partition,
    points,
    reduced,
    symmetric_affinities,
    work_points,
)

STAGE_MODULES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        affinities,
        clustering,
        coarse_embedding,
        coarse_graphs,
        components,
        embedding,
        graph,
        landmark_embedding,
        landmark_weights,
        landmarks,
        layout,
        neighbors,
        partition,
        points,
        reduced,
        symmetric_affinities,
        work_points,
    )
}
