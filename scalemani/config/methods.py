"""The methods that have a folder of their own in `scalemani/methods`: one line a method.

A folder's `__init__.py` declares as plain data what the method adds to routes (`ROUTES`), and to choices by name: rules
of landmarks (`LANDMARK_RULES`, and which of them are `OFF_DATA`, found `ONE_BY_ONE`, or `SAMPLED`: those that read
landmarks.sample_points), sums of repulsion (`REPULSIONS`, and `SUMS_BY_NUMBER` of their own parameters), solvers of the
spectral embedding (`SOLVERS`, and their `SOLVER_ROUTES`; `REDUCTIONS`, with `WEIGHTS_STAGES` that make Z for them),
kinds of affinities between pixels (`AFFINITY_KINDS`), orders of rows (`AFFINITY_ORDERS`). What else it provides is
loaded when it is needed, by the name of a module: one a stage, with the arrays that it stores and what it checks before
work starts; `parameters`; `new_points`; `interface`, with what `import scalemani` offers and the meanings of
certificates. What a method has no use for, it leaves out.
"""

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import Any

METHODS_PACKAGE = "scalemani.methods"
# The folder of each method, and the public names in its `interface`.
METHODS: dict[str, tuple[str, ...]] = {
    "pca": ("LandmarkPCA",),
    "kernel_pca": ("LandmarkKernelPCA",),
    "kernel_lda": ("LandmarkKernelLDA",),
    "lle": ("LandmarkLLE",),
    "isomap": ("LandmarkIsomap",),
    "lda": ("LandmarkLDA",),
    "barnes_hut": (),
    "determinantal": (),
    "gaussian_process": (),
    "fast_gauss": ("RepulsionBound", "repulsion_bound"),
    "affinity_orders": (),
    "pixels": (),
    "variational": (),
    "landmark_graph": (),
}


def package_of(method: str) -> str:
    """Return the dotted name of a method's folder."""
    return f"{METHODS_PACKAGE}.{method}"


@functools.cache
def part_of(package: str, part: str) -> ModuleType | None:
    """Return a module of a method's folder; None where it has none, and for packages that are no method's folder."""
    if not package.startswith(f"{METHODS_PACKAGE}.") or importlib.util.find_spec(f"{package}.{part}") is None:
        return None
    return importlib.import_module(f"{package}.{part}")


def provided(package: str, part: str, name: str) -> Any:
    """Return what a module of a method's folder defines under a name; None where it does not."""
    return getattr(part_of(package, part), name, None)


def merged(part: str, name: str) -> dict[str, Any]:
    """Return the dictionaries that modules `part` of all methods define under a name, in one."""
    return {key: value for method in METHODS for key, value in (provided(package_of(method), part, name) or {}).items()}


def declarations() -> list[ModuleType]:
    """Return the folders' own modules, which declare stages and routes."""
    return [importlib.import_module(package_of(method)) for method in METHODS]


@functools.cache
def declared(table: str) -> dict[str, str]:
    """Return what the folders' own modules declare under a name: dotted names of functions and classes, by theirs."""
    return {
        name: f"{module.__name__}.{place}"
        for module in declarations()
        for name, place in getattr(module, table, {}).items()
    }


@functools.cache
def listed(table: str) -> tuple[Any, ...]:
    """Return the names, or stages, that the folders' own modules list under a name."""
    return tuple(name for module in declarations() for name in getattr(module, table, ()))


def load(table: str, name: str) -> Any:
    """Return a function or class that a method declares in a table."""
    module, _, own = declared(table)[name].rpartition(".")
    return getattr(importlib.import_module(module), own)


def beside(table: str, name: str, other: str) -> Any:
    """Return what the module defines under another name that has what a table names; None where it does not."""
    if name not in declared(table):
        return None
    return getattr(importlib.import_module(declared(table)[name].rpartition(".")[0]), other, None)
