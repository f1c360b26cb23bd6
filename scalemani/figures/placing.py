"""Where the names of classes go on a map: on their clusters, and none over another."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import gaussian_filter

from scalemani.kernels.machine.compile import compiled

CELLS = 96  # a side of a panel: by them the densest place of each class is found
CLUSTER_CELLS = 2.0  # over which the density of a class is averaged
TURN = math.pi * (3 - math.sqrt(5))  # the golden angle: places on a spiral by it are spread evenly
TRIED = 3000  # places for a name around its cluster, nearest first
CROWDED = 0.3  # of its height that a name moves away for each other cluster that it covers


@dataclass
class ClassPlaces:
    """How many points of each class fell on each cell of a panel, and where each class is densest."""

    n_classes: int
    limits: np.ndarray  # (2, 2): lowest and highest of each axis
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.n_classes, CELLS, CELLS))

    def add(self, across: np.ndarray, up: np.ndarray, index: np.ndarray) -> None:
        """Count points at (across, up) of the classes `index`; those outside the panel or of no class are left out."""
        count_classes(np.stack([across, up], axis=1).astype(np.float64), self.limits, index, self.counts)

    @property
    def sizes(self) -> np.ndarray:
        """The points (n_classes,) of each class in the panel."""
        return self.counts.sum(axis=(1, 2))

    def densest(self) -> np.ndarray:
        """Return the densest place (n_classes, 2) of each class, across and down as shares of the panel."""
        found = np.zeros((self.n_classes, 2))
        for number, counts in enumerate(self.counts):
            smooth = gaussian_filter(counts, CLUSTER_CELLS, mode="constant", truncate=2)
            row, column = np.unravel_index(int(np.argmax(smooth)), smooth.shape)
            found[number] = (column + 0.5) / CELLS, (row + 0.5) / CELLS
        return found


@compiled
def count_classes(points: np.ndarray, limits: np.ndarray, index: np.ndarray, counts: np.ndarray) -> None:
    """Count the points of each class in the cells of a panel.

    Parameters
    ----------
    points : (n, 2) float64, across and up
    limits : (2, 2) float64, lowest and highest of each axis; points beyond are left out
    index : (n,) int, the class of each point; those from `n_classes` on are left out
    counts : (n_classes, rows, columns), added to; the uppermost row is first
    """
    n_classes, rows, columns = counts.shape
    for i in range(points.shape[0]):
        across = (points[i, 0] - limits[0, 0]) / (limits[0, 1] - limits[0, 0])
        up = (points[i, 1] - limits[1, 0]) / (limits[1, 1] - limits[1, 0])
        if index[i] < n_classes and across >= 0 and across <= 1 and up >= 0 and up <= 1:
            column = min(int(across * columns), columns - 1)
            row = rows - 1 - min(int(up * rows), rows - 1)
            counts[index[i], row, column] += 1


def place_boxes(anchors: np.ndarray, extents: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Return the centres (n, 2) of boxes near their anchors, none over another and all within the bounds.

    Boxes are placed in the order given, each at the nearest place that is free; one over the anchors of others goes
    further away. NaN stands for a box that no place was found for.

    Parameters
    ----------
    anchors : (n, 2) where each box belongs, in pixels from the upper left corner
    extents : (n, 2) width and height of each box
    bounds : width and height within which all boxes lie
    """
    turns = np.arange(TRIED)
    # A spiral that is as wide as the panel at its end.
    steps = (
        np.stack([np.cos(turns * TURN), np.sin(turns * TURN)], axis=1) * (np.hypot(*bounds) * turns / TRIED)[:, None]
    )
    centres = np.full((len(anchors), 2), np.nan)
    place_in_order(
        np.asarray(anchors, np.float64), np.asarray(extents, np.float64), np.array(bounds, float), steps, centres
    )
    return centres


@compiled
def place_in_order(
    anchors: np.ndarray, extents: np.ndarray, bounds: np.ndarray, steps: np.ndarray, centres: np.ndarray
) -> None:
    """Set the centres of boxes one after the other.

    Parameters
    ----------
    anchors, extents : as of `place_boxes`
    bounds : (2,) float64, as of `place_boxes`
    steps : (m, 2) float64, from an anchor to the places that are tried
    centres : (n, 2) float64, NaN, set where there is a place
    """
    for i in range(anchors.shape[0]):
        wide, tall = extents[i]
        if wide > bounds[0] or tall > bounds[1]:
            continue
        least = np.inf
        for j in range(steps.shape[0]):
            # What leaves the panel is brought back to its rim.
            x = min(max(anchors[i, 0] + steps[j, 0], wide / 2), bounds[0] - wide / 2)
            y = min(max(anchors[i, 1] + steps[j, 1], tall / 2), bounds[1] - tall / 2)
            cost = math.hypot(x - anchors[i, 0], y - anchors[i, 1])
            if cost >= least or not is_free(x, y, i, extents, centres):
                continue
            for other in range(anchors.shape[0]):
                if other != i and abs(x - anchors[other, 0]) < wide / 2 and abs(y - anchors[other, 1]) < tall / 2:
                    cost += CROWDED * tall
            if cost < least:
                least, centres[i, 0], centres[i, 1] = cost, x, y


@compiled
def is_free(x: float, y: float, number: int, extents: np.ndarray, centres: np.ndarray) -> bool:
    """Return whether a box overlaps none of those before it.

    Parameters
    ----------
    x, y : its centre, in pixels
    number : its own, in the order of the boxes
    extents, centres : (n, 2) float64 of all; NaN, no place, overlaps nothing
    """
    for other in range(number):
        across = abs(x - centres[other, 0]) < (extents[other, 0] + extents[number, 0]) / 2
        if across and abs(y - centres[other, 1]) < (extents[other, 1] + extents[number, 1]) / 2:
            return False
    return True
