"""The scikit-learn face: parameters kept as given, one code path with the command line underneath."""

from scalemani.estimators.clustering import SpectralClustering
from scalemani.estimators.graphs import KnnGraph, knn_graph
from scalemani.estimators.nonlinear import SNE, TSNE, ElasticEmbedding, SymmetricSNE
from scalemani.estimators.spectral import LaplacianEigenmaps

__all__ = [
    "SNE",
    "TSNE",
    "ElasticEmbedding",
    "KnnGraph",
    "LaplacianEigenmaps",
    "SpectralClustering",
    "SymmetricSNE",
    "knn_graph",
]
