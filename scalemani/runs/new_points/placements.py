"""How new points are placed in a finished embedding: over its landmarks, among their neighbours, or by a descent."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from scalemani.config.functions import check_function
from scalemani.config.methods import PlacementExtension, extensions
from scalemani.config.metrics import compares_rows
from scalemani.config.objectives import GIVEN_PAIRS, objective_of
from scalemani.config.params import Resolved
from scalemani.config.stages import PRECOMPUTED
from scalemani.descents.placement import FixedSources, PlacementProblem, place_points, rows_of_lists
from scalemani.descents.repulsion import chosen_method, make_repulsion, mesh_values
from scalemani.engine.context import Arrays
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.errors import ConfigError
from scalemani.kernels.affinities.bandwidths import gaussian_affinities, self_tuning_affinities
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import Workspace, threads
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import isolation_among
from scalemani.kernels.landmarks.weights import Combining, combined_among, reconstruction_errors
from scalemani.kernels.machine.control_groups import usable_processors
from scalemani.kernels.neighbors.isolation import (
    AROUND,
    FARTHEST,
    Gaps,
    gaps_of,
    n_around,
    ratios_to,
    spacings_of,
    usual_ratio,
)
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.runs.new_points.neighbors import (
    CACHE_BYTES,
    CANDIDATES_PER_NEIGHBOR,
    ComparedIndex,
    PointIndex,
    neighbor_index,
)
from scalemani.runs.opened import Run
from scalemani.stages.affinities import sigma_of
from scalemani.stages.arrays.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import (
    StoredDiffusionCoordinates,
    StoredEmbedding,
    StoredLandmarkCoordinates,
    StoredLayout,
    StoredPlacement,
)
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.landmarks import (
    StoredAffinityWeights,
    StoredLandmarkEmbedding,
    StoredLandmarks,
)
from scalemani.stages.arrays.points import StoredWeights, StoredWorkPoints
from scalemani.stages.diffusion_coordinates import diffusion_scales
from scalemani.stages.embedding import solver_of_method
from scalemani.stages.shared.landmark_maps import combining_of
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import PLAN
from scalemani.store.schema import ArrayDescription

ROWS_AT_ONCE = 4096  # whose nearest landmarks are found at a time
COPIES_OF_LANDMARKS = 3  # as read, in float64 for their spacings, and in float64 as they are sketched
COPIES_OF_POINTS = 2  # as read, and as compared
LEAST_STEP = 0.05  # of mu = 1 - lambda, by which means are divided: what is below is noise, and would be enlarged
COPIES_OF_POSITIONS = 6  # of a descent: positions, gradients, trial positions and what they are made of
NEEDS_POINTS = (
    "placing new points needs the points that were embedded, and this embedding was made of neighbours alone, or of "
    "affinities (metric or affinity precomputed): embed the points themselves"
)
IN_PIECES = (
    "new points have no place in coordinates of several pieces, each of which has its own: raise "
    "neighbors.n_neighbors, embed with components.disconnected={}, or by a descent"
)


class Placer(ABC):
    """One way of placing new points, with what it takes of a run; `measured` is stored with their coordinates.

    A method with another way has a module `new_points` with `placer_of(run)`, which returns the class, or None for
    runs that it does not serve.
    """

    measured: ClassVar[tuple[ArrayDescription, ...]] = ()

    @classmethod
    @abstractmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the placer of a finished run; `in_memory` reads all that it takes, so that its store may go."""

    @classmethod
    def memory(cls, run: Run, points: Dimensions, rows: int) -> Memory:
        """Return what blocks of so many rows take, in addition to what they do with all placers."""
        return Memory()

    @abstractmethod
    def place(self, points: Points) -> Arrays:
        """Return the coordinates of points (n, D), mapped for the metric, and what is `measured` of each.

        Each row depends on its point only.
        """

    def on_threads(self, count: int) -> Self:
        """Return it with so many threads for a call, where it has any."""
        return self


