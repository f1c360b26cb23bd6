"""The scikit-learn face: parameters kept as given, one code path with the command line underneath."""

from scalemani.interfaces.estimators.clustering import SpectralClustering
from scalemani.interfaces.estimators.graphs import KnnGraph, knn_graph
from scalemani.interfaces.estimators.spectral import DiffusionMaps, LaplacianEigenmaps

__all__ = ["DiffusionMaps", "KnnGraph", "LaplacianEigenmaps", "SpectralClustering", "knn_graph"]
