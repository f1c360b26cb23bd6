"""Small runs of all routes, for audits: each a function of a folder that leaves a run there."""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import scalemani as sm

N_POINTS = 2200
FEW = {"landmarks.n_landmarks": 150, "partition.cell_points": 64}
SHORT = {"layout.max_iterations": 120}
Make = Callable[[Path], Any]


@functools.cache
def points() -> np.ndarray:
    """Return clusters of points on curved sheets, joined: three blocks of 1,024 rows, the last one short."""
    rng = np.random.default_rng(7)
    plane = rng.uniform(-2, 2, size=(N_POINTS, 2))
    lifted = np.column_stack([plane, np.sin(2 * plane[:, 0]), np.cos(plane[:, 1]), plane[:, 0] * plane[:, 1]])
    turned = lifted @ rng.normal(size=(5, 12))
    return (turned + 0.05 * rng.normal(size=(N_POINTS, 12))).astype(np.float32)


@functools.cache
def bits() -> np.ndarray:
    """Return sets of 60 things, drawn around a few."""
    rng = np.random.default_rng(8)
    likely = rng.uniform(0.05, 0.5, size=(6, 60))[rng.integers(0, 6, 1500)]
    return (rng.uniform(size=likely.shape) < likely).astype(np.uint8)


@functools.cache
def far_apart() -> np.ndarray:
    """Return three clusters that no neighbour list joins."""
    rng = np.random.default_rng(9)
    centers = 100 * np.eye(3, 8)
    return (centers[np.repeat([0, 1, 2], [700, 500, 300])] + rng.normal(size=(1500, 8))).astype(np.float32)


def labels() -> np.ndarray:
    """Return four classes of the points."""
    return (points()[:, 0] > 0).astype(int) + 2 * (points()[:, 1] > 0)


def fit(estimator: Any, given: Any = None, y: Any = None, **how: Any) -> Make:
    """Return what fits an estimator, whose store is then the run."""

    def make(folder: Path) -> Any:
        estimator.set_params(store=folder, random_state=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = points() if given is None else given() if callable(given) else given
            return estimator.fit(data, y() if callable(y) else y, **how)

    return make


def eigenmaps(solver: str, n_components: int = 3, **settings: Any) -> Make:
    """Return what makes Laplacian eigenmaps by a solver."""
    return fit(
        sm.LaplacianEigenmaps(n_components, n_neighbors=20, perplexity=6, solver=solver, settings=FEW | settings)
    )


def descent(estimator: type, given: Any = None, **settings: Any) -> Make:
    """Return what makes a nonlinear embedding."""
    return fit(estimator(n_neighbors=20, perplexity=6, settings=FEW | SHORT | settings), given)


def graph(folder: Path, method: str = "partition", **how: Any) -> Any:
    """Return a neighbour graph whose store is the run."""
    return sm.knn_graph(points(), 12, method, how.pop("recall", 0.9), random_state=3, store=folder, **how)


def with_gaps() -> np.ndarray:
    """Return points, some rows with a gap, some repeated."""
    found = points().copy()
    found[5:50:9, 2] = np.nan
    found[100:160] = found[60]
    found[200:260] = found[300:360]
    return found


def image() -> np.ndarray:
    """Return a picture of two shapes."""
    rng = np.random.default_rng(4)
    row, column = np.indices((40, 36))
    shape = ((row - 18) ** 2 + (column - 15) ** 2 < 120).astype(float)
    return 255 * np.clip(0.3 + 0.4 * shape + 0.05 * rng.normal(size=shape.shape), 0, 1)


def affinities() -> sp.csr_matrix:
    """Return affinities of the points in the place of these."""
    rng = np.random.default_rng(5)
    matrix = sp.random(900, 900, 0.02, random_state=5, data_rvs=lambda n: rng.uniform(0.1, 1, n))
    return sp.csr_matrix(matrix + matrix.T)


def lists() -> tuple[np.ndarray, np.ndarray]:
    """Return neighbour lists in the place of the points."""
    found = sm.knn_graph(points(), 12, "exact")
    return np.asarray(found.distances), np.asarray(found.indices)


def appended(folder: Path) -> Any:
    """Append the last points to a run of the first."""
    settings = FEW | {"neighbors.method": "partition", "neighbors.recall": 0.9}
    model = sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, settings=settings, store=folder, random_state=3)
    model.fit(points()[:1900])
    return sm.append(folder, points()[1900:])


