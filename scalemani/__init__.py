"""Manifold learning on millions of points, out of core, with a certificate for every approximation."""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scalemani.affinities import Affinities, entropic_affinities
    from scalemani.estimators import (
        SNE,
        TSNE,
        ElasticEmbedding,
        KnnGraph,
        LaplacianEigenmaps,
        SpectralClustering,
        SymmetricSNE,
        knn_graph,
    )
    from scalemani.landmarks import Landmarks, landmark_weights, select_landmarks
    from scalemani.nonlinear import objective, repulsion
    from scalemani.run import Run, open_run
    from scalemani.spectral import reduce_laplacian, solve_reduced, symmetric_affinities

# Names are imported when they are first used: the command line and workers then load only what they need.
PUBLIC_NAMES = {
    "Affinities": "affinities",
    "entropic_affinities": "affinities",
    "ElasticEmbedding": "estimators",
    "KnnGraph": "estimators",
    "SNE": "estimators",
    "SymmetricSNE": "estimators",
    "TSNE": "estimators",
    "LaplacianEigenmaps": "estimators",
    "SpectralClustering": "estimators",
    "knn_graph": "estimators",
    "Landmarks": "landmarks",
    "landmark_weights": "landmarks",
    "select_landmarks": "landmarks",
    "objective": "nonlinear",
    "repulsion": "nonlinear",
    "Run": "run",
    "open_run": "run",
    "reduce_laplacian": "spectral",
    "solve_reduced": "spectral",
    "symmetric_affinities": "spectral",
}

__all__ = [
    "SNE",
    "TSNE",
    "Affinities",
    "ElasticEmbedding",
    "KnnGraph",
    "Landmarks",
    "LaplacianEigenmaps",
    "Run",
    "SpectralClustering",
    "SymmetricSNE",
    "entropic_affinities",
    "knn_graph",
    "landmark_weights",
    "objective",
    "open_run",
    "reduce_laplacian",
    "repulsion",
    "select_landmarks",
    "solve_reduced",
    "symmetric_affinities",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("scalemani")
    if name not in PUBLIC_NAMES:
        raise AttributeError(f"module 'scalemani' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"scalemani.{PUBLIC_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
