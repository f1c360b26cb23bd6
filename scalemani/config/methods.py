"""The methods that have a folder in `scalemani/methods`, one line a method, and what they add to choices.

A folder's `__init__` lists in `EXTENSIONS` what the method adds: one object for each name of a choice, of the kinds
below. They are plain data, and name no library; `load` imports what does the work when it is needed. What it returns
implements a protocol of the floor that uses it. `extensions` finds what methods add, and nothing else does.

A stage of a method is a module of the stage's name in the method's folder, as stages that several methods share are
modules of `scalemani/stages`. The `interface` of a folder has what `import scalemani` offers.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from scalemani.config.stages import Names, Route

METHODS_PACKAGE = "scalemani.methods"
# The folder of each method, and the public names in its `interface`.
METHODS: dict[str, tuple[str, ...]] = {
    "pca": ("LandmarkPCA",),
    "kernel_pca": ("KernelFunctionPCA", "LandmarkKernelPCA"),
    "kernel_lda": ("LandmarkKernelLDA",),
    "lle": ("LandmarkLLE",),
    "isomap": ("CombinedIsomap", "LandmarkIsomap"),
    "lda": ("LandmarkLDA",),
    "barnes_hut": (),
    "determinantal": ("DeterminantalDraw", "determinantal_draw"),
    "gaussian_process": ("LandmarkFeatures", "landmark_features"),
    "fast_gauss": ("RepulsionBound", "repulsion_bound"),
    "affinity_orders": ("OrderLengths", "affinities_in_order", "affinity_order", "order_lengths"),
    "pixels": (),
    "variational": (),
    "landmark_graph": ("continue_eigenvectors",),
    "pair_weights": ("objective_of_pairs",),
    "partial_hessian": (),
}


@dataclass(frozen=True)
class Extension:
    """What a method adds to a choice under a name."""

    name: str


Kind = TypeVar("Kind", bound=Extension)
Load = Callable[[], Any]


@dataclass(frozen=True)
class MethodRoute(Extension):
    """A method of the command line, and its stages."""

    route: Route


@dataclass(frozen=True)
class TableExtension(Extension):
    """The parameters of a stage of the name: a dataclass."""

    load: Load


@dataclass(frozen=True)
class FieldsExtension(Extension):
    """More parameters in the table of a stage that several methods share: a dataclass."""

    load: Load
    stage: str


@dataclass(frozen=True)
class ArgumentExtension(Extension):
    """An argument of estimators, and the setting that it is."""

    setting: str


@dataclass(frozen=True)
class MeaningsExtension(Extension):
    """What certificates of a stage mean: a dictionary of `interfaces.report.certificates.Meaning`."""

    load: Load


@dataclass(frozen=True)
class CheckExtension(Extension):
    """How an audit checks what a stage claims, of its name where it says none: a `Check` of `audit.verifying`."""

    load: Load
    stage: str = ""


@dataclass(frozen=True)
class PlacementExtension(Extension):
    """How new points of runs with a stage are placed: a `PlacerOf` of `runs.new_points.placements`."""

    load: Load


@dataclass(frozen=True)
class LandmarkExtension(Extension):
    """A rule of landmarks, of `landmarks.method`: a `PlannedRule` of `stages.landmarks`.

    `off_data` says that its landmarks are no points, `sampled` that it reads landmarks.sample_points, and `one_by_one`
    that each landmark takes so long that the progress counts them.
    """

    load: Load
    off_data: bool = False
    sampled: bool = False
    one_by_one: bool = False


@dataclass(frozen=True)
class RepulsionExtension(Extension):
    """Sums of repulsion, of `layout.repulsion`: `ApproximateSums` of `kernels.repulsion.pair_sums`.

    `kernels` are those that it sums; `argument` of `sm.repulsion` decides the sums in place of a tolerance;
    `finer` says that it is tried where the mesh does not meet a tolerance and exact sums take too long.
    """

    load: Load
    kernels: Names
    argument: str
    finer: bool = False


@dataclass(frozen=True)
class DescentExtension(Extension):
    """What a method adds to the descents that want it: a class of `DescentPart` of `descents.parts`.

    `directions` are those of `layout.direction` that it makes.
    """

    load: Load
    wanted: Callable[[Any], bool]
    directions: Names = ()


@dataclass(frozen=True)
class OrderExtension(Extension):
    """An order of rows, of `affinities.order`: a `RowOrder` of `kernels.affinities.entropic`.

    `by_graph` says that it needs the neighbours of the rows.
    """

    load: Load
    by_graph: bool = False


@dataclass(frozen=True)
class PixelsExtension(Extension):
    """Neighbours of a pixel by their places, of `neighbors.method`: no lists are stored, and W is made of the pixels.

    A module that is a `PixelNeighbors` of `config.params.tables`, a `FollowedPixels` of `runs.preprocessing.following`
    and, of kinds that have no `PixelAffinitiesExtension`, a `ComputedAffinities` of `stages.arrays.affinities`.
    """

    load: Load


@dataclass(frozen=True)
class PixelAffinitiesExtension(Extension):
    """A kind of affinities that pixels alone have, of `affinities.kind`: `PixelAffinities` of the same module."""

    load: Load


@dataclass(frozen=True)
class SolverExtension(Extension):
    """A spectral solver with a separate route, of `embedding.solver`: a `SpectralSolver` of `stages.embedding`.

    `by_weights` says that it places points by Z.
    """

    load: Load
    route: Route
    by_weights: bool = True


@dataclass(frozen=True)
class ReductionExtension(Extension):
    """A solver that computes Z in place of `landmark_weights`: a `Reduction` of `engine.sizes`."""

    load: Load
    stages: Route


def package_of(method: str) -> str:
    """Return the dotted name of a method's folder."""
    return f"{METHODS_PACKAGE}.{method}"


@functools.cache
def all_extensions() -> tuple[Extension, ...]:
    """Return what all methods add, in the order of METHODS."""
    modules = [importlib.import_module(package_of(method)) for method in METHODS]
    return tuple(one for module in modules for one in module.EXTENSIONS)


def extensions(kind: type[Kind]) -> Mapping[str, Kind]:
    """Return what methods add of a kind, by name."""
    return {one.name: one for one in all_extensions() if isinstance(one, kind)}
