"""What each parameter of a run changes: the table, and how two results are compared.

A row gives another value, the parameters under which it acts, and the result that it changes. Results are numbers in
input order, and differ where they move by a share of the largest of them: what rounding alone does is no effect.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.routes import ROUTES, WITHOUT_POINTS, goes_by_distances, takes_kernel
from scalemani.errors import ScalemaniError
from scalemani.kernels.repulsion.convolution import MESH_KERNELS
from scalemani.methods.kernel_pca.parameters import as_kernel
from scalemani.methods.pair_weights.parameters import named_by_content

MOVED = 1e-4  # of the largest number of a result; what is computed anew in another order moves by less


@dataclass(frozen=True)
class Row:
    """Another `value` of a parameter, `under` others, changes a result of some `points` by a share `least` of it.

    The result is "embedding", or "labels", "graph", "affinities", "landmarks" or "snapshots" of the run, "new" for the
    coordinates or neighbours of new points, or "STAGE.CERTIFICATE". `methods` are those that it is so of; none are all.
    """

    value: Any
    under: Mapping[str, Any] = field(default_factory=dict)
    changes: str = "embedding"
    points: str = "plain"
    least: float = MOVED
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Same:
    """Another `value` of a parameter, `under` others, changes no bit of a result, for a reason."""

    value: Any
    reason: str
    under: Mapping[str, Any] = field(default_factory=dict)
    points: str = "plain"
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """Another `value` of a parameter, `under` others, is refused, with these words."""

    value: Any
    words: str
    under: Mapping[str, Any] = field(default_factory=dict)
    points: str = "plain"
    methods: tuple[str, ...] = ()


Rows = tuple[Row | Same | Refused, ...]

COMMON = {
    "neighbors.n_neighbors": 12, "landmarks.n_landmarks": 40, "layout.max_iterations": 8, "clustering.n_clusters": 4,
}  # fmt: skip


def stored_pairs(n_points: int = 180) -> str:
    """Return a file of weights of all pairs of points, as runs name it: the same name and content in each process."""
    path = Path(tempfile.gettempdir()) / f"scalemani-weights-of-pairs-{n_points}.npy"
    weights = np.random.default_rng(2).random((n_points, n_points))
    np.save(written := path.with_suffix(f".{os.getpid()}.npy"), weights + weights.T)
    written.replace(path)
    return named_by_content(str(path))


def squared_product(one: np.ndarray, other: np.ndarray) -> float:
    """Return (x y)^2, a kernel."""
    total = 0.0
    for d in range(one.size):
        total += one[d] * other[d]
    return total * total


def points_of_each_kind() -> dict[str, np.ndarray]:
    """Return points (N, D) by what they are for."""
    draw = np.random.default_rng(5)
    apart = draw.normal(size=(120, 4))
    apart[80:] += 40
    places = np.unravel_index(np.arange(192), (2, 8, 12))
    return {
        "plain": draw.gamma(2.0, size=(180, 16)).astype(np.float32),
        "wide": draw.random((400, 12)).astype(np.float32),  # neighbours lie in many cells
        "apart": apart.astype(np.float32),  # two components
        "many": draw.normal(size=(1200, 16)).astype(np.float32),  # more than the least number of a sample
        "image": draw.integers(0, 255, (12, 15)).astype(np.uint8),
        "pixels": np.column_stack([*places[1:], draw.random(192) * 9]).astype(np.float32),  # two frames of 8 x 12
    }


def labels_of(points: np.ndarray) -> np.ndarray:
    """Return three classes (N,) of points or of the pixels of an image."""
    return np.arange(points.size if points.dtype == np.uint8 else len(points)) % 3


class Found:
    """What a run has found, by name."""

    def __init__(self, model: Any, points: np.ndarray) -> None:
        self.model, self.points = model, points
        self.run = model._run if isinstance(model, sm.KnnGraph) else model.run_

    def value(self, what: str) -> np.ndarray:
        """Return a result; see `Row`."""
        stage, _, certificate = what.partition(".")
        if certificate:
            return np.asarray(self.run.certificates[stage][certificate])
        if what == "graph":
            return np.asarray(self.run.graph.distances[...], dtype=np.float64)
        if what == "affinities":
            return self.run.affinities.tocsr().toarray()
        if what == "landmarks":
            return self.run.landmarks.points
        if what == "snapshots":
            try:
                return self.run.snapshots.iteration
            except ScalemaniError:  # there are none
                return np.array([])
        if what == "new":
            return self.new()
        if what == "embedding":
            return self.run.of_input(np.asarray(self.run.embedding[...]), np.nan)
        return np.asarray(getattr(self.run, what)[...])

    def new(self) -> np.ndarray:
        """Return what is found of new points: their coordinates, or the distances of their neighbours."""
        rows = self.points[::9] * np.float32(1.01)
        return self.model.query(rows).distances[...] if hasattr(self.model, "query") else self.model.transform(rows)

    @property
    def bits(self) -> list[bytes]:
        """The bits of what does not change where no result does."""
        names = ["embedding" if self.run.embeds else "graph", *(["labels"] if "clustering" in self.run.keys else [])]
        return [self.value(name).tobytes() for name in names]


def moved_by(one: np.ndarray, other: np.ndarray) -> float:
    """Return by how much two results differ, over the largest number of both; columns may have other signs."""
    if one.shape != other.shape or one.dtype.kind not in "fiu" or not np.array_equal(np.isnan(one), np.isnan(other)):
        return float(not np.array_equal(one, other))
    one, other = (np.nan_to_num(np.asarray(values, dtype=np.float64)) for values in (one, other))
    if one.ndim == 2:
        other = other * np.where((one * other).sum(axis=0) < 0, -1.0, 1.0)
    scale = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    return float(np.abs(one - other).max(initial=0.0) / scale) if scale else 0.0


# Settings under which more parameters act.
CELLS = {
    "neighbors.method": "partition", "neighbors.n_probes": 1, "neighbors.max_rounds": 0, "partition.cell_points": 16,
    "partition.sketch_dimensions": 2,
}  # fmt: skip
LEAVES = {
    "neighbors.method": "leaves",
    "neighbors.leaf_points": 48,
    "neighbors.n_neighbors": 4,
    "neighbors.max_rounds": 0,
}
ROUNDS = CELLS | {"neighbors.max_rounds": 1, "neighbors.recall": 1.0}
DOUBTED = {"doubt.measured": True}
PIXELS = {"neighbors.method": "window", "neighbors.window": 3, "affinities.kind": "gaussian"}
TABLE = PIXELS | {"neighbors.image_rows": 8, "neighbors.image_columns": 12}
TREES = PIXELS | {"affinities.kind": "ensemble"}
GAUSSIAN, SELF_TUNING = {"affinities.kind": "gaussian"}, {"affinities.kind": "self-tuning"}
ASCENT = {"landmarks.method": "gp", "landmarks.steps": 30}
DPP, EXACT_DPP = {"landmarks.method": "dpp"}, {"landmarks.method": "dpp-exact"}
BHATTACHARYYA = {"landmark_graph.kind": "bhattacharyya"}
MOMENTUM = {"layout.direction": "momentum"}
EXAGGERATED = {"layout.early_exaggeration": 4.0, "layout.exaggerated_iterations": 3}
ENDS = EXAGGERATED | {"layout.window": 1, "layout.converged": 0.9}
TREE = {"layout.repulsion": "barnes-hut", "layout.start_deviation": 3.0}
STILL = MOMENTUM | {  # a map that moves little until it is doubled
    "layout.start_deviation": 0.2, "layout.strength": 10.0, "layout.learning_rate": 1e-6, "layout.converged": 0.0,
    "layout.max_iterations": 152, "layout.exaggerated_iterations": 0, "layout.doubled_for": 1e-6,
}  # fmt: skip
PLAIN_START = np.random.default_rng(1).normal(size=(180, 2))
START = {"layout.init": PLAIN_START}
PAIRS = stored_pairs()
KERNEL = as_kernel(f"{__name__}:squared_product")
PULLED = {"layout.global_weight": 5.0}
# Methods of which a row is so.
SUMMED = tuple(method for method, row in OBJECTIVES.items() if row.combine == "sum")
CURVED = tuple(method for method, row in OBJECTIVES.items() if row.kernel != "epanechnikov")  # whose K'' is not zero
LOGARITHMS = tuple(method for method in OBJECTIVES if method not in SUMMED)
UNCLUSTERED = tuple(name for name in ROUTES if name != "spectral-clustering")
REFINED = {"embedding.solver": "refine"}
GRAPHS = ("knn-graph",)
DESCENTS = tuple(OBJECTIVES)
SERVED = tuple(method for method, row in OBJECTIVES.items() if row.kernel in MESH_KERNELS)
STUDENT = tuple(method for method, row in OBJECTIVES.items() if row.kernel == "student")
UNSERVED = tuple(method for method in DESCENTS if method not in SERVED)  # whose kernel exact sums alone serve
WINDOWED = ("laplacian-eigenmaps", "spectral-clustering")
BY_LANDMARKS = ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps")
KERNELS = tuple(name for name in ROUTES if takes_kernel(name))  # whose affinities are no shares of a row
ENTROPIC = tuple(name for name in ROUTES if name not in KERNELS)
MADE_ROWS = ("laplacian-eigenmaps", "spectral-clustering")  # whose rows of W may be made when they are read
BY_PATHS = ("isomap", "combined-isomap")  # paths lead from point to point: landmarks are points
BY_DISTANCES = tuple(name for name in ROUTES if goes_by_distances(name))
WITH_AFFINITIES = tuple(name for name in ROUTES if name not in BY_DISTANCES)
JOINED = tuple(name for name in ROUTES if name not in (*WITHOUT_POINTS, *GRAPHS))  # which need one graph
ANYWHERE = tuple(name for name in ROUTES if name not in BY_PATHS)
EMBEDDINGS = tuple(name for name in ROUTES if name not in GRAPHS)
EXACT_SUMS = "the mesh does not know the kernel, which is summed exactly"


def searched(value: Any, **others: Any) -> Row:
    """Return the row of a parameter of a search whose graph misses neighbours."""
    return Row(value, **{"under": CELLS, "changes": "graph", "points": "wide", **others})


def of_sums(value: Any, *settings: Mapping[str, Any], least: float = MOVED) -> Rows:
    """Return the rows of a parameter of repulsion that is approximate; some kernels have exact sums alone."""
    rows = tuple(Row(value, under, methods=SERVED, least=least) for under in settings)
    return (*rows, Same(value, EXACT_SUMS, methods=UNSERVED))


def of_entropic(value: Any, changes: str) -> Rows:
    """Return the rows of a parameter of entropic affinities."""
    return Row(value, {}, changes, methods=ENTROPIC), Same(value, "a kernel has no perplexity", methods=KERNELS)


def of_ascent(value: Any, under: Mapping[str, Any] = MappingProxyType({})) -> Rows:
    """Return the rows of a parameter of landmarks that lie off the points."""
    return (
        Row(value, ASCENT | dict(under), methods=ANYWHERE),
        Refused(value, "landmarks that are points", ASCENT | dict(under), methods=BY_PATHS),
    )


ROWS: dict[str, Rows] = {
    "seed": (searched(1, methods=GRAPHS), Row(1, {"embedding.solver": "lll"}, methods=EMBEDDINGS)),
    "points.metric": (Row("cosine"),),
    "points.distances": (Same("squared", "points are given, and no lists"),),
    "points.missing": (Same("leave-out", "no row has a gap"),),
    "duplicates.tolerance": (Row(1.5, points="apart"),),
    "partition.sketch_dimensions": (searched(3),),
    "partition.cell_points": (searched(40),),
    "partition.sample_points": (searched(1000, points="many"),),
    "neighbors.n_neighbors": (Row(9), searched(9)),
    "neighbors.method": (searched("exact"),),
    "neighbors.recall": (searched(0.1, under=ROUNDS | {"neighbors.max_rounds": 2}),),
    "neighbors.n_probes": (searched(3),),
    "neighbors.max_rounds": (searched(2, under=ROUNDS),),
    "neighbors.sampled_queries": (searched(20, changes="neighbors.recall"),),
    "neighbors.window": (Row(5, PIXELS, points="image", methods=WINDOWED),),
    "neighbors.frames": (Row(0, TABLE, points="pixels", methods=WINDOWED),),
    "neighbors.image_rows": (Row(16, TABLE, points="pixels", methods=WINDOWED),),
    "neighbors.image_columns": (Row(6, TABLE, points="pixels", methods=WINDOWED),),
    "neighbors.few_candidates": (searched(1.5),),
    "neighbors.leaf_points": (searched(60, under=LEAVES),),
    "affinities.kind": (
        Row("gaussian", methods=ENTROPIC), Row("self-tuning"), Row("entropic", SELF_TUNING, methods=ENTROPIC),
        Row("uniform", methods=ENTROPIC), Refused("uniform", "the same for all neighbours", methods=KERNELS),
    ),
    "affinities.perplexity": (Row(3.0, methods=ENTROPIC), Row(5.0, {"neighbors.n_neighbors": None})),
    "affinities.solver": of_entropic("bisection", "affinities.mean_iterations"),
    "affinities.order": of_entropic("raster", "affinities.mean_iterations"),
    "affinities.tolerance": of_entropic(0.1, "affinities"),
    "affinities.sigma": (Row(0.7, GAUSSIAN),),
    "affinities.bandwidth_neighbor": (Row(2, SELF_TUNING), Row(2, GAUSSIAN)),
    "affinities.n_neighbors": (Row(8),),
    "affinities.trees": (Row(3, TREES, points="image", methods=WINDOWED),),
    "affinities.jitter": (Row(0.1, TREES, points="image", methods=WINDOWED),),
    "components.disconnected": (
        Row("largest", points="apart"),
        Row("separate", points="apart", methods=WITHOUT_POINTS),
        Refused("separate", "embeds each piece from eigenvectors of its own", points="apart", methods=JOINED),
    ),
    "components.queries_per_component": (Row(1, points="apart"),),
    "symmetric_affinities.target_weight": (
        Row(0.5, methods=ENTROPIC), Refused(0.5, "affinities are a kernel", methods=KERNELS),
    ),
    "symmetric_affinities.stored": (
        Same(False, "rows are made of what they were stored from", {"embedding.solver": "lll"}, methods=MADE_ROWS),
        Refused(False, "read too often", methods=tuple(name for name in ROUTES if name not in MADE_ROWS)),
    ),
    "normalized_affinities.alpha": (Row(0.3),),
    "landmarks.n_landmarks": (Row(30),),
    "landmarks.method": (Row("kmeans++"),),
    "landmarks.sample_points": (Row(1000, {"landmarks.method": "kmeans"}, points="many"),),
    "landmarks.snap": (
        Row(False, {"landmarks.method": "kmeans"}, methods=ANYWHERE),
        Refused(False, "landmarks that are points", {"landmarks.method": "kmeans"}, methods=BY_PATHS),
    ),
    "landmarks.sigma": (Row(0.5, DPP), Row(0.5, EXACT_DPP)),
    "landmarks.update": (Row("sine", DPP),),
    "landmarks.neighborhood": (Row(3, DPP),),
    "landmarks.geodesic": (Row(True, EXACT_DPP),),
    "landmarks.eta": (*of_ascent(20.0), Row(20.0, {"landmarks.method": "gp-active"})),
    "landmarks.projection": of_ascent("sphere", {"points.metric": "cosine"}),
    "landmarks.batch_points": of_ascent(90),
    "landmarks.steps": of_ascent(20),
    "landmarks.sweeps": (*of_ascent(1), Row(2, {"landmarks.method": "gp-active"})),
    "landmark_weights.n_neighbors": (Row(3), Row(3, REFINED, "new", methods=BY_LANDMARKS)),
    "landmark_weights.regularization": (Row(0.1), Row(0.1, REFINED, "new", methods=BY_LANDMARKS)),
    "landmark_weights.tolerance": (Row(0.9), Row(0.9, REFINED, "new", methods=BY_LANDMARKS)),
    "landmark_weights.radius": (Row(0.5), Row(0.5, REFINED, "new", methods=BY_LANDMARKS)),
    "landmark_graph.kind": (Row("bhattacharyya"),),
    "landmark_graph.n_neighbors": (Row(5),),
    "landmark_graph.sigma": (Row(4.0),),
    "landmark_graph.neighborhood": (Row(40, BHATTACHARYYA),),
    "landmark_graph.covariances": (Row("diagonal", BHATTACHARYYA),),
    "landmark_embedding.n_components": (Row(1, methods=UNCLUSTERED), Row(3, methods=("spectral-clustering",))),
    "embedding.solver": (Row("lll"), Row("exact", least=1e-7)),
    "embedding.residual": (Row(1e-8, {"embedding.residual": 1e-2}, least=1e-9),),
    "embedding.max_passes": (Row(0, {"embedding.residual": 1e-8}, least=1e-9),),
    "diffusion_coordinates.time": (Row(2.0),),
    "kernel_discriminants.ridge": (Row(0.5),),
    "function_components.kernel": (Row(KERNEL), Refused("rbf", "must be gaussian, or a function")),
    "function_components.sigma": (Row(2.0),),
    "local_reconstruction.reg": (Row(0.5),),
    "clustering.n_clusters": (Row(3, changes="labels"),),
    "clustering.n_columns": (Row(2, changes="labels"),),
    "clustering.n_restarts": (Row(1, changes="labels"),),
    "doubt.measured": (Same(True, "scores come in addition"),),
    "doubt.n_neighbors": (Row(5, DOUBTED, "doubt.median_preservation"),),
    "doubt.null_points": (Row(60, DOUBTED, "doubt.null_points"),),
    "doubt.halves": (
        Row(2, DOUBTED | {"doubt.halves": 1}, "doubt.mean_stable", methods=DESCENTS),
        Refused(1, "halves are mapped by a descent", DOUBTED, methods=("laplacian-eigenmaps",)),
    ),
    "doubt.rate": (Row(0.9, DOUBTED, "doubt.believable_p_value", points="apart"),),
    "layout.strength": (Row(0.3),),
    "layout.direction": (Row("gradient-descent"),),
    "layout.learning_rate": (Row(7.0, MOMENTUM), Row(1e-3, {"layout.direction": "gradient-descent"})),
    "layout.momentum": (Row(0.3, MOMENTUM | {"layout.exaggerated_iterations": 0}),),
    "layout.exaggerated_momentum": (Row(0.3, MOMENTUM | EXAGGERATED),),
    "layout.early_exaggeration": (Row(2.0, EXAGGERATED), Row(2.0, EXAGGERATED | MOMENTUM)),
    "layout.exaggerated_iterations": (Row(5, EXAGGERATED), Row(5, EXAGGERATED | MOMENTUM)),
    "layout.late_exaggeration": (Row(2.0, EXAGGERATED),),
    "layout.dof": (Row(0.5, {"layout.start_deviation": 3.0}, methods=STUDENT),),
    "layout.init": (Row("random"), Row("pca"), Row(PLAIN_START)),
    "layout.global_weight": (Row(5.0), Row(5.0, {"layout.reference": "spectral"})),
    "layout.reference": (Row("spectral", PULLED), Row(PLAIN_START, PULLED)),
    "layout.freeze": (Row(True, START),),
    "layout.start_deviation": (Row(0.3), Row(0.3, START)),
    "layout.homotopy": (Row(3),),
    "layout.max_iterations": (Row(5),),
    "layout.converged": (Row(0.0, ENDS),),
    "layout.window": (Row(5, ENDS),),
    "layout.repulsion": (
        Row("grid", TREE | {"layout.tolerance": 0.1}, methods=SERVED),
        Refused("grid", "use 'exact'", methods=UNSERVED),
    ),
    "layout.tolerance": of_sums(0.4, TREE),
    "layout.schedule": of_sums(8, TREE, TREE | EXAGGERATED | {"layout.schedule": 3}),
    "layout.kappa": (Row(2, {"layout.direction": "spectral"}),),
    "layout.pairs": (Row(1, {"layout.direction": "l-bfgs"}), Row(1, {"layout.direction": "spectral+l-bfgs"})),
    "layout.snapshots": (Row(3, changes="snapshots"), Same(3, "positions are kept beside the embedding")),
    "layout.jitter": (Row(0.1),),
    "layout.doubled_for": (Row(1.0, STILL),),
    "layout.renewal": (Row(3, {"layout.direction": "spectral+diagonal", "layout.strength": 0.5}, methods=CURVED),),
    "layout.measured_rate": (Same(True, "it is a certificate alone", {"layout.direction": "spectral"}),),
    "layout.pair_weights": (
        Row(PAIRS, {"layout.strength": 0.5}, methods=SUMMED),
        Refused(PAIRS, "elastic-embedding or t-ee or epanechnikov-ee", methods=LOGARITHMS),
    ),
}  # fmt: skip
