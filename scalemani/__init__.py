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

if TYPE_CHECKING:
    from scalemani.interfaces.estimators.embeddings import (
        SNE,
        TSNE,
        DiffusionMaps,
        ElasticEmbedding,
        EpanechnikovElasticEmbedding,
        LaplacianEigenmaps,
        SpectralClustering,
        StudentElasticEmbedding,
        SymmetricSNE,
    )
    from scalemani.interfaces.estimators.running import append, transform
    from scalemani.interfaces.estimators.transformers import (
        KNeighborsTransformer,
        KnnGraph,
        LandmarkFeatures,
        knn_graph,
        landmark_features,
    )
    from scalemani.interfaces.functions import measures
    from scalemani.interfaces.functions.landmarks import (
        Landmarks,
        landmark_weights,
        select_landmarks,
    )
    from scalemani.interfaces.functions.mixed import mixed_affinities
    from scalemani.interfaces.functions.nonlinear import Minimum, minimize, objective, repulsion
    from scalemani.interfaces.functions.spectral import (
        Affinities,
        entropic_affinities,
        gaussian_affinities,
        reduce_laplacian,
        self_tuning_affinities,
        solve_reduced,
        symmetric_affinities,
    )
    from scalemani.interfaces.report.opened import open_run
    from scalemani.interfaces.tuning.landmarks import LandmarkQuality, compare_landmarks
    from scalemani.interfaces.tuning.search import Tuning
    from scalemani.interfaces.tuning.tune import tune
    from scalemani.methods.fast_gauss.interface import RepulsionBound, repulsion_bound
    from scalemani.methods.isomap.interface import LandmarkIsomap
    from scalemani.methods.kernel_lda.interface import LandmarkKernelLDA
    from scalemani.methods.kernel_pca.interface import LandmarkKernelPCA
    from scalemani.methods.lda.interface import LandmarkLDA
    from scalemani.methods.lle.interface import LandmarkLLE
    from scalemani.methods.pca.interface import LandmarkPCA
    from scalemani.runs.aligning import Alignment, align
    from scalemani.runs.appending import Grown
    from scalemani.runs.opened import Run

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
        "LandmarkFeatures",
        "knn_graph",
        "landmark_features",
    ),
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


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("scalemani")
    if name in PUBLIC_MODULES:
        return _load(f"scalemani.{PUBLIC_MODULES[name]}")
    if name not in MODULE_OF:
        raise AttributeError(f"module 'scalemani' has no attribute {name!r}; it has {', '.join(__all__)}")
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
