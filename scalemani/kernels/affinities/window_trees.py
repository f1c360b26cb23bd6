"""An ensemble of minimum spanning trees of the pixels of an image: each of the neighbourhood graph of jittered pixels.

An edge weighs the share of the trees that it is in. A tree of one copy may take a shortcut; few copies take the same.
Trees grow by rounds of Boruvka: each joins every component through its shortest edge, and makes the edges anew.
"""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.affinities.window import Image, Reach, fill_neighbors, squared_distance, window_bounds
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.machine.compile import compiled

UNIFORM_STEP = 2.0**-64  # of a random word of 64 bits


@compiled
def mean_distances(points: np.ndarray, image: Image, reach: Reach) -> np.ndarray:
    """Return the mean distance of each pixel to the others of its window: (N,) float64."""
    n_pixels = points.shape[0]
    means = np.empty(n_pixels, np.float64)
    columns = np.empty((2 * reach[0] + 1) ** 2 + 2 * reach[1], np.int64)
    for pixel in range(n_pixels):
        count = window_bounds(image, reach, pixel, pixel + 1)[1]
        fill_neighbors(image, reach, pixel, columns[:count])
        total = 0.0
        for entry in range(count):
            total += np.sqrt(squared_distance(points, pixel, columns[entry]))
        means[pixel] = total / count
    return means


@compiled
def root_of(parents: np.ndarray, item: int) -> int:
    """Return the root of an item, which what lies on the way is hung closer to."""
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


@compiled
def shortest_edges(
    points: np.ndarray, image: Image, reach: Reach, labels: np.ndarray, shortest: np.ndarray, edges: np.ndarray
) -> None:
    """Fill `shortest` (N,) and `edges` (N, 2) with the shortest edge that leaves each component, by its label.

    Of edges of one length the first counts, by the lower pixel and then by the higher: there are no cycles then.

    Parameters
    ----------
    points, image, reach : those of `minimum_spanning_tree`
    labels : (N,) int64, the component of each pixel, by one of its pixels
    shortest, edges : (N,) float64 squared lengths, infinite where no edge leaves, and (N, 2) int32 pixels; filled
    """
    columns = np.empty((2 * reach[0] + 1) ** 2 + 2 * reach[1], np.int64)
    shortest[:] = np.inf
    for pixel in range(points.shape[0]):
        count = window_bounds(image, reach, pixel, pixel + 1)[1]
        fill_neighbors(image, reach, pixel, columns[:count])
        for entry in range(count):
            neighbor = columns[entry]
            if neighbor > pixel and labels[neighbor] != labels[pixel]:
                squared = squared_distance(points, pixel, neighbor)
                for label in (labels[pixel], labels[neighbor]):
                    if squared < shortest[label]:
                        shortest[label], edges[label, 0], edges[label, 1] = squared, pixel, neighbor


@compiled
def minimum_spanning_tree(points: np.ndarray, image: Image, reach: Reach) -> np.ndarray:
    """Return the edges (N - 1, 2) int32 of the minimum spanning tree of pixels, each joined to those of its window.

    Parameters
    ----------
    points : (N, D), the features of all pixels, finite
    reach : pixels to each side, at least 1, and frames before and after, at least 1 in a video: all are connected then
    """
    n_pixels = points.shape[0]
    parents, labels = np.arange(n_pixels), np.arange(n_pixels)
    shortest, edges = np.empty(n_pixels, np.float64), np.empty((n_pixels, 2), np.int32)
    tree, found = np.empty((n_pixels - 1, 2), np.int32), 0
    while found < n_pixels - 1:
        shortest_edges(points, image, reach, labels, shortest, edges)
        for label in range(n_pixels):
            if shortest[label] < np.inf:
                one, other = root_of(parents, edges[label, 0]), root_of(parents, edges[label, 1])
                if one != other:
                    parents[max(one, other)] = min(one, other)
                    tree[found] = edges[label]
                    found += 1
        for pixel in range(n_pixels):
            labels[pixel] = root_of(parents, pixel)
    return tree


def jittered(points: np.ndarray, deviations: np.ndarray, seed: int, copy: int) -> np.ndarray:
    """Return points (N, D) float64 with uniform noise in every feature.

    Parameters
    ----------
    points : (N, D) real
    deviations : (N,), the standard deviation of the noise of each point
    """
    words = row_words(seed, f"affinities/ensemble-{copy}", 0, points.size).reshape(points.shape)
    half_widths = np.sqrt(3.0) * deviations  # a uniform draw in [-h, h] has the deviation h / sqrt(3)
    return points + half_widths[:, np.newaxis] * (2 * ((words + 0.5) * UNIFORM_STEP) - 1)


def ensemble_affinities(trees: list[np.ndarray], n_pixels: int) -> sp.csr_matrix:
    """Return W (N, N) float32 in CSR form, columns ascending: for each edge the share of the trees that it is in."""
    lower, higher = np.concatenate(trees).T
    ones = np.ones(len(lower), np.float32)
    counts = sp.coo_matrix((ones, (lower, higher)), shape=(n_pixels, n_pixels)).tocsr()  # adds equal edges up
    weights = sp.csr_matrix(counts + counts.T)
    weights.sort_indices()
    weights.data /= np.float32(len(trees))
    return weights
