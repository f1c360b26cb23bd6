"""What parameters are called in other libraries, and what they are called here: plain data.

`OTHER_NAMES` has names of scikit-learn, openTSNE, umap, PHATE and megaman that are no names of ours, `OTHER_VALUES`
what these write for values of a parameter, `OTHER_METHODS` and `OTHER_CLASSES` what they call methods and classes.
"""

import difflib
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from scalemani.errors import LONGEST_NAME, ConfigError, nearest_name

MISSPELT = 0.85  # similarity of letters: less have different values, such as the metrics manhattan and hamming


class Ours(NamedTuple):
    """A parameter by its name in --set, an argument and option that no result depends on, a value; how it differs."""

    name: str
    note: str = ""


SIGMA, FORCES, REPULSION = "affinities.sigma", "layout.tolerance", "layout.repulsion"
WORKERS = Ours("workers", "None takes all processors")
ITERATIONS = Ours("layout.max_iterations", "counts all iterations")
LOOSER = Ours(
    "layout.late_exaggeration", "above 1 for tighter clusters, about 4 resembles umap; a dof below 1 for finer ones"
)
OTHER_NAMES: Mapping[str, Ours] = {
    "n_jobs": WORKERS,
    "n_threads": WORKERS,
    "num_threads": WORKERS,
    "seed": Ours("seed"),
    "n_iter": ITERATIONS,
    "n_epochs": ITERATIONS,
    "early_exaggeration_iter": Ours("layout.exaggerated_iterations"),
    "n_iter_early_exag": Ours("layout.exaggerated_iterations"),
    "n_iter_without_progress": Ours("layout.window"),
    "min_grad_norm": Ours("layout.converged"),
    "angle": Ours(FORCES, "a relative error of the forces"),
    "theta": Ours(FORCES, "a relative error of the forces"),
    "negative_gradient_method": Ours(REPULSION),
    "initialization": Ours("layout.init"),
    "initial_momentum": Ours("layout.exaggerated_momentum"),
    "final_momentum": Ours("layout.momentum"),
    "repulsion_strength": Ours("layout.strength"),
    "min_dist": LOOSER,
    "spread": LOOSER,
    "callbacks_every_iters": Ours("callbacks_every"),
    "gamma": Ours(SIGMA, "gamma = 1 / (2 sigma^2)"),
    "epsilon": Ours(SIGMA, "affinities are exp(-d^2 / (2 sigma^2))"),
    "kernel": Ours("affinities.kind"),
    "assign_labels": Ours("clustering.n_restarts", "labels are by k-means"),
    "n_init": Ours("clustering.n_restarts"),
    "eigen_solver": Ours("embedding.solver"),
    "svd_solver": Ours("embedding.solver"),
    "eigen_tol": Ours("embedding.residual"),
    "algorithm": Ours("neighbors.method"),
    "neighbors_algorithm": Ours("neighbors.method"),
    "target_metric": Ours("symmetric_affinities.target_weight", "labels are classes"),
    "knn": Ours("neighbors.n_neighbors"),
    "k": Ours("neighbors.n_neighbors"),
    "t": Ours("diffusion_coordinates.time"),
    "dim": Ours("landmark_embedding.n_components"),
    "n_dims": Ours("landmark_embedding.n_components"),
    "knn_dist": Ours("points.metric"),
    "n_landmark": Ours("landmarks.n_landmarks"),
}

# Names of ours elsewhere, which stand for another parameter where an estimator descends an objective.
NAMES_OF_DESCENTS: Mapping[str, Ours] = {"method": Ours(REPULSION, "barnes-hut or exact; auto follows the points")}

EQUAL_WEIGHTS = "all neighbours weigh the same"
PAIRS, SEARCH = "distances of all pairs", "chooses a search, and measures its recall; pynndescent is another"
RESIDUALS = "to embedding.residual, by default 1e-4"
SPHERE = "inner products are cosines where rows have unit length"
OTHER_VALUES: Mapping[str, Mapping[str, Ours]] = {  # by parameter; in small letters, without what joins their words
    "points.metric": {
        **dict.fromkeys(("sqeuclidean", "squaredl2", "l2sqr"), Ours("euclidean", "neighbours are the same")),
        **dict.fromkeys(("cos", "angular", "angle"), Ours("cosine")),
        **dict.fromkeys(("ip", "dot", "dotproduct", "innerproduct"), Ours("cosine", SPHERE)),
        "seuclidean": Ours("euclidean", "of columns that you divide by their standard deviations"),
    },
    "neighbors.method": {
        **dict.fromkeys(("brute", "bruteforce", "flat", "kdtree", "balltree"), Ours("exact", PAIRS)),
        **dict.fromkeys(("approx", "approximate", "annoy", "hnsw", "ivf", "faiss"), Ours("auto", SEARCH)),
        **dict.fromkeys(("nndescent", "umap"), Ours("pynndescent")),
    },
    "affinities.kind": {
        **dict.fromkeys(("rbf", "heat", "gauss"), Ours("gaussian", "its width is affinities.sigma")),
        **dict.fromkeys(("nearestneighbors", "knn", "connectivity"), Ours("uniform", EQUAL_WEIGHTS)),
        "precomputednearestneighbors": Ours("uniform", f"{EQUAL_WEIGHTS}; points.metric=precomputed takes distances"),
        "perplexity": Ours("entropic"),
    },
    "landmarks.method": {
        **dict.fromkeys(("uniform", "sample"), Ours("random")),
        **dict.fromkeys(("maxmin", "farthest", "fps"), Ours("minmax")),
    },
    "embedding.solver": {
        **dict.fromkeys(("arpack", "lobpcg", "amg", "randomized"), Ours("refine", RESIDUALS)),
        **dict.fromkeys(("dense", "full"), Ours("exact", "by a sparse solver in memory")),
    },
    "layout.init": dict.fromkeys(("laplacian", "eigenmaps", "tswspectral"), Ours("spectral")),
    REPULSION: {
        "bh": Ours("barnes-hut"),
        **dict.fromkeys(("fft", "interpolation", "interp", "fitsne"), Ours("grid", "a particle mesh by FFT")),
    },
}

