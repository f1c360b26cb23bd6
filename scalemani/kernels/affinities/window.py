"""Gaussian affinities of the pixels of an image or a video, each with the others of its window, made row by row.

Pixels are rows of features, frame by frame, row by row, column by column. The window of a pixel is a square around it,
cut off at the edges of the image, and the same pixel in the frames before and after. A pixel lies in the window of
another where that lies in its own, and a distance is summed in one order from both ends: W is symmetric bit for bit.
Source: [LLL] 4.8.4, [EA] 2.4.
"""

import numpy as np

from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_math import exp_nonpositive

Image = tuple[int, int, int]  # frames, rows and columns
Reach = tuple[int, int]  # pixels to each side of a pixel, and frames before and after it


@compiled
def window_bounds(image: Image, reach: Reach, start: int, stop: int) -> np.ndarray:
    """Return where the neighbours of pixels [start, stop) begin and end: (stop - start + 1,) int64, from 0.

    Parameters
    ----------
    image, reach : those of `window_affinities`
    start, stop : the first pixel, and the one after the last
    """
    bounds = np.zeros(stop - start + 1, np.int64)
    n_frames, n_rows, n_columns = image
    side, frames = reach
    for pixel in range(start, stop):
        frame, place = divmod(pixel, n_rows * n_columns)
        row, column = divmod(place, n_columns)
        high = min(n_rows, row + side + 1) - max(0, row - side)
        wide = min(n_columns, column + side + 1) - max(0, column - side)
        deep = min(n_frames, frame + frames + 1) - max(0, frame - frames)
        bounds[pixel - start + 1] = bounds[pixel - start] + high * wide + deep - 2
    return bounds


@compiled
def squared_distance(points: np.ndarray, one: int, other: int) -> float:
    """Return the squared distance of two rows of points (N, D), summed in float64."""
    total = 0.0
    for feature in range(points.shape[1]):
        difference = np.float64(points[one, feature]) - np.float64(points[other, feature])
        total += difference * difference
    return total


@compiled
def fill_neighbors(image: Image, reach: Reach, pixel: int, columns: np.ndarray) -> None:
    """Fill `columns` (k,) with the neighbours of a pixel, ascending.

    Parameters
    ----------
    image, reach : those of `window_affinities`
    columns : (k,) int, filled; k is what `window_bounds` says
    """
    n_frames, n_rows, n_columns = image
    side, frames = reach
    area = n_rows * n_columns
    frame, place = divmod(pixel, area)
    row, column = divmod(place, n_columns)
    first, last = max(0, column - side), min(n_columns, column + side + 1)
    count = 0
    for earlier in range(max(0, frame - frames), frame):
        columns[count] = earlier * area + place
        count += 1
    for near in range(max(0, row - side), min(n_rows, row + side + 1)):
        begin = frame * area + near * n_columns
        for neighbor in range(begin + first, begin + last):
            if neighbor != pixel:
                columns[count] = neighbor
                count += 1
    for later in range(frame + 1, min(n_frames, frame + frames + 1)):
        columns[count] = later * area + place
        count += 1


@compiled
def fill_window_weights(
    points: np.ndarray, image: Image, reach: Reach, rows: tuple[int, int], sigma: float, out: tuple[np.ndarray, ...]
) -> None:
    """Fill the rows of W of consecutive pixels.

    Parameters
    ----------
    points, image, reach, rows, sigma : those of `window_affinities`
    out : columns int32 and weights float32, each as long as `window_bounds` says
    """
    bounds = window_bounds(image, reach, rows[0], rows[1])
    columns, weights = out
    for pixel in range(rows[0], rows[1]):
        begin, end = bounds[pixel - rows[0]], bounds[pixel - rows[0] + 1]
        fill_neighbors(image, reach, pixel, columns[begin:end])
        for entry in range(begin, end):
            squared = squared_distance(points, pixel, columns[entry])
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
    indptr = window_bounds(image, reach, *rows)
    columns, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    fill_window_weights(points, image, reach, rows, float(sigma), (columns, weights))
    return indptr, columns, weights


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
    found = np.empty(pixels.shape[0], np.float64)
    for i in range(pixels.shape[0]):
        pixel = pixels[i]
        columns = np.empty(window_bounds(image, reach, pixel, pixel + 1)[1], np.int64)
        fill_neighbors(image, reach, pixel, columns)
        squared = np.empty(columns.shape[0], np.float64)
        for entry in range(columns.shape[0]):
            squared[entry] = squared_distance(points, pixel, columns[entry])
        squared.sort()
        place = min(nth, squared.shape[0]) - 1
        while place < squared.shape[0] - 1 and squared[place] == 0.0:
            place += 1
        found[i] = np.sqrt(squared[place])
    return found