def spread(values: np.ndarray, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return values (m, ...) of some rows among all (n_rows, ...), NaN or False in the others."""
    spread_values = np.full((n_rows, *values.shape[1:]), np.nan if values.dtype.kind == "f" else 0, values.dtype)
    spread_values[rows] = values
    return spread_values


@dataclass(frozen=True)
class Placement:
    """A finished embedding that can place points.

    `shape` are the columns D that points must have and the dimensions d of the embedding; of `sparse` training points
    new ones are read as sparse rows too.
    """

    placer: Placer
    shape: tuple[int, int]
    metric: str
    sparse: bool

    def place(self, points: Points) -> Arrays:
        """Return what is stored of points (n, D), mapped for the metric."""
        return self.placer.place(points)


@dataclass(frozen=True)
class LandmarkPlacer(Placer):
    """Landmarks (L, D), their `spacings` (L,) and `coordinates` (L, d), and how points are combined of them."""

    prepared: PreparedLandmarks
    spacings: np.ndarray
    coordinates: np.ndarray
    combining: Combining

    measured = StoredPlacement.isolation, StoredPlacement.errors

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the landmarks of a finished run with their coordinates in its embedding; they are read whole."""
        landmarks = run.stored(StoredLandmarks)
        solver = solver_of_method(run.params.embedding.solver)
        if solver and solver.GRAPH in run.keys:
            prepared, coordinates, combining = solver.landmark_map(landmarks, run.group(solver.GRAPH), run.params)
        else:
            prepared, coordinates = prepare_landmarks(landmarks.points.read()), coordinates_of(run, landmarks)
            combining = combining_of(run.params)
        if combining.n_neighbors > len(prepared.landmarks):
            stored_numbers = f"{combining.n_neighbors} landmarks a point, of {len(prepared.landmarks)}"
            raise damaged_object(f"{run.store.root}/{PLAN}", stored_numbers)
        return cls(prepared, landmarks.read_spacings(), coordinates, combining)

    @classmethod
    def memory(cls, run: Run, points: Dimensions, rows: int) -> Memory:
        """Return what placing rows by landmarks takes: some at a time, for blocks of any number of rows."""
        columns = 3 * max(run.params.landmark_neighbors, AROUND) + points.n_features
        return Memory(
            {"coordinates of the landmarks": array("float64", run.params.n_landmarks, run.params.n_components)},
            {"nearest landmarks, weights and differences of some rows": array("float64", ROWS_AT_ONCE, columns)},
        )

    def place(self, points: Points) -> Arrays:
        """Return the coordinates of points (n, D), how isolated they are, and what their landmarks miss."""
        landmarks, n_points = self.prepared.landmarks, points.shape[0]
        placed = np.empty((n_points, self.coordinates.shape[1]))
        isolation, errors = np.empty(n_points), np.empty(n_points)
        n_near = max(self.combining.n_neighbors, n_around(len(landmarks) - 1))
        for part in slices(n_points, ROWS_AT_ONCE):
            rows = dense_rows(points[part])
            near = nearest_landmarks(rows, self.prepared, n_near)
            combined = combined_among(rows, self.prepared, self.combining, *near)
            placed[part] = combined.of(self.coordinates)
            isolation[part] = isolation_among(*near, self.spacings)
            errors[part] = reconstruction_errors(rows, landmarks, combined.indices, combined.weights)
        return {
            StoredPlacement.coordinates: placed,
            StoredPlacement.isolation: isolation,
            StoredPlacement.errors: np.nan_to_num(errors, nan=1.0, posinf=1.0),
        }


def coordinates_of(run: Run, landmarks: StoredLandmarks) -> np.ndarray:
    """Return the coordinates (L, d) of the landmarks in the embedding of a run.

    Where the embedding is Z times their coordinates, landmarks off the data have these; those that no point uses
    have none, and stand among their anchors as after a refinement.
    """
    scores = run.reduction
    if scores is not None and issubclass(scores, StoredLandmarkCoordinates):
        return scores(run.group(scores.STAGE)).vectors.read()
    among_points = landmarks.coordinates_in(run.stored_embedding)
    if not landmarks.off_data or run.params.embedding.solver != "lll":
        return among_points
    landmark_vectors = run.stored(StoredLandmarkEmbedding).vectors.read()
    if StoredDiffusionCoordinates.STAGE in run.keys:
        landmark_vectors *= diffusion_scales(run.eigenvalues, run.params.diffusion_coordinates.time)
    return np.where(landmark_vectors.any(axis=1, keepdims=True), landmark_vectors, among_points)


@dataclass(frozen=True)
class NeighborPlacer(Placer):
    """Training points that new ones find their neighbours among, in work order.

    `spacings` (N,) and `positions` (N, d) of the training points; `sigma` is that of Gaussian affinities, None for
    others.
    """

    index: PointIndex = field(repr=False)
    spacings: np.ndarray = field(repr=False)
    positions: np.ndarray = field(repr=False)
    params: Resolved
    sigma: float | None

    measured: ClassVar[tuple[ArrayDescription, ...]] = (StoredPlacement.isolation,)

    @classmethod
    def memory(cls, run: Run, points: Dimensions, rows: int) -> Memory:
        """Return what the search for the neighbours of a block takes, and what is known of these."""
        trained, k, width = run.dimensions, run.params.affinity_neighbors, run.params.n_components
        n_points, sketch = trained.n_points, Sizes(trained, run.params).sketch_width
        looked_at = min(n_points, int(rows * CANDIDATES_PER_NEIGHBOR * k))
        known = Memory(
            process={
                "positions of the training points, as read and sorted, neighbours and distances": array(
                    "float64", n_points, 3 * width + 5
                ),
            },
            task={"candidates, neighbours, and their positions": array("float64", rows, 4 * k + 2 * k * width)},
        )
        if compares_rows(run.metric):
            return known + Memory(
                task={
                    "new points in float64": array("float64", rows, points.n_features),
                    "a block of training points, encoded and decoded": 2 * trained.block_rows * trained.row_bytes,
                }
            )
        return known + Memory(
            process={"sketches of the training points": array("float32", n_points, sketch)},
            task={
                "sketches of training and new points": array("float32", n_points + rows, sketch),
                "training points that are candidates": looked_at * trained.row_bytes,
            },
            cache={"decoded blocks of training points": CACHE_BYTES},
        )

    def place(self, points: Points) -> Arrays:
        """Return the coordinates of points (n, D), and how isolated they are among the training points.

        A point that equals a training point takes its place; one that is infinitely far from all of them has none.
        """
        wanted = self.n_neighbors
        neighbors = self.index.neighbors(points, wanted) if points.shape[0] else no_neighbors(0, wanted)
        reached = np.flatnonzero(np.isfinite(neighbors.distances[:, -1]))
        neighbors = Neighbors(*(part[reached] for part in neighbors))
        placed, known = self.place_among(neighbors), neighbors.distances[:, 0] == 0
        placed[StoredPlacement.coordinates][known] = self.positions[neighbors.indices[known, 0]]
        near, isolation = slice(n_around(wanted)), np.full(points.shape[0], FARTHEST)
        isolation[reached] = ratios_to(neighbors.distances[:, near], self.spacings[neighbors.indices[:, near]])
        everywhere = {one: spread(values, reached, points.shape[0]) for one, values in placed.items()}
        return {**everywhere, StoredPlacement.isolation: isolation}

    def on_threads(self, count: int) -> Self:
        """Return it with so many threads for a search that looks at all training points."""
        index = self.index
        return replace(self, index=replace(index, threads=count)) if isinstance(index, ComparedIndex) else self

    @property
    def n_neighbors(self) -> int:
        """The training points that a point is placed by."""
        return self.params.affinity_neighbors

    @abstractmethod
    def place_among(self, neighbors: Neighbors) -> Arrays:
        """Return points placed by their neighbours; those that equal a training point may lie anywhere."""


def read_spacings(run: Run) -> np.ndarray:
    """Return how far points around each training point (N,), in work order, usually lie from training points.

    Each training point is one that is left out: its neighbours are those that a new point in its place would have.
    """
    graph, blocks = run.stored(StoredNeighbors), range(run.dimensions.n_blocks)
    parts = [gaps_of(graph.read_graph_block(block)[1]) for block in blocks]
    gaps, ratios = Gaps(*map(np.concatenate, zip(*parts, strict=True))), np.empty(run.dimensions.n_points)
    near = slice(n_around(run.params.affinity_neighbors))
    for block in blocks:
        indices, distances = (one[:, near] for one in graph.read_graph_block(block))
        ratios[slice(*run.dimensions.rows(block))] = ratios_to(distances, gaps.left_out(indices, distances))
    return spacings_of(gaps, usual_ratio(ratios))


def read_training_points(
    run: Run, in_memory: bool
) -> tuple[PointIndex, np.ndarray, np.ndarray, Resolved, float | None]:
    """Return the fields of a `NeighborPlacer` of a finished run, in their order.

    `in_memory` reads its points, so that its store may go.
    """
    order, affinity_params = run.stored(StoredWorkPoints).input_rows.read(), run.params.affinities
    positions = np.ascontiguousarray(run.stored_embedding.read()[order])
    sigma = sigma_of(run.group("affinities"), affinity_params) if affinity_params.kind == "gaussian" else None
    return neighbor_index(run, in_memory), read_spacings(run), positions, run.params, sigma


def query_affinities(
    squares: np.ndarray, params: Resolved, sigma: float | None, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return affinities (n, k) of new points to their neighbours at squared distances (n, k); rows sum to one.

    Parameters
    ----------
    squares : (n, k) float64, ascending in each row
    sigma : of Gaussian affinities, None for others
    weights : (n, k) of the neighbours: affinities are those to all copies of each. None: one
    """
    affinity_params = params.affinities
    if sigma is not None:
        values = gaussian_affinities(squares, sigma)
    elif affinity_params.kind == "self-tuning":
        values = self_tuning_affinities(squares, affinity_params.bandwidth_neighbor)
    elif affinity_params.kind == "uniform":
        values = np.ones(squares.shape)
    else:
        # Each row from its own bracket: a row's bits then do not depend on what else is placed.
        search: Any = {"solver": affinity_params.solver, "order": "bounds", "masses": weights}
        values = entropic_affinities(squares, params.perplexity, **search).values
        if weights is not None:
            values *= weights
    return values / values.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class AffinityPlacer(NeighborPlacer):
    """All that placing a point takes.

    `landmarks` (N,) says which of the training points are landmarks; `densities` (N,) is what affinities are divided
    by, ones where they are not normalised by density.
    """

    landmarks: np.ndarray = field(repr=False)
    densities: np.ndarray = field(repr=False)

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the placer of a finished run; `in_memory` reads its points, so that its store may go."""
        order = run.stored(StoredWorkPoints).input_rows.read()
        chosen = np.zeros(len(order), np.bool_)
        chosen[run.stored(StoredLandmarks).rows.read()] = True
        return cls(*read_training_points(run, in_memory), chosen[order], read_densities(run))

    def place_among(self, neighbors: Neighbors) -> Arrays:
        """Return points at the mean of the landmarks among their neighbours, by affinity; without any, of all these."""
        affinities = query_affinities(neighbors.distances.astype(np.float64) ** 2, self.params, self.sigma)
        affinities /= self.densities[neighbors.indices]
        direct = affinities * self.landmarks[neighbors.indices]
        weights = np.where(direct.any(axis=1, keepdims=True), direct, affinities)
        return {StoredPlacement.coordinates: mean_positions(self.positions, neighbors.indices, weights)}


@dataclass(frozen=True)
class EigenvectorPlacer(NeighborPlacer):
    """Eigenvectors continued to new points without landmarks.

    An eigenvector of the random walk is at each point the mean over its neighbours, by affinity, divided by mu = 1 -
    lambda; a new point has this mean over its neighbours among the training points [Bengio et al. 2004, section 3].
    `densities` (N,) are those of `AffinityPlacer`, `weights` (N,) those of `DescentPlacer`; `steps` (d,) are mu.
    """

    densities: np.ndarray = field(repr=False)
    weights: np.ndarray | None = field(repr=False)
    steps: np.ndarray

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the placer of a finished run; `in_memory` reads its points, so that its store may go."""
        steps = 1.0 - run.eigenvalues
        steps = np.copysign(np.maximum(np.abs(steps), LEAST_STEP), steps)
        return cls(*read_training_points(run, in_memory), read_densities(run), read_weights(run), steps)

    def place_among(self, neighbors: Neighbors) -> Arrays:
        """Return points at the mean of their neighbours, by affinity, divided by mu."""
        of_neighbors = None if self.weights is None else self.weights[neighbors.indices]
        squares = neighbors.distances.astype(np.float64) ** 2
        affinities = query_affinities(squares, self.params, self.sigma, of_neighbors)
        affinities /= self.densities[neighbors.indices]
        means = mean_positions(self.positions, neighbors.indices, affinities)
        return {StoredPlacement.coordinates: means / self.steps}


def mean_positions(positions: np.ndarray, neighbors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the means (n, d) of the positions (N, d) of neighbours (n, k), by weights (n, k) that need not sum to one.

    Neighbour by neighbour, so that the order of the sum does not depend on the number of rows.
    """
    placed, shares = np.zeros((len(neighbors), positions.shape[1])), weights / weights.sum(axis=1, keepdims=True)
    for neighbor, share in zip(neighbors.T, shares.T, strict=True):
        placed += share[:, np.newaxis] * positions[neighbor]
    return placed


def read_densities(run: Run) -> np.ndarray:
    """Return what affinities to the training points (N,) are divided by, in work order; ones where by nothing."""
    n_points = run.dimensions.n_points
    if StoredNormalizedAffinities.STAGE not in run.keys:
        return np.ones(n_points)
    degrees, weights = run.stored(StoredSymmetricAffinities).read_degrees(n_points), read_weights(run)
    of_copies = degrees if weights is None else degrees / weights
    return np.asarray(of_copies**run.params.normalized_affinities.alpha)


def read_weights(run: Run) -> np.ndarray | None:
    """Return how many points each training point (N,) stands for, in work order; None for one."""
    return run.stored(StoredWeights).weights.read() if StoredWeights.STAGE in run.keys else None


@dataclass(frozen=True)
class DescentPlacer(NeighborPlacer):
    """All that placing a point in a nonlinear embedding takes.

    `threads` are those of one call; `tolerance` is what the sums of the descent were set to err by at its end;
    `weights` (N,) say how many equal points each training point stands for, None for one.
    """

    threads: int
    tolerance: float
    weights: np.ndarray | None = field(default=None, repr=False)

    measured = StoredPlacement.isolation, StoredPlacement.descended, StoredPlacement.arrived, StoredPlacement.falls

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the placer of a finished nonlinear run, with a thread a core.

        `in_memory` reads its points, so that its store may go.
        """
        tolerance = run.certificates["layout"].get("repulsion_tolerance", run.params.layout.tolerance)
        return cls(*read_training_points(run, in_memory), usable_processors(), tolerance, read_weights(run))

    @classmethod
    def memory(cls, run: Run, points: Dimensions, rows: int) -> Memory:
        """Return what the search for neighbours takes, and the descent of a block."""
        values = mesh_values(run.dimensions.n_points, run.params.layout.dof, run.params.n_components)
        mesh = {"mesh": array("float64", values)}
        positions = COPIES_OF_POSITIONS * array("float64", rows, run.params.n_components)
        return super().memory(run, points, rows) + Memory(mesh, {"positions of a block": positions})

    def on_threads(self, count: int) -> Self:
        """Return it with so many threads for a descent too."""
        return replace(super().on_threads(count), threads=count)

    def place_among(self, neighbors: Neighbors) -> Arrays:
        """Return points where a descent ends; those that equal a training point have none."""
        descent = self.params.descent
        objective = objective_of(descent.objective, descent.dof)
        of_neighbors = None if self.weights is None else self.weights[neighbors.indices]
        affinities = query_affinities(
            neighbors.distances.astype(np.float64) ** 2, self.params, self.sigma, of_neighbors
        )
        n_points, n_dims = self.positions.shape
        method = chosen_method(descent.repulsion, objective.kernel, n_points, n_dims, descent.exact_up_to)
        with threads(self.threads) as side_by_side:
            sums = make_repulsion(method, objective.kernel, self.tolerance, Workspace(side_by_side.over))
            fixed = FixedSources(sums, self.positions, self.weights)
            lists = rows_of_lists(neighbors.indices, affinities)
            problem = PlacementProblem(objective, descent.relative_strength, fixed, self.positions, lists)
            placed, arrived, falls, _ = place_points(problem)
        known = neighbors.distances[:, 0] == 0
        return {
            StoredPlacement.coordinates: placed,
            StoredPlacement.descended: ~known,
            StoredPlacement.arrived: arrived | known,
            StoredPlacement.falls: np.where(known, 0.0, falls),
        }


def refusal_of(run: Run) -> str:
    """Return why no new points can be placed in a run; "" where they can."""
    if run.metric == PRECOMPUTED:
        return NEEDS_POINTS
    # Certificates are read from every stage: only where one of them may say so.
    if StoredLayout.STAGE in run.keys and run.certificates.get(StoredLayout.STAGE, {}).get("repulsion") == GIVEN_PAIRS:
        return "new points have no weights of pairs: embed them with the others, or without these"
    by_coordinates = StoredEmbedding.STAGE in run.keys and run.last_stage != StoredLayout.STAGE
    in_pieces = by_coordinates and run.stored(StoredEmbedding).in_pieces
    joins_none = run.params.components.disconnected == "connect"  # pieces that are infinitely far from each other
    return IN_PIECES.format("largest" if joins_none else "connect or largest") if in_pieces else ""


class PlacerOf(Protocol):
    """How a method places new points."""

    def __call__(self, run: Run, /) -> type[Placer] | None:
        """Return the class that places the new points of a run; None for a run that it does not know."""
        ...


def placer_of(run: Run) -> type[Placer]:
    """Return how the new points of a run are placed; raise ConfigError where they cannot be."""
    if refused := refusal_of(run):
        raise ConfigError(refused)
    check_function(run.metric)
    if run.last_stage == StoredLayout.STAGE:
        return DescentPlacer
    for stage in run.keys:
        if stage in extensions(PlacementExtension):
            placement: PlacerOf = extensions(PlacementExtension)[stage].load()
            if placer := placement(run):
                return placer
    if compares_rows(run.metric):
        return EigenvectorPlacer
    return AffinityPlacer if StoredAffinityWeights.STAGE in run.keys else LandmarkPlacer


def read_placement(run: Run, in_memory: bool = False, n_threads: int | None = None) -> Placement:
    """Return what places new points in a run, on so many threads where it has any; None: one a core.

    `in_memory` reads all that is needed of its store, which may go then.
    """
    kind, shape = placer_of(run), (run.dimensions.n_features, run.embedding.shape[1])
    placer = kind.read(run, in_memory)
    if n_threads is not None:
        placer = placer.on_threads(n_threads)
    return Placement(placer, shape, run.metric, run.dimensions.sparse)


def placement_memory(run: Run, points: Dimensions, rows: int) -> Memory:
    """Return what placing blocks of so many new points takes."""
    n_landmarks = 0 if compares_rows(run.metric) else run.params.n_landmarks
    landmarks = COPIES_OF_LANDMARKS * array("float64", n_landmarks, points.n_features)
    return placer_of(run).memory(run, points, rows) + Memory(
        {"landmarks": landmarks},
        {
            "new points of a block": COPIES_OF_POINTS * rows * points.row_bytes,
            "coordinates of a block and what is known of them": array("float64", rows, run.params.n_components + 5),
        },
    )
