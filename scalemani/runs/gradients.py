"""The derivative of a map at its points by their features: of landmark weights, or of a minimum by each point's own.

In the minimum of a nonlinear objective the gradient in y_i of all terms with point i vanishes. With the other points
where they are, H dy = -sum_j d grad / d w_ij dw_ij, H (d, d) the Hessian in y_i alone (implicit function theorem). A
point that moves changes its own affinities p(j|i) and those that its neighbours have for it, p(i|j): 2 w_ij is their
sum. The bandwidths of all of these rows change so that their perplexity stays.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from scalemani.config.objectives import Objective, objective_of
from scalemani.config.stages import WEIGHTS
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.engine.reading import ArrayReader
from scalemani.errors import ConfigError
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.landmarks.derivatives import combination_derivatives
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.repulsion.pair_sums import ExactSums, PairSums, responses
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.runs.new_points.placements import DescentPlacer, LandmarkPlacer, placer_of
from scalemani.runs.opened import Run
from scalemani.stages.arrays.affinities import StoredAffinities, StoredComponents, StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredPlacement
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPoints, StoredWorkPoints

CACHE_BYTES = 2**28  # of decoded blocks of lists and affinities
STEP = 1e-2  # in units of the kernels, by which gradients of sums are differenced: errs by 1e-4
TOLERANCE = 1e-5  # of these sums: second derivatives of a mesh then err by a few ten thousandths
LEAST_CURVATURE = 1e-3  # of the largest: a flatter direction counts as curved as this, or doubtful points would decide
NEWTON_STEPS = 20
ROUNDING = 1e-7  # of affinities that sum to one: what is below is left of a difference in float32


class Gradients(Protocol):
    """What knows the derivative of a map at the points of a run, by work rows (n,) and their coordinates (n, D)."""

    def at(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the derivatives (n, d, D) float64."""

    def moved(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return where the rows would be (n, d) at other coordinates nearby."""


def read_gradients(run: Run) -> Gradients:
    """Return what knows the derivatives of a finished run; raise ConfigError for a map that is neither kind."""
    placer = placer_of(run)
    if issubclass(placer, DescentPlacer):
        return DescentGradients.read(run)
    landmarks = placer.read(run, in_memory=False) if issubclass(placer, LandmarkPlacer) else None
    if landmarks is None or landmarks.combining.sigma is not None:
        raise ConfigError(
            f"the map of {run.store.root} has no derivative by features: a map by weights over landmarks has, such as "
            "that of laplacian-eigenmaps or pca, and elastic-embedding, s-sne and t-sne"
        )
    return LandmarkGradients(landmarks)


@dataclass(frozen=True)
class LandmarkGradients:
    """Those of a map by weights over landmarks, as `transform` places points."""

    placer: LandmarkPlacer

    def at(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the derivatives (n, d, D) float64."""
        placer, combining = self.placer, self.placer.combining
        near = nearest_landmarks(points, placer.prepared, combining.n_neighbors)[0]
        landmarks = placer.prepared.landmarks[near].astype(np.float64)
        return combination_derivatives(points, landmarks, placer.coordinates[near], combining.regularization)

    def moved(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return where `transform` places points (n, D): (n, d)."""
        return self.placer.place(points)[StoredPlacement.coordinates]


@dataclass(frozen=True)
class DescentGradients:
    """Those of each point's own minimum, in work order.

    `positions` (N, d), and `inverses` (N, d, d) of own Hessians of half the objective, which scales affinities by
    `scale`. `total` is the sum over all pairs that the strength is divided by, one where it is not. `bandwidths` are
    those of all rows of affinities, `bridges` (N, N) what W has between components beside these.
    """

    objective: Objective
    positions: np.ndarray = field(repr=False)
    inverses: np.ndarray = field(repr=False)
    scale: float
    total: float
    run: Run
    lists: ArrayReader
    distances: ArrayReader
    bandwidths: "Bandwidths" = field(repr=False)
    bridges: sp.csr_matrix = field(repr=False)

    @classmethod
    def read(cls, run: Run) -> Self:
        """Return those of a finished run of a nonlinear method: a pass over W, and 2 d + 1 sums over all points."""
        descent, objective = run.params.descent, objective_of(run.params.descent.objective)
        kind = run.params.affinities.kind
        smooth = objective.combine != "sum-log" and objective.kernel != "epanechnikov"
        if not smooth or WEIGHTS.name in run.keys or kind != "entropic":
            raise ConfigError(
                "derivatives of a nonlinear map need entropic affinities of points without weights, and "
                "elastic-embedding, s-sne, t-sne or another smooth objective with one sum over all pairs"
            )
        if run.params.follows_classes:
            raise ConfigError("derivatives of a nonlinear map need symmetric_affinities.target_weight 0")
        if descent.dof != 1 or descent.global_weight > 0:
            raise ConfigError(
                f"derivatives of a nonlinear map need layout.dof 1 and layout.global_weight 0, got {descent.dof:g} and "
                f"{descent.global_weight:g}"
            )
        positions = np.ascontiguousarray(run.stored_embedding.read()[run.order.input_rows])
        method = chosen_method(
            descent.repulsion, objective.kernel, len(positions), run.params.n_components, descent.exact_up_to
        )
        sums = make_repulsion(method, objective.kernel, min(descent.tolerance, TOLERANCE))
        graph, scale = run.stored(StoredSymmetricAffinities), 1.0
        if objective.total == "one":
            scale = 1.0 / sum(float(graph.degrees(block).sum()) for block in range(run.dimensions.n_blocks))
        curvature, total = repulsion_curvature(objective, positions, sums, descent.relative_strength)
        for block in range(run.dimensions.n_blocks):
            start, stop = run.dimensions.rows(block)
            of_block = attraction_curvature(graph.read_matrix(block, len(positions)), positions, start, objective)
            curvature[start:stop] += scale * of_block
        squares, axes = np.linalg.eigh(curvature)
        squares = np.maximum(squares, LEAST_CURVATURE * squares[:, -1:])
        inverses = (axes / squares[:, np.newaxis]) @ axes.transpose(0, 2, 1)
        lists = run.stored(StoredNeighbors)
        joined = run.stored(StoredComponents)
        ends, weights = joined.bridge_rows.read(), joined.bridge_weights.read()
        bridges = sp.csr_matrix((weights, ends.T), 2 * (len(positions),))
        return cls(
            objective,
            positions,
            inverses,
            scale,
            total,
            run,
            lists.indices(lists.final_step),
            lists.distances(lists.final_step),
            read_bandwidths(run),
            bridges + bridges.T,
        )

    def at(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the derivatives (n, d, D) float64."""
        near, differences = self._differences(rows, points)
        stored = self.run.stored(StoredAffinities).values.gather(rows, CACHE_BYTES).astype(np.float64)
        shares = (stored / stored.sum(axis=1, keepdims=True))[..., np.newaxis]
        squares = (differences**2).sum(axis=2, keepdims=True)
        of_rows = bandwidths_of(shares[..., 0], squares[..., 0])
        beta, mean, spread = (one[:, np.newaxis, np.newaxis] for one in of_rows)
        deviations, pulls = squares - mean, self._pulls(rows, near, self.positions[rows])
        pulls -= (shares * pulls).sum(axis=1, keepdims=True)
        pulls -= (shares * deviations * pulls).sum(axis=1, keepdims=True) / spread * deviations
        forces = (-beta * shares * pulls).transpose(0, 2, 1) @ (2.0 * differences)
        received = self._received(rows, near, stored)
        of_entry = np.repeat(np.arange(len(rows)), np.diff(received.indptr))
        apart = points[of_entry] - gathered(self.run, received.indices)
        slopes = self._slopes_received(received, (apart**2).sum(axis=1))
        pulls = self._pulls(rows[of_entry], received.indices[:, np.newaxis], self.positions[rows[of_entry]])[:, 0]
        for axis, weights in enumerate(2.0 * (slopes[:, np.newaxis] * pulls).T):
            forces[:, axis] += sp.csr_matrix((weights, np.arange(len(weights)), received.indptr)) @ apart
        return -self.inverses[rows] @ forces

    def _rows_of_w(self, rows: np.ndarray) -> sp.csr_matrix:
        """Return rows (n, N) of W in any order; a block that holds several is read once."""
        order = np.argsort(rows, kind="stable")
        return self.run.stored(StoredSymmetricAffinities).read_at(rows[order], self.run.dimensions)[np.argsort(order)]

    def _received(self, rows: np.ndarray, near: np.ndarray, stored: np.ndarray) -> sp.csr_matrix:
        """Return the affinities p(i|j) (n, N) that others have for rows, whose own are `stored` (n, k)."""
        bounds = np.arange(0, near.size + 1, near.shape[1])
        own = sp.csr_matrix((stored.ravel(), near.ravel(), bounds), (len(rows), len(self.positions)))
        received = (2.0 * (self._rows_of_w(rows).astype(np.float64) - self.bridges[rows]) - own).tocsr()
        received.data[received.data < ROUNDING] = 0.0
        received.eliminate_zeros()
        return received

    def _slopes_received(self, received: sp.csr_matrix, squares: np.ndarray) -> np.ndarray:
        """Return the derivatives (e,) of affinities (n, N) that others have for rows by their squared distances."""
        beta, mean, spread = (one[received.indices] for one in self.bandwidths)
        shares = received.data
        return -beta * shares * (1.0 - shares) + beta * shares**2 * (squares - mean) ** 2 / spread

    def moved(self, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the minima (n, d) of the rows' own terms, by exact sums and affinities computed anew.

        What is left of their gradients at the positions of the map is subtracted: there a minimum lies as well.
        """
        sums, positions = ExactSums(self.objective.kernel), self.positions[rows].copy()
        stored = self.run.stored(StoredAffinities).values.gather(rows).astype(np.float64)
        near, differences = self._differences(rows, points)
        changes = self._affinities((differences**2).sum(axis=2)) - stored / stored.sum(axis=1, keepdims=True)
        received = self._received_changes(rows, points, self._received(rows, near, stored)).tocoo()
        matrices = self._rows_of_w(rows).tocoo()
        normalized = self.objective.combine == "log-sum"
        start: tuple[np.ndarray, np.ndarray] | None = None
        for _ in range(NEWTON_STEPS):
            moves = positions[matrices.row] - self.positions[matrices.col]
            weighted = moves * (matrices.data * slope_of((moves**2).sum(axis=1), self.objective))[:, np.newaxis]
            pulls = np.stack([np.bincount(matrices.row, one, len(rows)) for one in weighted.T], axis=1)
            values, slopes = sums.field(self.positions, positions)
            own = positions - self.positions[rows]
            response, slope = responses(self.objective.kernel, (own**2).sum(axis=1))
            values, slopes = values - response, slopes - 2 * own * slope[:, np.newaxis]
            total = self.total + 2 * normalized * (values - (values if start is None else start[0]))
            push = self.run.params.descent.relative_strength / total[:, np.newaxis]
            gradients = 2 * self.scale * pulls + push * slopes
            start = (values, gradients) if start is None else start
            changed = (changes[..., np.newaxis] * self._pulls(rows, near, positions)).sum(axis=1)
            of_entry = received.row
            apart = self._pulls(rows[of_entry], received.col[:, np.newaxis], positions[of_entry])[:, 0]
            for axis, one in enumerate((received.data[:, np.newaxis] * apart).T):
                changed[:, axis] += np.bincount(of_entry, one, len(rows))
            positions -= np.einsum("nab,nb->na", self.inverses[rows], gradients - start[1] + changed)
        return positions

    def _received_changes(self, rows: np.ndarray, points: np.ndarray, received: sp.csr_matrix) -> sp.csr_matrix:
        """Return how the affinities that others have for rows change with these at other points, computed anew."""
        width, givers = self.run.params.affinity_neighbors, received.indices
        of_entry = np.repeat(np.arange(len(rows)), np.diff(received.indptr))
        lists = self.lists.gather(givers, CACHE_BYTES)[:, :width]
        squares = self.distances.gather(givers, CACHE_BYTES)[:, :width].astype(np.float64) ** 2
        at = lists == rows[of_entry][:, np.newaxis]
        here = gathered(self.run, givers)
        there = (gathered(self.run, rows)[of_entry] - here, points[of_entry] - here)
        before, after = (np.where(at, (one**2).sum(axis=1)[:, np.newaxis], squares) for one in there)
        changes = np.where(at, self._affinities(after) - self._affinities(before), 0.0).sum(axis=1)
        return sp.csr_matrix((changes, givers, received.indptr), received.shape)

    def _differences(self, rows: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours (n, k) of rows, and what lies from these to points (n, k, D)."""
        width = self.run.params.affinity_neighbors
        near = self.lists.gather(rows, CACHE_BYTES)[:, :width]
        return near, points[:, np.newaxis] - gathered(self.run, near.ravel()).reshape(*near.shape, -1)

    def _pulls(self, rows: np.ndarray, near: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the derivatives (n, k, d) of gradients by affinities, of half the objective."""
        moves = positions[:, np.newaxis] - self.positions[near]
        return self.scale * moves * slope_of((moves**2).sum(axis=2), self.objective)[..., np.newaxis]

    def _affinities(self, squares: np.ndarray) -> np.ndarray:
        """Return affinities (n, k) at squared distances in any order; rows sum to one."""
        order = np.argsort(squares, axis=1)
        ascending = np.take_along_axis(squares, order, axis=1)
        values = entropic_affinities(ascending, self.run.params.perplexity, order="bounds", tol=1e-13).values
        spread = np.empty_like(values)
        np.put_along_axis(spread, order, values / values.sum(axis=1, keepdims=True), axis=1)
        return spread


class Bandwidths(NamedTuple):
    """The precision of rows of affinities (n,), and the means and variances of their squared distances under these."""

    beta: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def bandwidths_of(shares: np.ndarray, squares: np.ndarray) -> Bandwidths:
    """Return those of rows (n, k) that sum to one, at squared distances; the spread of ties is infinite."""
    mean = (shares * squares).sum(axis=1)
    deviations = squares - mean[:, np.newaxis]
    spread = (shares * deviations**2).sum(axis=1)
    spread = np.where(spread > 0, spread, np.inf)  # of neighbours that tie, whose affinities are equal
    logarithms = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
    return Bandwidths(-(shares * deviations * logarithms).sum(axis=1) / spread, mean, spread)


def read_bandwidths(run: Run) -> Bandwidths:
    """Return those of all points (N,): a pass over the lists of a run and their affinities."""
    graph, affinities, parts = run.stored(StoredNeighbors), run.stored(StoredAffinities), []
    for block in range(run.dimensions.n_blocks):
        shares = affinities.values.read_block(block).astype(np.float64)
        _, distances = graph.read_graph_block(block, shares.shape[1])
        parts.append(bandwidths_of(shares / shares.sum(axis=1, keepdims=True), distances.astype(np.float64) ** 2))
    return Bandwidths(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def gathered(run: Run, rows: np.ndarray) -> np.ndarray:
    """Return the points (n, D) float64 of a run at rows in work order, as its metric maps them."""
    kind = StoredWorkPoints if StoredWorkPoints.STAGE in run.keys else StoredPoints
    distinct, places = np.unique(rows, return_inverse=True)
    return dense_rows(run.stored(kind).points.gather(distinct, CACHE_BYTES)).astype(np.float64)[places]


def slope_of(squares: np.ndarray, objective: Objective) -> np.ndarray:
    """Return a' of the attraction at squared distances."""
    return np.ones(squares.shape) if objective.attraction == "quadratic" else 1.0 / (1.0 + squares)


def repulsion_curvature(
    objective: Objective, positions: np.ndarray, sums: PairSums, strength: float
) -> tuple[np.ndarray, float]:
    """Return the Hessians (N, d, d) of half of each point's repulsion, and the sum over all pairs that divides it."""
    values, slopes = sums.field(positions)
    total = float(values.sum()) if objective.combine == "log-sum" else 1.0
    of_itself = responses(objective.kernel, np.array([STEP**2]))[1][0]  # a point as a source
    curvature = np.empty((*positions.shape, positions.shape[1]))
    for column, step in enumerate(STEP * np.eye(positions.shape[1])):
        ahead, behind = (sums.field(positions, positions + one)[1] for one in (step, -step))
        curvature[:, column] = (ahead - behind) / (2 * STEP)
        curvature[:, column, column] -= 2 * of_itself
    curvature = strength / total * (curvature + curvature.transpose(0, 2, 1)) / 2
    if objective.combine == "log-sum":
        curvature -= 2 * strength / total**2 * slopes[:, :, np.newaxis] * slopes[:, np.newaxis]
    return curvature, total


def attraction_curvature(
    rows_of_w: sp.csr_matrix, positions: np.ndarray, first: int, objective: Objective
) -> np.ndarray:
    """Return the Hessians (n, d, d) of sum_m w_m a(|y - y_m|^2) at consecutive rows of W (n, N), from `first` on."""
    entries = rows_of_w.tocoo()
    moves = positions[first + entries.row] - positions[entries.col]
    slopes = slope_of((moves**2).sum(axis=1), objective)
    bends = np.zeros(len(slopes)) if objective.attraction == "quadratic" else -(slopes**2)
    curvature = np.empty((rows_of_w.shape[0], *2 * positions.shape[1:]))
    for one in range(positions.shape[1]):
        for other in range(positions.shape[1]):
            values = 2.0 * slopes * (one == other) + 4.0 * bends * moves[:, one] * moves[:, other]
            curvature[:, one, other] = np.bincount(entries.row, entries.data * values, rows_of_w.shape[0])
    return curvature
