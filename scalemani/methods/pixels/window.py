"""W of an image or a video: what its rows are made of is stored, with their degrees, and not the rows themselves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.config.limits import MUCH_AT_FLOOR
from scalemani.config.methods import PixelAffinitiesExtension, extensions
from scalemani.config.params import Parameters
from scalemani.config.params.tables import Tables
from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Memory, array, entries
from scalemani.engine.sizes import Sizes, pixels
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import PixelRows, PointsSource
from scalemani.kernels.affinities.bandwidths import LEAST_WEIGHT, rows_to_choose_by
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.kernels.rows.metrics import EUCLIDEAN
from scalemani.methods.pixels import WINDOW
from scalemani.methods.pixels.kernels import window_affinities, window_bandwidths
from scalemani.methods.pixels.parameters import WindowParams
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.groups import StageGroup


@dataclass(frozen=True)
class WindowAffinities(StoredSymmetricAffinities):
    """Gaussian affinities of pixels: their degrees are stored, their rows are made anew each time they are read."""

    pixels: StoredWorkPoints

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        start = block * self.group.block_rows
        return self.rows_of(start, start + len(self.indptr(block)) - 1)

    def reached(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return work rows, ascending, that hold all columns: those between, which windows leave few of."""
        first = columns.min()
        return np.arange(first, columns.max() + 1), columns - first

    def rows_of(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of rows [start, stop) of W."""
        image, reach = (tuple(sides.read_once().tolist()) for sides in (self.image, self.reach))
        points, sigma = self.pixels.dense_points.read_once(), float(self.sigma.read_once())
        return window_affinities(points, image, reach, sigma, (start, stop))


KINDS = ("gaussian", *extensions(PixelAffinitiesExtension))  # of affinities that pixels have
ROWS_AT_ONCE = 4096  # rows of W in memory while degrees are summed: they are used once
CERTIFIED_PIXELS = 1000


def takes_image(params: Tables) -> bool:
    """Return whether points are an image or a video, and no table of its pixels."""
    return params.part(WindowParams).image_rows is None


def image(params: Tables, n_pixels: int) -> tuple[int, int, int]:
    """Return frames, rows and columns of so many pixels."""
    return params.part(WindowParams).image(n_pixels)


def n_neighbors(params: Tables, n_pixels: int) -> int:
    """Return the most neighbours that one of so many pixels has."""
    return params.part(WindowParams).neighbors_in_window(n_pixels)


def follow_image(params: Parameters, source: PointsSource) -> Parameters:
    """Return parameters that know the image of the pixels; refuse an image that its window does not fit."""
    if params.points.metric != EUCLIDEAN or params.affinities.kind not in (None, *KINDS):
        raise ConfigError(
            f"neighbors.method={WINDOW} takes points.metric={EUCLIDEAN} and affinities.kind={' or '.join(KINDS)}, "
            f"got {params.points.metric} and {params.affinities.kind}: change these, or take another neighbors.method"
        )
    if isinstance(source, PixelRows):
        _, rows, columns = source.image
        params = params.with_values({"neighbors": {"image_rows": rows, "image_columns": columns}})
    neighbors = params.part(WindowParams)
    if neighbors.image_rows is None or neighbors.image_columns is None:
        raise ConfigError(
            f"neighbors.method={WINDOW} takes an image, got {source.description}: give an image or a video, or with a "
            "table of pixels neighbors.image_rows and neighbors.image_columns"
        )
    frames, rows, columns = neighbors.image(source.shape[0])
    if frames * rows * columns != source.shape[0]:
        raise DataError(
            f"{source.description} has {source.shape[0]} pixels, which are no frames of {rows} x {columns}: correct "
            "neighbors.image_rows and neighbors.image_columns"
        )
    if min(rows, columns) < neighbors.window:
        raise DataError(
            f"an image of {rows} x {columns} pixels is smaller than its window of {neighbors.window} x "
            f"{neighbors.window}: lower neighbors.window, or give a larger image"
        )
    if frames > 1 and neighbors.frames >= frames:
        raise ConfigError(f"neighbors.frames must be below the {frames} frames of the video, got {neighbors.frames}")
    return params


def stored_nonzeros(sizes: Sizes) -> int:
    """Return the nonzeros of W that are stored: none, as rows are made of the pixels."""
    return 0


def memory(sizes: Sizes) -> Memory:
    """Return what the pixels take, and the rows of W that are made at once."""
    block_rows = sizes.dimensions.block_rows
    rows = entries(min(ROWS_AT_ONCE, block_rows) * sizes.params.n_neighbors, "float32")
    bounds = 2 * array("float64", block_rows, 2)
    return Memory(pixels(sizes), {"rows of W": rows, "where they begin, and degrees": bounds})


def write(context: StageContext) -> dict[str, Any]:
    """Write what the rows of W are made of, and their degrees; certify how many weights tell pixels apart."""
    task, window = context.task, context.task.params.part(WindowParams)
    stored = StoredSymmetricAffinities
    if not task.output.committed(WINDOW):
        extent, reach = window.image(task.dimensions.n_points), window.reach
        sigma = task.params.affinities.sigma or typical_bandwidth(task, extent, reach)
        arrays = {stored.image: np.array(extent), stored.reach: np.array(reach), stored.sigma: np.array(sigma)}
        task.output.write_whole(arrays, WINDOW)
    context.map_blocks(degrees_block)
    return weight_certificates(context)


def typical_bandwidth(task: StageTask, image: tuple[int, int, int], reach: tuple[int, int]) -> float:
    """Return the median distance of a sample of the pixels to the nth nearest of their window; 1 where all are zero."""
    points = task.stored(StoredWorkPoints).points.read_once()
    pixels = rows_to_choose_by(task.params.seed, len(points))
    bandwidths = window_bandwidths(points, image, reach, pixels, task.params.affinities.bandwidth_neighbor)
    return float(np.median(bandwidths[bandwidths > 0])) if bandwidths.any() else 1.0


def weight_certificates(context: StageContext) -> dict[str, Any]:
    """Certify, on a sample of the pixels, how many weights are the least there is, for pixels too far apart."""
    task, graph = context.task, affinities_of(context.task)
    pixels = sample_rows(task.params.seed, "window/weights", task.dimensions.n_points, CERTIFIED_PIXELS)
    weights = np.concatenate([graph.rows_of(pixel, pixel + 1)[2] for pixel in pixels.tolist()])
    share = float(np.mean(weights <= np.float32(LEAST_WEIGHT)))
    sigma = float(graph.sigma.read())
    if share > MUCH_AT_FLOOR:
        context.warn(
            f"affinities: {share:.0%} of the pixels within a window are too far from its middle for affinities.sigma "
            f"{sigma:.3g} to tell them apart and have the least weight there is: raise it, or leave it open"
        )
    return {"sigma": sigma, "floor_share": share}


def stored_rows(group: StageGroup, pixels: StoredWorkPoints) -> WindowAffinities:
    """Return the reader of W, whose rows are made of the pixels."""
    return WindowAffinities(group, pixels)


def affinities_of(task: StageTask) -> WindowAffinities:
    """Return the rows of W that the stage certifies."""
    return stored_rows(task.output, task.stored(StoredWorkPoints))


def degrees_block(task: StageTask, block: int) -> Arrays:
    """Return where rows begin in a block of W, and their degrees, from some rows at a time."""
    start, stop = task.dimensions.rows(block)
    counts, degrees = [np.zeros(1, np.int64)], []
    for first in range(start, stop, ROWS_AT_ONCE):
        indptr, _, values = affinities_of(task).rows_of(first, min(first + ROWS_AT_ONCE, stop))
        counts.append(np.diff(indptr))
        degrees.append(row_sums(values, indptr))
    bounds = np.cumsum(np.concatenate(counts))
    return {StoredSymmetricAffinities.indptr: bounds, StoredSymmetricAffinities.degrees: np.concatenate(degrees)}
