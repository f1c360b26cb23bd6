"""Laplacian eigenmaps of the landmarks' own graph, and all points by Nystrom's formula with the normalised kernel."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph
from scipy.spatial.distance import cdist

from scalemani.errors import DisconnectedGraphError
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.spectral.eigenmaps import Eigenmaps, exact_eigenmaps, graph_degrees

SPACING_NEIGHBOR = 7  # as for self-tuning affinities


class LandmarkMaps(NamedTuple):
    """Eigenvalues (d,) of the Laplacian, vectors (L, d) = D^1/2 v of D^-1/2 W D^-1/2, degrees (L,), all float64."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    degrees: np.ndarray


def landmark_kernel(landmarks: np.ndarray, neighbors: np.ndarray, sigma: float) -> sp.csr_matrix:
    """Return exp(-|x_i - x_j|^2 / (2 sigma^2)) where one of two landmarks is a neighbour of the other, and for i = j.

    Parameters
    ----------
    landmarks : (L, D) real
    neighbors : (L, k) int, by whatever distance; the kernel is of Euclidean ones
    sigma : in the unit of the points

    Returns
    -------
    (L, L) float64, symmetric
    """
    n_landmarks, n_neighbors = neighbors.shape
    heads, tails = np.repeat(np.arange(n_landmarks), n_neighbors), neighbors.ravel()
    differences = (landmarks[heads].astype(np.float64) - landmarks[tails]) / sigma
    values = np.exp(-0.5 * np.einsum("ed,ed->e", differences, differences))
    edges = sp.csr_matrix((values, (heads, tails)), shape=(n_landmarks, n_landmarks))
    return sp.csr_matrix(edges.maximum(edges.T) + sp.eye_array(n_landmarks, format="csr"))


def connected_eigenmaps(kernel: sp.csr_matrix, n_components: int, remedy: str) -> Eigenmaps:
    """Return the Laplacian eigenmaps of the landmarks' graph (L, L), the trivial one left out.

    Parameters
    ----------
    remedy : what joins a graph that is in pieces, in the words of the caller's parameters

    Raises
    ------
    DisconnectedGraphError
        For a graph in pieces, whose vectors are one basis of its null space among many. An edge that is zero to
        rounding joins nothing.
    """
    joined = kernel > np.finfo(np.float64).eps
    n_pieces, labels = scipy.sparse.csgraph.connected_components(joined, directed=False)
    if n_pieces > 1:
        smallest = int(np.bincount(labels).min())
        raise DisconnectedGraphError(
            f"the graph of {kernel.shape[0]} landmarks falls into {n_pieces} pieces, the smallest of {smallest}: "
            f"{remedy}"
        )
    return exact_eigenmaps(kernel, n_components)


def landmark_maps(kernel: sp.csr_matrix, n_components: int, remedy: str) -> LandmarkMaps:
    """Return the eigenmaps of the landmarks' graph (L, L), scaled for Nystrom's formula; as `connected_eigenmaps`.

    References
    ----------
    [DPP] equation 8.
    """
    found, degrees = connected_eigenmaps(kernel, n_components, remedy), graph_degrees(kernel)
    return LandmarkMaps(found.eigenvalues, np.sqrt(degrees)[:, np.newaxis] * found.embedding, degrees)


def extend_by_nystrom(points: np.ndarray, landmarks: np.ndarray, maps: LandmarkMaps, sigma: float) -> np.ndarray:
    """Return K~^T Phi Lambda^-1, the coordinates of points by the kernel that is normalised by its means.

    Lambda holds the eigenvalues 1 - lambda of the normalised kernel: with them, and the kernel of all pairs, a landmark
    gets its own coordinates, which it does not with the eigenvalues lambda of the Laplacian.

    Parameters
    ----------
    points : (n, D) real
    landmarks : (L, D) real
    sigma : of the kernel, in the unit of the points

    Returns
    -------
    (n, d) float64. Where lambda is 1 or more there is no extension and the column is zero; points beyond the reach of
    all landmarks are at the origin

    References
    ----------
    [DPP] equations 9 and 10; Bengio and others, Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps, and spectral
    clustering, 2004.
    """
    kernel = np.exp(-0.5 * cdist(points / sigma, landmarks / sigma, "sqeuclidean"))
    sums = kernel.sum(axis=1)
    normalized = kernel / np.sqrt(np.where(sums > 0.0, sums, 1.0)[:, np.newaxis] * maps.degrees)
    return np.asarray((normalized @ maps.vectors) * nystrom_gains(maps.eigenvalues))


def spacing(landmarks: np.ndarray) -> float:
    """Return the median distance of landmarks (L, D) to their seventh nearest, or to the last of fewer: a bandwidth."""
    n_nearest = min(SPACING_NEIGHBOR, len(landmarks) - 1)
    return float(np.sqrt(np.median(nearest_landmarks(landmarks, landmarks, n_nearest + 1)[1][:, -1])))


def nystrom_gains(eigenvalues: np.ndarray) -> np.ndarray:
    """Return 1 / (1 - lambda) of eigenvalues (d,) of the Laplacian; 0 from 1 on, where there is no extension."""
    gains = 1.0 - eigenvalues
    defined = gains > np.finfo(np.float64).eps
    return np.where(defined, 1.0 / np.where(defined, gains, 1.0), 0.0)
