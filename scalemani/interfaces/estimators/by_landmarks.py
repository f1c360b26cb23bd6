"""What the estimators of methods by landmarks alone share."""

from dataclasses import field
from typing import Any

from scalemani.interfaces.estimators.fitting import Embedder
from scalemani.interfaces.estimators.parameters import arguments


@arguments
class LandmarkEmbedder(Embedder):
    """What the methods by landmarks share: points are combinations of landmarks.

    Parameters
    ----------
    n_components : int or None
        Dimensions of the embedding, d. None: two, or as many as features, landmarks and classes allow.
    landmarks : str, array (L, D), or path, default "random"
        As in `LaplacianEigenmaps`.
    n_neighbors : int or None
        Neighbours a point in the graph, k. None: 90, or all other points if fewer.
    affinity : {"gaussian", "self-tuning"}
        The kernel: of one "affinities.sigma", or of the distance to the "affinities.bandwidth_neighbor"-th neighbour as
        each point's sigma.
    disconnected : {"connect", "largest", "error"}
        What is done where the graph falls into pieces, as in `LaplacianEigenmaps`.
    """

    n_components: int | None = field(default=None, kw_only=False)
    landmarks: Any = "random"