def frozen(folder: Path) -> Any:
    """Make a map in which two thirds of the points are kept where they are given."""
    places = np.random.default_rng(2).normal(scale=9.0, size=(N_POINTS, 2)) + 40.0
    places[::3] = np.nan
    settings = FEW | SHORT | {"layout.freeze": True}
    return fit(sm.TSNE(n_neighbors=20, perplexity=6, init=places, settings=settings))(folder)


WINDOWED = {
    "neighbors.method": "window",
    "neighbors.window": 5,
    "affinities.kind": "gaussian",
    "affinities.sigma": 40.0,
}
TREES = {"neighbors.method": "window", "neighbors.window": 5, "affinities.kind": "ensemble"}

LOW = {"partition.cell_points": 64, "neighbors.n_probes": 1, "neighbors.max_rounds": 0}

RUNS: dict[str, Make] = {
    "refine": eigenmaps("refine"),
    "refine-float64": eigenmaps("refine", **{"embedding.residual": 1e-7}),
    "lll": eigenmaps("lll", **{"symmetric_affinities.stored": False}),
    "lll+refine": eigenmaps("lll+refine"),
    "exact": eigenmaps("exact"),
    "variational-nystrom": eigenmaps("variational-nystrom"),
    "nystrom": eigenmaps("nystrom"),
    "le-z": eigenmaps("le-z"),
    "gaussian": eigenmaps("refine", **{"affinities.kind": "gaussian"}),
    "self-tuning": eigenmaps("refine", **{"affinities.kind": "self-tuning"}),
    "uniform": eigenmaps("refine", **{"affinities.kind": "uniform"}),
    "kmeans": eigenmaps("lll", **{"landmarks.method": "kmeans", "landmarks.snap": False}),
    "clusters": fit(sm.SpectralClustering(4, n_neighbors=20, perplexity=6, settings=FEW)),
    "diffusion": fit(sm.DiffusionMaps(2, n_neighbors=20, perplexity=6, settings=FEW)),
    "t-sne": descent(sm.TSNE),
    "t-sne-converged": fit(
        sm.TSNE(n_neighbors=20, perplexity=6, settings=FEW | {"layout.max_iterations": 1000}), lambda: points()[:1100]
    ),
    "t-sne-labels": fit(
        sm.TSNE(n_neighbors=20, perplexity=6, settings=FEW | SHORT | {"symmetric_affinities.target_weight": 0.5}),
        y=labels,
    ),
    "elastic": descent(sm.ElasticEmbedding),
    "s-sne": descent(sm.SymmetricSNE),
    "sne": descent(sm.SNE),
    "t-ee": descent(sm.StudentElasticEmbedding),
    "pulled": descent(sm.TSNE, **{"layout.global_weight": 2.0}),
    "barnes-hut": descent(sm.TSNE, **{"layout.repulsion": "barnes-hut"}),
    "fgt": descent(sm.SymmetricSNE, **{"layout.repulsion": "fgt"}),
    "exact-forces": descent(sm.TSNE, **{"layout.repulsion": "exact"}),
    "sne-weights": fit(
        sm.SNE(n_neighbors=20, perplexity=6, settings=FEW | SHORT),
        sample_weight=np.random.default_rng(1).integers(1, 5, N_POINTS).astype(float),
    ),
    "frozen": frozen,
    "epanechnikov": descent(sm.EpanechnikovElasticEmbedding),
    "cosine": fit(sm.TSNE(metric="cosine", n_neighbors=20, perplexity=6, settings=FEW | SHORT)),
    "correlation": fit(sm.LaplacianEigenmaps(2, metric="correlation", n_neighbors=20, perplexity=6, settings=FEW)),
    "hellinger": fit(
        sm.LaplacianEigenmaps(2, metric="hellinger", n_neighbors=20, perplexity=6, settings=FEW),
        lambda: np.abs(points()),
    ),
    "jaccard": fit(sm.LaplacianEigenmaps(2, metric="jaccard", n_neighbors=20, perplexity=6, settings=FEW), bits),
    "hamming": fit(sm.LaplacianEigenmaps(2, metric="hamming", n_neighbors=20, perplexity=6, settings=FEW), bits),
    "canberra": fit(
        sm.TSNE(metric="canberra", n_neighbors=20, perplexity=6, settings=SHORT | {"partition.cell_points": 64})
    ),
    "sparse": fit(
        sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, solver="lll", settings=FEW),
        lambda: sp.csr_matrix(bits().astype(np.float32)),
    ),
    "sparse-jaccard": fit(
        sm.TSNE(metric="jaccard", n_neighbors=20, perplexity=6, settings=FEW | SHORT), lambda: sp.csr_matrix(bits())
    ),
    "weights": fit(
        sm.TSNE(n_neighbors=20, perplexity=6, settings=FEW | SHORT),
        sample_weight=np.random.default_rng(1).integers(1, 5, N_POINTS).astype(float),
    ),
    "gaps-duplicates": fit(
        sm.TSNE(
            n_neighbors=20, perplexity=6, missing="leave-out", settings=FEW | SHORT | {"duplicates.tolerance": 0.0}
        ),
        with_gaps,
    ),
    "copies": fit(
        sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, settings=FEW), lambda: np.nan_to_num(with_gaps())
    ),
    "bridges": fit(sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, settings=FEW), far_apart),
    "pieces": fit(
        sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, settings=FEW | {"components.disconnected": "separate"}),
        far_apart,
    ),
    "largest": fit(
        sm.LaplacianEigenmaps(2, n_neighbors=20, perplexity=6, settings=FEW | {"components.disconnected": "largest"}),
        far_apart,
    ),
    "image": fit(sm.SpectralClustering(2, solver="exact", settings=FEW | WINDOWED), image),
    "trees": fit(sm.LaplacianEigenmaps(2, solver="exact", settings=FEW | TREES), image),
    "affinities": fit(sm.LaplacianEigenmaps(2, affinity="precomputed"), affinities),
    "lists": fit(sm.TSNE(metric="precomputed", perplexity=4, settings=SHORT), lists),
    "append": appended,
    "graph": graph,
    "graph-low": functools.partial(graph, settings=LOW),
    "graph-exact": functools.partial(graph, method="exact"),
    "pca": fit(sm.LandmarkPCA(2, n_landmarks=150)),
    "lda": fit(sm.LandmarkLDA(2, n_landmarks=150), y=labels),
    "lda-few": fit(sm.LandmarkLDA(2, n_landmarks=8), y=labels),
    "kernel-pca": fit(sm.LandmarkKernelPCA(2, n_landmarks=150)),
    "kernel-function-pca": fit(sm.KernelFunctionPCA(2, n_landmarks=60)),
    "kernel-lda": fit(sm.LandmarkKernelLDA(2, n_landmarks=150), y=labels),
    "pca-limited": fit(sm.LandmarkPCA(2, n_landmarks=150, settings={"landmark_weights.tolerance": 0.9})),
    "lle": fit(sm.LandmarkLLE(2, n_landmarks=150, n_neighbors=20)),
    "isomap": fit(sm.LandmarkIsomap(2, n_landmarks=60, n_neighbors=12)),
    "combined-isomap": fit(sm.CombinedIsomap(2, n_landmarks=60, n_neighbors=12)),
    "isomap-copies": fit(sm.LandmarkIsomap(2, n_landmarks=60), lambda: np.repeat(points()[::5], 3, axis=0)),
    "lda-far-off": fit(sm.LandmarkLDA(2, n_landmarks=150), lambda: points().astype(float) + 1e8, y=labels),
    "pca-small": fit(sm.LandmarkPCA(2, n_landmarks=150), lambda: points().astype(float) * 1e-90),
    "merged-copies": fit(
        sm.TSNE(n_neighbors=20, perplexity=10, settings=SHORT | {"duplicates.tolerance": 0.0}),
        lambda: np.repeat(points()[::4], 3, axis=0),
    ),
}
