"""Sums of a kernel over all points: double sums at some, and by interpolation on a grid at all, in few dimensions.

Masses of points go to nodes around them by Lagrange's weights, nodes are convolved with the kernel by FFT, and points
take the values of nodes around them by the same weights. Exact sums at some points measure how far off that is.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.fft
import scipy.sparse as sp

from scalemani.audit.stored import side_by_side

NODES = 6  # of a point, along each axis
MOST_AXES = 3  # of more, a point has thousands of nodes
FINEST, COARSEST = 1 / 8, 1 / 2  # distances of nodes, where kernels change over one
COPIES_OF_GRID = 6  # padded: masses, kernel, their transforms, and what comes back
ENTRIES_AT_ONCE = 2**21  # nodes of points
PAIRS_AT_ONCE = 2**20  # of a thread, in a double sum


class Field(NamedTuple):
    """Sums S (m,) of the kernel over all other points, and their gradients (m, d)."""

    sums: np.ndarray
    gradients: np.ndarray


class Grid(NamedTuple):
    """Nodes at `low` + `step` * number (d,), `shape` of them along each axis."""

    low: np.ndarray
    step: float
    shape: tuple[int, ...]


def grid_of(positions: np.ndarray, memory: int) -> Grid | None:
    """Return the finest grid that positions (N, d) and the memory allow; None where none is fine enough."""
    if positions.shape[1] > MOST_AXES:
        return None
    low, high = positions.min(axis=0), positions.max(axis=0)
    step = FINEST
    while step <= COARSEST:
        shape = np.ceil((high - low) / step) + 2 * NODES
        if 8 * COPIES_OF_GRID * np.prod(2.0 * shape) <= memory:
            return Grid(low - NODES * step, step, tuple(int(length) for length in shape))
        step *= 2**0.5
    return None


def all_sums(
    kernel: Callable[[np.ndarray], np.ndarray], positions: np.ndarray, masses: np.ndarray, memory: int
) -> Field | None:
    """Return sums of kernel(t) of squared distances t at all positions (N, d); None where no grid is fine enough."""
    grid = grid_of(positions, memory)
    if grid is None:
        return None
    total = np.zeros(int(np.prod(grid.shape)))
    for some, (values, *_) in weights_of(grid, positions, slopes=False):
        total += values.T @ masses[some]
    potentials = convolved(kernel, grid, total)
    sums, gradients = np.empty(len(positions)), np.empty(positions.shape)
    for some, (values, *slopes) in weights_of(grid, positions, slopes=True):
        sums[some] = values @ potentials
        gradients[some] = np.column_stack([slope @ potentials for slope in slopes])
    return Field(sums - kernel(np.zeros(1))[0], gradients)


def weights_of(grid: Grid, positions: np.ndarray, slopes: bool) -> Iterator[tuple[slice, list[sp.csr_matrix]]]:
    """Yield weights of nodes at some positions after others: (n, nodes), and their derivative along each axis."""
    n_axes = positions.shape[1]
    together = ENTRIES_AT_ONCE // NODES**n_axes
    for first in range(0, len(positions), together):
        some = slice(first, min(first + together, len(positions)))
        places = (positions[some] - grid.low) / grid.step
        corners = np.floor(places).astype(np.int64) - (NODES // 2 - 1)
        along = [lagrange(places[:, axis] - corners[:, axis]) for axis in range(n_axes)]
        columns: list[np.ndarray] = []
        parts: list[list[np.ndarray]] = [[] for _ in range(1 + n_axes if slopes else 1)]
        for offsets in itertools.product(range(NODES), repeat=n_axes):
            columns.append(np.ravel_multi_index((corners + offsets).T, grid.shape))
            for number, part in enumerate(parts):  # the first of values, the others of a slope along one axis
                factors = [along[axis][int(axis == number - 1)][:, offsets[axis]] for axis in range(n_axes)]
                part.append(np.prod(factors, axis=0))
        indices, indptr = np.column_stack(columns), np.arange(len(places) + 1) * len(columns)
        shape = (len(places), int(np.prod(grid.shape)))
        scales = [1.0] + [1 / grid.step] * n_axes
        yield (
            some,
            [
                sp.csr_matrix((scale * np.column_stack(part).ravel(), indices.ravel(), indptr), shape=shape)
                for part, scale in zip(parts, scales, strict=False)
            ],
        )


def lagrange(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (n, NODES) of nodes 0, 1, ... at places (n,), and their derivatives."""
    values, slopes = np.ones((len(places), NODES)), np.zeros((len(places), NODES))
    for node in range(NODES):
        for other in range(NODES):
            if other != node:  # a product and its derivative, factor by factor
                factor = (places - other) / (node - other)
                slopes[:, node] = slopes[:, node] * factor + values[:, node] / (node - other)
                values[:, node] *= factor
    return values, slopes


def convolved(kernel: Callable[[np.ndarray], np.ndarray], grid: Grid, masses: np.ndarray) -> np.ndarray:
    """Return the kernel's sums at all nodes, of masses at nodes."""
    padded = [scipy.fft.next_fast_len(2 * length, real=True) for length in grid.shape]
    steps = [np.minimum(np.arange(length), length - np.arange(length)) * grid.step for length in padded]
    squares = sum(np.square(step).reshape(shape) for step, shape in zip(steps, shapes_of(len(padded)), strict=True))
    spectrum = scipy.fft.rfftn(kernel(squares)) * scipy.fft.rfftn(masses.reshape(grid.shape), s=padded)
    sums = scipy.fft.irfftn(spectrum, s=padded)
    return np.asarray(sums[tuple(slice(length) for length in grid.shape)]).ravel()


def shapes_of(n_axes: int) -> list[list[int]]:
    """Return the shapes by which arrays along each of some axes are added up."""
    return [[-1 if axis == long else 1 for axis in range(n_axes)] for long in range(n_axes)]


def kernel_field(kernel: str | float, positions: np.ndarray, targets: np.ndarray, masses: np.ndarray) -> Field:
    """Return the sums of a kernel and their gradients at targets (m, d) that are among the positions (N, d).

    A target of some mass meets its other copies at distance zero, and not itself.
    """
    together = max(1, PAIRS_AT_ONCE // len(targets))

    def of_panel(first: int) -> tuple[np.ndarray, np.ndarray]:
        some = slice(first, first + together)
        differences = [targets[:, axis, np.newaxis] - positions[some, axis] for axis in range(targets.shape[1])]
        values, slopes = of_kernel(kernel, sum(difference**2 for difference in differences))
        slopes *= 2.0 * masses[some]
        gradients = [np.einsum("mn,mn->m", slopes, difference) for difference in differences]
        return values @ masses[some], np.column_stack(gradients)

    sums, gradients = -np.ones(len(targets)), np.zeros(targets.shape)
    for of_some, slopes in side_by_side(of_panel, range(0, len(positions), together)):
        sums += of_some
        gradients += slopes
    return Field(sums, gradients)


def of_kernel(kernel: str | float, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a kernel K(t) and its derivative at squared distances t."""
    if kernel == "student":
        values = 1.0 / (1.0 + squares)
        return values, -(values**2)
    if not isinstance(kernel, str):  # degrees of freedom of Student's kernel
        base = 1.0 + squares / kernel
        return base**-kernel, -(base ** (-kernel - 1.0))
    if kernel == "gaussian":
        values = np.exp(-squares)
        return values, -values
    inside = squares < 1.0
    return np.where(inside, 1.0 - squares, 0.0), np.where(inside, -1.0, 0.0)
