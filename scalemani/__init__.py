"""Manifold learning on millions of points, out of core, with a certificate for every approximation."""

import contextlib
import importlib
import importlib.metadata
import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from scalemani.objectives import OBJECTIVES

if TYPE_CHECKING:
    from scalemani.estimators import DiffusionMaps, KnnGraph, LaplacianEigenmaps, SpectralClustering, knn_graph
    from scalemani.estimators.by_landmarks import (
        LandmarkIsomap,
        LandmarkKernelLDA,
        LandmarkKernelPCA,
        LandmarkLDA,
        LandmarkLLE,
        LandmarkPCA,
    )
    from scalemani.estimators.features import LandmarkFeatures, landmark_features
    from scalemani.estimators.neighbors import KNeighborsTransformer
    from scalemani.estimators.nonlinear import SNE, TSNE, ElasticEmbedding, SymmetricSNE
    from scalemani.estimators.transforming import append, transform
    from scalemani.functions import measures
    from scalemani.functions.affinities import Affinities, entropic_affinities
    from scalemani.functions.bandwidths import gaussian_affinities, self_tuning_affinities
    from scalemani.functions.landmark_comparison import LandmarkQuality, compare_landmarks
    from scalemani.functions.landmark_geometry import landmark_covariances, nystrom_eigenmaps
    from scalemani.functions.landmarks import Landmarks, landmark_weights, select_landmarks
    from scalemani.functions.minimizers import Minimum, minimize
    from scalemani.functions.nonlinear import objective, repulsion
    from scalemani.functions.repulsion_bounds import RepulsionBound, repulsion_bound
    from scalemani.functions.spectral import reduce_laplacian, solve_reduced, symmetric_affinities
    from scalemani.functions.variational import variational_nystrom
    from scalemani.report.opened import open_run
    from scalemani.runs.opened import Run
    from scalemani.runs.several.aligning import Alignment, align
    from scalemani.runs.several.appending import Grown
    from scalemani.tuning.results import Tuning
    from scalemani.tuning.tune import tune

# Names are imported when they are first used: the command line and workers then load only what they need.
PUBLIC_NAMES = {
    "estimators": ("DiffusionMaps", "KnnGraph", "LaplacianEigenmaps", "SpectralClustering", "knn_graph"),
    "estimators.neighbors": ("KNeighborsTransformer",),
    "estimators.features": ("LandmarkFeatures", "landmark_features"),
    "estimators.nonlinear": tuple(objective.estimator for objective in OBJECTIVES.values()),
    "estimators.by_landmarks": (
        "LandmarkIsomap",
        "LandmarkKernelLDA",
        "LandmarkKernelPCA",
        "LandmarkLDA",
        "LandmarkLLE",
        "LandmarkPCA",
    ),
    "estimators.transforming": ("append", "transform"),
    "functions.affinities": ("Affinities", "entropic_affinities"),
    "functions.bandwidths": ("gaussian_affinities", "self_tuning_affinities"),
    "functions.landmark_comparison": ("LandmarkQuality", "compare_landmarks"),
    "functions.landmark_geometry": ("landmark_covariances", "nystrom_eigenmaps"),
    "functions.landmarks": ("Landmarks", "landmark_weights", "select_landmarks"),
    "functions.minimizers": ("Minimum", "minimize"),
    "functions.nonlinear": ("objective", "repulsion"),
    "functions.repulsion_bounds": ("RepulsionBound", "repulsion_bound"),
    "functions.spectral": ("reduce_laplacian", "solve_reduced", "symmetric_affinities"),
    "functions.variational": ("variational_nystrom",),
    "report.opened": ("open_run",),
    "runs.several.aligning": ("Alignment", "align"),
    "runs.several.appending": ("Grown",),
    "runs.opened": ("Run",),
    "tuning.results": ("Tuning",),
    "tuning.tune": ("tune",),
}
MODULE_OF = {name: module for module, names in PUBLIC_NAMES.items() for name in names}
PUBLIC_MODULES = {"measures": "functions.measures"}

__all__ = sorted([*MODULE_OF, *PUBLIC_MODULES])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("scalemani")
    if name in PUBLIC_MODULES:
        return _load(f"scalemani.{PUBLIC_MODULES[name]}")
    if name not in MODULE_OF:
        raise AttributeError(f"module 'scalemani' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(_load(f"scalemani.{MODULE_OF[name]}"), name)


def _load(module: str) -> ModuleType:
    """Import a module whole: Ctrl-C comes once all is loaded, and what fails on the way can be repeated."""
    before = set(sys.modules)
    try:
        with _interrupted_later():
            return importlib.import_module(module)
    except BaseException:
        # Python forgets a package whose import fails and not the modules below it, which no import joins to it again.
        for name in sorted(set(sys.modules) - before):  # parents come before what is below them
            if "." in name and name.rpartition(".")[0] not in sys.modules:
                del sys.modules[name]
        raise


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Put off SIGINT until the end, where Python's own handler has it: it would leave packages half loaded."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if received:
        raise KeyboardInterrupt


def __dir__() -> list[str]:
    return __all__
