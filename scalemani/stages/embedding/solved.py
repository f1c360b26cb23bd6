"""What a solver returns, and what a stage stores of it."""

from typing import NamedTuple

import numpy as np

from scalemani.engine.context import Arrays
from scalemani.kernels.spectral.accuracy import (
    Following,
)
from scalemani.stages.arrays.embeddings import StoredEmbedding


class Solved(NamedTuple):
    """An embedding (N, d) in work order, its eigenvalues and residuals (d,), what follows these, and passes made.

    Without vectors where these are yet to be written, by blocks.
    """

    vectors: np.ndarray | None
    eigenvalues: np.ndarray
    residuals: np.ndarray
    following: Following
    passes: int = 0


def guards_of(solved: Solved) -> Arrays:
    """Return the vectors that follow as they are stored, where they were computed."""
    guards = solved.following.vectors
    return {} if guards is None else {StoredEmbedding.guards: guards.astype(np.float32, copy=False)}


def values_of(solved: Solved, n_components: int) -> Arrays:
    """Return eigenvalues and residuals as they are stored: of the embedding's, and of those that follow."""
    values, residuals = np.ones(n_components), np.zeros(n_components)
    count = len(solved.eigenvalues)  # fewer where the largest piece has too few points
    values[:count], residuals[:count] = solved.eigenvalues, solved.residuals
    return {
        StoredEmbedding.eigenvalues: values,
        StoredEmbedding.residuals: residuals,
        StoredEmbedding.guard_values: solved.following.values,
        StoredEmbedding.guard_residuals: solved.following.residuals,
    }
