"""Manifold learning on millions of points, out of core, with certificates of how exact the results are."""

import contextlib
import gc
import importlib
import importlib.metadata
import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from scalemani.config.methods import METHODS
from scalemani.config.objectives import OBJECTIVES

if TYPE_CHECKING:  # "as" says that a name is public
    from scalemani.interfaces.estimators.embeddings import SNE as SNE
    from scalemani.interfaces.estimators.embeddings import TSNE as TSNE
    from scalemani.interfaces.estimators.embeddings import DiffusionMaps as DiffusionMaps
    from scalemani.interfaces.estimators.embeddings import ElasticEmbedding as ElasticEmbedding
    from scalemani.interfaces.estimators.embeddings import EpanechnikovElasticEmbedding as EpanechnikovElasticEmbedding
    from scalemani.interfaces.estimators.embeddings import LaplacianEigenmaps as LaplacianEigenmaps
    from scalemani.interfaces.estimators.embeddings import SpectralClustering as SpectralClustering
    from scalemani.interfaces.estimators.embeddings import StudentElasticEmbedding as StudentElasticEmbedding
    from scalemani.interfaces.estimators.embeddings import SymmetricSNE as SymmetricSNE
    from scalemani.interfaces.estimators.running import append as append
    from scalemani.interfaces.estimators.running import transform as transform
    from scalemani.interfaces.estimators.transformers import KNeighborsTransformer as KNeighborsTransformer
    from scalemani.interfaces.estimators.transformers import KnnGraph as KnnGraph
    from scalemani.interfaces.estimators.transformers import knn_graph as knn_graph
    from scalemani.interfaces.functions import measures as measures
    from scalemani.interfaces.functions.landmarks import Landmarks as Landmarks
    from scalemani.interfaces.functions.landmarks import landmark_weights as landmark_weights
    from scalemani.interfaces.functions.landmarks import select_landmarks as select_landmarks
    from scalemani.interfaces.functions.mixed import mixed_affinities as mixed_affinities
    from scalemani.interfaces.functions.nonlinear import Minimum as Minimum
    from scalemani.interfaces.functions.nonlinear import minimize as minimize
    from scalemani.interfaces.functions.nonlinear import objective as objective
    from scalemani.interfaces.functions.nonlinear import repulsion as repulsion
    from scalemani.interfaces.functions.spectral import Affinities as Affinities
    from scalemani.interfaces.functions.spectral import entropic_affinities as entropic_affinities
    from scalemani.interfaces.functions.spectral import gaussian_affinities as gaussian_affinities
    from scalemani.interfaces.functions.spectral import reduce_laplacian as reduce_laplacian
    from scalemani.interfaces.functions.spectral import self_tuning_affinities as self_tuning_affinities
    from scalemani.interfaces.functions.spectral import solve_reduced as solve_reduced
    from scalemani.interfaces.functions.spectral import symmetric_affinities as symmetric_affinities
    from scalemani.interfaces.report.opened import open_run as open_run
    from scalemani.interfaces.tuning.growth import GrownLandmarks as GrownLandmarks
    from scalemani.interfaces.tuning.growth import grow_landmarks as grow_landmarks
    from scalemani.interfaces.tuning.landmarks import LandmarkQuality as LandmarkQuality
    from scalemani.interfaces.tuning.landmarks import compare_landmarks as compare_landmarks
    from scalemani.interfaces.tuning.search import Tuning as Tuning
    from scalemani.interfaces.tuning.tune import tune as tune
    from scalemani.methods.affinity_orders.interface import OrderLengths as OrderLengths
    from scalemani.methods.affinity_orders.interface import affinities_in_order as affinities_in_order
    from scalemani.methods.affinity_orders.interface import affinity_order as affinity_order
    from scalemani.methods.affinity_orders.interface import order_lengths as order_lengths
    from scalemani.methods.determinantal.interface import DeterminantalDraw as DeterminantalDraw
    from scalemani.methods.determinantal.interface import determinantal_draw as determinantal_draw
    from scalemani.methods.fast_gauss.interface import RepulsionBound as RepulsionBound
    from scalemani.methods.fast_gauss.interface import repulsion_bound as repulsion_bound
    from scalemani.methods.gaussian_process.interface import LandmarkFeatures as LandmarkFeatures
    from scalemani.methods.gaussian_process.interface import landmark_features as landmark_features
    from scalemani.methods.isomap.interface import CombinedIsomap as CombinedIsomap
    from scalemani.methods.isomap.interface import LandmarkIsomap as LandmarkIsomap
    from scalemani.methods.kernel_lda.interface import LandmarkKernelLDA as LandmarkKernelLDA
    from scalemani.methods.kernel_pca.interface import KernelFunctionPCA as KernelFunctionPCA
    from scalemani.methods.kernel_pca.interface import LandmarkKernelPCA as LandmarkKernelPCA
    from scalemani.methods.landmark_graph.interface import continue_eigenvectors as continue_eigenvectors
    from scalemani.methods.lda.interface import LandmarkLDA as LandmarkLDA
    from scalemani.methods.lle.interface import LandmarkLLE as LandmarkLLE
    from scalemani.methods.pair_weights.interface import objective_of_pairs as objective_of_pairs
    from scalemani.methods.pca.interface import LandmarkPCA as LandmarkPCA
    from scalemani.runs.aligning import Alignment as Alignment
    from scalemani.runs.aligning import align as align
    from scalemani.runs.appending import Grown as Grown
    from scalemani.runs.opened import Run as Run

    __version__: str

