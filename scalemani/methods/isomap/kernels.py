"""Lengths of shortest paths along a neighbour graph, and classical scaling by them.

Paths are computed by Dijkstra's algorithm with a binary heap. Scaling gives coordinates whose distances are their
lengths, as well as a few dimensions allow; further points are triangulated by their distances to the scaled ones.

Sources: Dijkstra, A note on two problems in connexion with graphs, 1959;
Torgerson, Multidimensional scaling: I. Theory and method, 1952; de Silva and Tenenbaum, Sparse multidimensional scaling
using landmark points, 2004.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from scalemani.errors import RankError
from scalemani.kernels.arrays.columns import column_squares
from scalemani.kernels.arrays.coordinates import at_unit_scale
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components

NOT_REACHED = -1  # the place in the heap of a node that no path has led to


class UndirectedEdges(NamedTuple):
    """Edges by node, each of them at both of its ends: those of node i are [bounds[i], bounds[i + 1]).

    `bounds` (N + 1,) int64; `heads` (E,) int32, the other ends; `lengths` (E,) real, none below zero.
    """

    bounds: np.ndarray
    heads: np.ndarray
    lengths: np.ndarray


def undirected_edges(
    indices: np.ndarray, distances: np.ndarray, bridge_rows: np.ndarray, bridge_lengths: np.ndarray
) -> UndirectedEdges:
    """Return the edges of neighbour lists and bridges, each at both of its ends, once.

    Parameters
    ----------
    indices, distances : (N, k) int32 and real, the neighbours of each node and how far they are
    bridge_rows, bridge_lengths : (B, 2) int and (B,) real, further edges
    """
    counts = np.zeros(len(indices), np.int64)
    _count_edges(indices, counts)
    np.add.at(counts, bridge_rows.ravel(), 1)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    heads, lengths = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], distances.dtype)
    free = bounds[:-1].copy()
    _place_edges(indices, distances, free, heads, lengths)
    for (one, other), length in zip(bridge_rows.tolist(), bridge_lengths.tolist(), strict=True):
        for tail, head in ((one, other), (other, one)):
            heads[free[tail]], lengths[free[tail]] = head, length
            free[tail] += 1
    return UndirectedEdges(bounds, heads, lengths)


def unit_edges(edges: UndirectedEdges) -> tuple[UndirectedEdges, int]:
    """Return edges over 2^e, and e: squares of the lengths of their paths are in the range of float64."""
    lengths, exponent = at_unit_scale(edges.lengths)
    return edges._replace(lengths=lengths), exponent


@compiled
def _lists(indices: np.ndarray, row: int, wanted: int) -> bool:
    listed = False
    for column in range(indices.shape[1]):
        listed |= indices[row, column] == wanted
    return listed


@compiled
def _count_edges(indices: np.ndarray, counts: np.ndarray) -> None:
    for row in range(indices.shape[0]):
        counts[row] += indices.shape[1]
        for column in range(indices.shape[1]):
            if not _lists(indices, indices[row, column], row):
                counts[indices[row, column]] += 1


@compiled
def _place_edges(
    indices: np.ndarray, distances: np.ndarray, free: np.ndarray, heads: np.ndarray, lengths: np.ndarray
) -> None:
    """Write each edge at the next free place of its ends; moves `free` (N,) on."""
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            other = indices[row, column]
            heads[free[row]], lengths[free[row]] = other, distances[row, column]
            free[row] += 1
            if not _lists(indices, other, row):
                heads[free[other]], lengths[free[other]] = row, distances[row, column]
                free[other] += 1


def geodesic_distances(edges: UndirectedEdges, sources: np.ndarray) -> np.ndarray:
    """Return the lengths of the shortest paths from some nodes to all.

    Parameters
    ----------
    edges : of a graph of N nodes
    sources : (s,) int, nodes

    Returns
    -------
    (s, N) float64, infinite where no path leads. A path and its way back are summed in other orders, and may differ in
    the last bit
    """
    n_nodes = len(edges.bounds) - 1
    geodesics = np.empty((len(sources), n_nodes))
    heap, places = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    for distances, source in zip(geodesics, sources, strict=True):
        _from_source(edges, int(source), distances, heap, places)
    return geodesics


@compiled
def _from_source(
    edges: UndirectedEdges, source: int, distances: np.ndarray, heap: np.ndarray, places: np.ndarray
) -> None:
    """Write the distances (N,) of all nodes from one; `heap` and `places` (N,) int32 are room to work in."""
    distances[:] = np.inf
    places[:] = NOT_REACHED
    distances[source], heap[0], places[source], size = 0.0, source, 0, 1
    while size > 0:
        nearest = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sink(heap, size, places, distances)
        for edge in range(edges.bounds[nearest], edges.bounds[nearest + 1]):
            head = edges.heads[edge]
            length = distances[nearest] + np.float64(edges.lengths[edge])
            if length < distances[head]:
                distances[head] = length
                if places[head] == NOT_REACHED:
                    places[head] = size
                    size += 1
                _rise(heap, head, places, distances)


@compiled
def _rise(heap: np.ndarray, node: int, places: np.ndarray, distances: np.ndarray) -> None:
    """Move a node up from its place to where the one above is no farther."""
    place = places[node]
    while place > 0:
        above = (place - 1) // 2
        other = heap[above]
        if distances[other] <= distances[node]:
            break
        heap[place], places[other] = other, place
        place = above
    heap[place], places[node] = node, place


@compiled
def _sink(heap: np.ndarray, size: int, places: np.ndarray, distances: np.ndarray) -> None:
    """Move the first of `size` nodes down to where those below are no nearer."""
    node, place = heap[0], 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and distances[heap[below + 1]] < distances[heap[below]]:
            below += 1
        other = heap[below]
        if distances[node] <= distances[other]:
            break
        heap[place], places[other] = other, place
        place = below
    heap[place], places[node] = node, place


LEAST_SHARE = 1e-10  # of the largest eigenvalue: what is below is rounding, and no dimension


def classical_scaling(distances: np.ndarray, n_components: int) -> tuple[Components, float]:
    """Return leading eigenvalues of -J D^2 J / 2, J = I - 1 1^T / L, coordinates v sqrt(lambda), the least eigenvalue.

    Parameters
    ----------
    distances : (L, L) float64, symmetric bit for bit
    n_components : d, below L

    Returns
    -------
    components : eigenvalues (d,), descending, and coordinates (L, d), centred
    least : below zero where no points have these distances

    Raises
    ------
    RankError
        Where fewer eigenvalues are above zero.
    """
    near_one, exponent = at_unit_scale(distances)
    products = -0.5 * near_one**2
    means = products.mean(axis=1)
    products -= means
    products -= means[:, np.newaxis]
    products += means.mean()
    spectrum, axes = eigh(products, overwrite_a=True, check_finite=False)
    values, vectors = spectrum[: -n_components - 1 : -1], axes[:, : -n_components - 1 : -1]
    positive = int(np.count_nonzero(values > LEAST_SHARE * max(values[0], 0.0)))
    if n_components > positive:
        raise RankError(
            f"{n_components} components were requested of distances that span {positive} dimensions: ask for fewer, or "
            "take more landmarks"
        )
    coordinates = np.ldexp(sign_rule(vectors * np.sqrt(values)), exponent)
    return Components(np.ldexp(values, 2 * exponent), coordinates), float(np.ldexp(spectrum[0], 2 * exponent))


class Triangulation(NamedTuple):
    """Where a point lies by its distances to L landmarks that were scaled to d dimensions.

    A point at squared distances s_l, in units of 4^exponent, has coordinates sum_l (s_l - means_l) directions_l, in
    units of 2^exponent: `means` (L,), those of the landmarks, and `directions` (L, d), -v_l / (2 sqrt(lambda)).
    """

    means: np.ndarray
    directions: np.ndarray
    exponent: int

    def add(self, distances: Iterable[np.ndarray], first: int, out: np.ndarray) -> None:
        """Add what the landmarks from `first` on say of some points to `out` (n, d), in units of 2^exponent.

        Landmarks are added one by one, so that a point's bits do not depend on what else is placed.

        Parameters
        ----------
        distances : of all n points to one landmark after the other, (n,) real each
        out : (n, d) float64, written in place
        """
        for landmark, lengths in enumerate(distances, first):
            squares = np.ldexp(np.asarray(lengths, np.float64), -self.exponent) ** 2
            squares -= self.means[landmark]
            for column, direction in enumerate(self.directions[landmark]):
                out[:, column] += squares * direction


def triangulation(distances: np.ndarray, scaled: Components) -> Triangulation:
    """Return how points are placed among landmarks at distances (L, L), `scaled` by `classical_scaling`.

    A landmark is placed at its coordinates, and points with the distances of a plane at theirs.
    """
    near_one, exponent = at_unit_scale(distances)
    values, vectors = np.ldexp(scaled.eigenvalues, -2 * exponent), np.ldexp(scaled.vectors, -exponent)
    return Triangulation((near_one**2).mean(axis=0), -0.5 * vectors / values, exponent)


class SampledPaths(NamedTuple):
    """What the shortest paths from one sampled point after the other to all N points say of an embedding (N, d).

    `missed` (s, d): rows of -D^2 U / 2 - U diag(|x|^2), U the centred columns of the embedding at unit length, |x|
    their lengths, D all paths; `sums` (s, 5): of the lengths of its paths and of distances in the embedding, of their
    squares and products, over all other points; `scale`: the largest |x|^2, in the same units.
    """

    missed: np.ndarray
    sums: np.ndarray
    scale: float
    n_points: int

    def residual(self) -> tuple[float, float]:
        """Return |B u - |x|^2 u| of the worst column, B = -J D^2 J / 2, over the largest |x|^2, and its standard error.

        Rows of B u - |x|^2 u have a mean of zero over all points: their mean over the sample stands for what centring
        takes off, and their variance for that of all rows.
        """
        n_sampled = len(self.missed)
        away = np.square(self.missed - self.missed.mean(axis=0)) * (n_sampled / max(1, n_sampled - 1))
        squares = away.mean(axis=0)
        worst = int(np.argmax(squares))
        share = 1.0 - n_sampled / self.n_points  # of the points that are not in the sample
        error = float(np.sqrt(share * away[:, worst].var() / max(1, n_sampled - 1)))
        residual = float(np.sqrt(self.n_points * squares[worst]))
        per_square = 0.5 * self.n_points / residual if residual > 0 else 0.0
        return residual / self.scale, per_square * error / self.scale

    def variance(self) -> tuple[float, float]:
        """Return 1 - r^2 of paths and distances from sampled points to all others, and its error by the jackknife."""
        total = self.sums.sum(axis=0)
        n_sampled, per_row = len(self.sums), self.n_points - 1
        whole = unexplained(total, n_sampled * per_row)
        if n_sampled < 2:
            return whole, 0.0
        without = np.array([unexplained(total - one, (n_sampled - 1) * per_row) for one in self.sums])
        return whole, float(np.sqrt((n_sampled - 1) * without.var()))


def unexplained(sums: np.ndarray, count: int) -> float:
    """Return 1 - r^2 of two variables, of the sums (5,) of their values, squares and products."""
    one, other, one_squares, other_squares, products = sums / count
    both = products - one * other
    return float(1.0 - both**2 / ((one_squares - one**2) * (other_squares - other**2)))


def sampled_paths(parts: Iterable[np.ndarray], rows: np.ndarray, embedding: np.ndarray, exponent: int) -> SampledPaths:
    """Return what paths from sampled points say.

    Parameters
    ----------
    parts : distances (s', N) from consecutive ones of the sampled points, one part after the other
    rows : (s,) int, the sampled points
    embedding : (N, d) float64, in units of 2^exponent
    """
    mean = embedding.mean(axis=0)
    lengths = column_squares(embedding - mean)
    unit = (embedding - mean) / np.sqrt(lengths)
    missed, sums = [], []
    for first, paths in parts_from(parts):
        near_one = np.ldexp(np.asarray(paths, np.float64), -exponent)
        part_rows = rows[first : first + len(near_one)]
        missed.append(-0.5 * (near_one**2) @ unit - unit[part_rows] * lengths)
        for row, one in zip(part_rows, near_one, strict=True):
            other = np.sqrt(np.square(embedding - embedding[row]).sum(axis=1))
            sums.append([one.sum(), other.sum(), one @ one, other @ other, one @ other])
    return SampledPaths(np.concatenate(missed), np.array(sums), float(lengths.max()), len(embedding))


def parts_from(parts: Iterable[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield parts (s', N) with the number of rows before them."""
    first = 0
    for part in parts:
        yield first, part
        first += len(part)


def residual_variance(distances: np.ndarray, coordinates: np.ndarray) -> float:
    """Return 1 - r^2 of input distances (L, L) and those of coordinates (L, d), r their correlation over all pairs.

    References
    ----------
    Tenenbaum, de Silva and Langford, A global geometric framework for nonlinear dimensionality reduction, 2000.
    """
    distances, coordinates = at_unit_scale(distances)[0], at_unit_scale(coordinates)[0]
    reached = cdist(coordinates, coordinates)
    one, other = distances - distances.mean(), reached - reached.mean()
    both = float(np.vdot(one, other))
    return 1.0 - both**2 / (float(np.vdot(one, one)) * float(np.vdot(other, other)))
