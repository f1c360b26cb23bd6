"""Affinities of the pixels of an image or a video, each with the others of its window: Gaussian, or by trees.

Pixels are rows of features, frame by frame, row by row, column by column. The window of a pixel is a square around it,
cut off at the edges of the image, and the same pixel in the frames before and after. A pixel lies in the window of
another where that lies in its window, and a distance is summed in one order from both ends: W is symmetric bit for bit.
Gaussian affinities are made row by row.

An ensemble is of minimum spanning trees, each of the neighbourhood graph of jittered pixels: an edge weighs the share
of the trees that it is in. A tree of one copy may take a shortcut; few copies take the same. Trees grow by rounds of
Boruvka: each joins every component through its shortest edge, and makes the edges anew.

Source: [LLL] 4.8.4, [EA] 2.4.
"""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.arrays.grouping import find_root, unite
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_math import exp_nonpositive

Image = tuple[int, int, int]  # frames, rows and columns
Reach = tuple[int, int]  # pixels to each side of a pixel, and frames before and after it


@compiled
def most_neighbors(image: Image, reach: Reach) -> int:
    """Return how many neighbours a pixel has at most: those of one whose window is not cut off."""
    n_frames, n_rows, n_columns = image
    width = 2 * reach[0] + 1
    return min(n_rows, width) * min(n_columns, width) - 1 + min(n_frames - 1, 2 * reach[1])


@compiled
def squared_distance(points: np.ndarray, one: int, other: int) -> float:
    """Return the squared distance of two rows of points (N, D), summed in float64."""
    total = 0.0
    for feature in range(points.shape[1]):
        difference = np.float64(points[one, feature]) - np.float64(points[other, feature])
        total += difference * difference
    return total


@compiled
def fill_neighbors(image: Image, reach: Reach, pixel: int, columns: np.ndarray) -> int:
    """Fill `columns` with the neighbours of a pixel, ascending, and return how many these are: k.

    Parameters
    ----------
    image, reach : those of `window_affinities`
    columns : (`most_neighbors`,) int, of which the first k are filled
    """
    n_frames, n_rows, n_columns = image
    frame, place = divmod(pixel, n_rows * n_columns)
    row, column = divmod(place, n_columns)
    count = 0
    for near_frame in range(max(0, frame - reach[1]), min(n_frames, frame + reach[1] + 1)):
        side = reach[0] if near_frame == frame else 0
        for near_row in range(max(0, row - side), min(n_rows, row + side + 1)):
            begin = (near_frame * n_rows + near_row) * n_columns
            for near_column in range(max(0, column - side), min(n_columns, column + side + 1)):
                if begin + near_column != pixel:
                    columns[count] = begin + near_column
                    count += 1
    return count


@compiled
def fill_window_weights(
    points: np.ndarray, image: Image, reach: Reach, start: int, sigma: float, out: tuple[np.ndarray, ...]
) -> None:
    """Fill the rows of W of consecutive pixels from `start` on.

    Parameters
    ----------
    points, image, reach, sigma : those of `window_affinities`
    out : `indptr` (n + 1,) int64, from zero; columns int32 and weights float32, with room for the windows of n pixels
    """
    indptr, columns, weights = out
    for row in range(len(indptr) - 1):
        begin = indptr[row]
        indptr[row + 1] = begin + fill_neighbors(image, reach, start + row, columns[begin:])
        for entry in range(begin, indptr[row + 1]):
            squared = squared_distance(points, start + row, columns[entry])
            # divided twice: the square of the bandwidth under- or overflows long before the ratio does
            weights[entry] = max(exp_nonpositive(-0.5 * ((squared / sigma) / sigma)), LEAST_WEIGHT)


def window_affinities(
    points: np.ndarray, image: Image, reach: Reach, sigma: float, rows: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of W of consecutive pixels: w = exp(-d^2 / (2 sigma^2)) within the window, none at the pixel.

    Parameters
    ----------
    points : (N, D), the features of all pixels: where they lie, and their grey or colour
    image : frames, rows and columns, whose product is N
    reach : pixels to each side, and frames before and after
    sigma : above zero, in the unit of the features
    rows : the first pixel, and the one after the last

    Returns
    -------
    indptr (n + 1,) int64, columns int32, ascending in a row, and weights float32, none below 1.2e-38

    References
    ----------
    [LLL] 4.8.4: sigma 20 on the rows, columns and grey levels of an image.
    """
    n_rows = rows[1] - rows[0]
    room = n_rows * most_neighbors(image, reach)
    indptr, columns, weights = np.zeros(n_rows + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.float32)
    fill_window_weights(points, image, reach, rows[0], float(sigma), (indptr, columns, weights))
    return indptr, columns[: indptr[-1]], weights[: indptr[-1]]


@compiled
def window_bandwidths(points: np.ndarray, image: Image, reach: Reach, pixels: np.ndarray, nth: int) -> np.ndarray:
    """Return the distance of each of some pixels (n,) to the `nth` nearest of its window: (n,) float64.

    The first beyond it that is not zero stands for zero. Where a window has fewer pixels, its farthest counts; zero
    stays where all are equal.

    Parameters
    ----------
    points, image, reach : those of `window_affinities`
    pixels : (n,) int, their numbers
    nth : at least 1
    """
    bandwidths, columns = np.empty(pixels.shape[0]), np.empty(most_neighbors(image, reach), np.int64)
    for i in range(pixels.shape[0]):
        count = fill_neighbors(image, reach, pixels[i], columns)
        squared = np.empty(count)
        for entry in range(count):
            squared[entry] = squared_distance(points, pixels[i], columns[entry])
        squared.sort()
        place = min(nth, count) - 1
        while place < count - 1 and squared[place] == 0.0:
            place += 1
        bandwidths[i] = np.sqrt(squared[place])
    return bandwidths


UNIFORM_STEP = 2.0**-64  # of a random word of 64 bits


@compiled
def mean_distances(points: np.ndarray, image: Image, reach: Reach) -> np.ndarray:
    """Return the mean distance of each pixel to the others of its window: (N,) float64."""
    n_pixels = points.shape[0]
    means = np.empty(n_pixels, np.float64)
    columns = np.empty(most_neighbors(image, reach), np.int64)
    for pixel in range(n_pixels):
        count = fill_neighbors(image, reach, pixel, columns)
        total = 0.0
        for entry in range(count):
            total += np.sqrt(squared_distance(points, pixel, columns[entry]))
        means[pixel] = total / count
    return means


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
    columns = np.empty(most_neighbors(image, reach), np.int64)
    shortest[:] = np.inf
    for pixel in range(points.shape[0]):
        count = fill_neighbors(image, reach, pixel, columns)
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
    tree, n_edges = np.empty((n_pixels - 1, 2), np.int32), 0
    while n_edges < n_pixels - 1:
        shortest_edges(points, image, reach, labels, shortest, edges)
        for label in range(n_pixels):
            if shortest[label] < np.inf and unite(parents, edges[label, 0], edges[label, 1]):
                tree[n_edges] = edges[label]
                n_edges += 1
        for pixel in range(n_pixels):
            labels[pixel] = find_root(parents, pixel)
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
    weights = counts + counts.T
    weights.sort_indices()
    weights.data /= np.float32(len(trees))
    return weights