NO_UMAP = "UMAP is no method here, and this is the nearest"
OF_A_GRAPH = "the nearest; scanpy's Leiden takes the graph that an export into its .h5ad adds"
OTHER_METHODS: Mapping[str, Ours] = {  # in small letters, without what joins their words
    "umap": Ours("t-sne", NO_UMAP),
    **dict.fromkeys(("tsne", "opentsne", "fitsne", "bhtsne"), Ours("t-sne")),
    "ssne": Ours("s-sne"),
    "ee": Ours("elastic-embedding"),
    **dict.fromkeys(("spectral", "le", "spectralembedding", "laplacian"), Ours("laplacian-eigenmaps")),
    **dict.fromkeys(("diffmap", "dm", "phate"), Ours("diffusion-maps")),
    "lle": Ours("locally-linear-embedding"),
    "kpca": Ours("kernel-pca"),
    "mds": Ours("pca", "classical scaling of straight distances; isomap has those along the graph"),
    **dict.fromkeys(("knn", "neighbors", "graph"), Ours("knn-graph")),
    **dict.fromkeys(("leiden", "louvain"), Ours("spectral-clustering", OF_A_GRAPH)),
    **dict.fromkeys(("clustering", "spectralcluster", "clusters"), Ours("spectral-clustering")),
}
OTHER_CLASSES: Mapping[str, Ours] = {
    "UMAP": Ours("TSNE", NO_UMAP),
    "SpectralEmbedding": Ours("LaplacianEigenmaps"),
    "DiffusionMap": Ours("DiffusionMaps"),
    "PHATE": Ours("DiffusionMaps"),
    "PCA": Ours("LandmarkPCA"),
    "KernelPCA": Ours("LandmarkKernelPCA"),
    "LinearDiscriminantAnalysis": Ours("LandmarkLDA"),
    "Isomap": Ours("LandmarkIsomap"),
    "LocallyLinearEmbedding": Ours("LandmarkLLE"),
    "Nystroem": Ours("LandmarkFeatures"),
    "NNDescent": Ours("knn_graph"),
    "NearestNeighbors": Ours("knn_graph"),
}


def letters_of(name: str) -> str:
    """Return a name in small letters, without what joins its words."""
    return re.sub(r"[-_ ]", "", name).lower()


def method_here(name: object) -> Ours | None:
    """Return what a method of another library is called here, however it is written; None for any other name."""
    return OTHER_METHODS.get(letters_of(name)) if isinstance(name, str) else None


def value_instead(parameter: str, value: object, allowed: Collection[str]) -> str:
    """Return what a value of a parameter that is not among the allowed ones is called here, or the nearest; else ""."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME:
        return ""
    if ours := OTHER_VALUES.get(parameter, {}).get(letters_of(value)):
        return with_note(repr(ours.name), ours)
    close = difflib.get_close_matches(value.casefold(), allowed, n=1, cutoff=MISSPELT)
    return f"did you mean {close[0]!r}?" if close else ""


def class_here(name: str) -> str:
    """Return the part of a message that says what a class of another library is called here; empty for others."""
    return f": {with_note(OTHER_CLASSES[name].name, OTHER_CLASSES[name])}" if name in OTHER_CLASSES else ""


def check_method(name: object, allowed: Collection[str]) -> None:
    """Refuse a method that is not among the allowed ones: say what it is called here, or the nearest."""
    if not isinstance(name, str) or name not in allowed:
        ours = method_here(name)
        meant = f"{with_note(ours.name, ours)}; allowed: {', '.join(sorted(allowed))}" if ours else ""
        raise ConfigError(f"unknown method {name!r}: {meant or nearest_name(name, allowed)}")


def name_here(name: object) -> Ours | None:
    """Return what a name of another library is called here, however its words are joined; None for any other name."""
    return OTHER_NAMES.get(name.replace("-", "_").lower()) if isinstance(name, str) else None


def with_note(word: str, ours: Ours) -> str:
    """Return how a parameter is written where users request it, with how it differs from that of another library."""
    return f"here it is {word}" + f" ({ours.note})" * bool(ours.note)


def check_setting(
    name: object, allowed: Collection[str], problem: str, arguments: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse a name that is not among the allowed ones: state the problem, and what is meant here, or the nearest.

    `arguments` has the names of parameters that are called otherwise among the allowed ones.
    """
    if isinstance(name, str) and name in allowed:
        return
    ours = name_here(name.rpartition(".")[2]) if isinstance(name, str) else None
    word = arguments.get(ours.name, ours.name) if ours else ""
    raise ConfigError(
        f"{problem}: {with_note(word, ours) if ours and word in allowed else nearest_name(name, allowed)}"
    )