# Names are imported when they are first used: the command line and workers then load only what they need.
PUBLIC_NAMES = {
    "interfaces.estimators.embeddings": (
        "DiffusionMaps",
        "LaplacianEigenmaps",
        "SpectralClustering",
        *(objective.estimator for objective in OBJECTIVES.values()),
    ),
    "interfaces.estimators.running": ("append", "transform"),
    "interfaces.estimators.transformers": (
        "KNeighborsTransformer",
        "KnnGraph",
        "knn_graph",
    ),
    "interfaces.tuning.growth": ("GrownLandmarks", "grow_landmarks"),
    "interfaces.tuning.landmarks": ("LandmarkQuality", "compare_landmarks"),
    "interfaces.functions.landmarks": (
        "Landmarks",
        "landmark_weights",
        "select_landmarks",
    ),
    "interfaces.functions.mixed": ("mixed_affinities",),
    "interfaces.functions.nonlinear": ("Minimum", "minimize", "objective", "repulsion"),
    "interfaces.functions.spectral": (
        "Affinities",
        "entropic_affinities",
        "gaussian_affinities",
        "reduce_laplacian",
        "self_tuning_affinities",
        "solve_reduced",
        "symmetric_affinities",
    ),
    "interfaces.report.opened": ("open_run",),
    "runs.aligning": ("Alignment", "align"),
    "runs.appending": ("Grown",),
    "runs.opened": ("Run",),
    "interfaces.tuning.search": ("Tuning",),
    "interfaces.tuning.tune": ("tune",),
    **{f"methods.{method}.interface": names for method, names in METHODS.items()},
}
MODULE_OF = {name: module for module, names in PUBLIC_NAMES.items() for name in names}
PUBLIC_MODULES = {"measures": "interfaces.functions.measures"}

__all__ = sorted([*MODULE_OF, *PUBLIC_MODULES])


if not TYPE_CHECKING:  # to whom any name would be one that the module has

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return importlib.metadata.version("scalemani")
        if name in PUBLIC_MODULES:
            return _load(f"scalemani.{PUBLIC_MODULES[name]}")
        if name not in MODULE_OF:
            meant = _load("scalemani.config.other_names").class_here(name)
            if name.endswith(("Error", "Warning")):
                meant = f": errors and warnings are in scalemani.errors{meant}"
            raise AttributeError(f"module 'scalemani' has no attribute {name!r}{meant}; it has {', '.join(__all__)}")
        return getattr(_load(f"scalemani.{MODULE_OF[name]}"), name)


def _load(module: str) -> ModuleType:
    """Import a module whole: Ctrl-C comes once all is loaded, and what fails on the way can be repeated.

    Garbage is not collected meanwhile: modules leave little of it.
    """
    before, collecting = set(sys.modules), gc.isenabled()
    gc.disable()
    try:
        with _interrupted_later():
            return importlib.import_module(module)
    except BaseException:
        # Python forgets a package whose import fails and not the modules below it, which no import joins to it again.
        for name in sorted(set(sys.modules) - before):  # parents come before what is below them
            if "." in name and name.rpartition(".")[0] not in sys.modules:
                del sys.modules[name]
        raise
    finally:
        if collecting:
            gc.enable()


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
