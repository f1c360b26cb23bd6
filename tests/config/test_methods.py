"""The registry of methods: a line each, and nothing of a method is loaded before it is needed."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import scalemani as sm
from scalemani.config.methods import (
    METHODS,
    CheckExtension,
    DescentExtension,
    FieldsExtension,
    LandmarkExtension,
    MeaningsExtension,
    MethodRoute,
    OrderExtension,
    PixelAffinitiesExtension,
    PixelsExtension,
    PlacementExtension,
    ReductionExtension,
    RepulsionExtension,
    SolverExtension,
    TableExtension,
    all_extensions,
    extensions,
    package_of,
)
from scalemani.config.routes import PACKAGES, ROUTES

FOLDER = Path(sm.__file__).parent / "methods"
PARTS = {
    "parameters",
    "new_points",
    "interface",
    "kernels",
    "joint",
    "rules",
    "solver",
    "invariants",
    "audit",
    "window",
    "ensemble",
}
PROBE = """
import sys
{}
print(*(name for name in sys.modules if name.startswith("scalemani.methods.")))
print(*(name for name in ("numpy", "pydantic", "dask", "zarr") if name in sys.modules))
"""


def loaded_by(code: str) -> tuple[set[str], set[str]]:
    """Return the modules of methods that code loads, and the libraries."""
    done = subprocess.run([sys.executable, "-c", PROBE.format(code)], capture_output=True, text=True, check=True)
    own, libraries = done.stdout.split("\n")[:2]
    return set(own.split()), set(libraries.split())


def test_every_folder_is_listed_and_adds_something():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(METHODS)
    assert all(importlib.import_module(package_of(method)).EXTENSIONS for method in METHODS)


def test_every_route_of_a_method_has_stages_of_its_own():
    for name, method in extensions(MethodRoute).items():
        assert ROUTES[name] == method.route
        assert any(stage.package.startswith("scalemani.methods.") for stage in method.route)


@pytest.mark.parametrize("method", METHODS)
def test_every_module_of_a_folder_is_a_part_that_others_load_or_a_stage(method):
    stages = {stage for stage, package in PACKAGES.items() if package == package_of(method)}
    modules = {path.stem for path in (FOLDER / method).iterdir() if not path.name.startswith("__")}
    assert modules - PARTS == stages
    assert all(hasattr(sm, name) and name in sm.__all__ for name in METHODS[method])


# What an extension of each kind loads has these, as its protocol says.
PARTS_OF = {
    LandmarkExtension: ("select", "memory", "check"),
    RepulsionExtension: ("for_tolerance", "by_number", "field"),
    OrderExtension: ("__call__",),
    DescentExtension: ("check_parameters", "held", "prepared", "direction", "certificates"),
    PixelsExtension: (
        *("takes_image", "image", "n_neighbors", "follow_image"),
        *("stored_nonzeros", "memory", "write", "stored_rows"),
    ),
    PixelAffinitiesExtension: ("stored_nonzeros", "memory", "write"),
    FieldsExtension: (),
    SolverExtension: ("memory", "disk", "run", "landmark_map"),
    ReductionExtension: ("weight_entries",),
    PlacementExtension: ("__call__",),
    MeaningsExtension: (),
    CheckExtension: ("__call__",),
    TableExtension: (),
}


@pytest.mark.parametrize("kind", PARTS_OF)
def test_what_methods_add_to_choices_is_there(kind):
    found = extensions(kind)
    assert found
    for extension in found.values():
        assert {part for part in PARTS_OF[kind] if not callable(getattr(extension.load(), part, None))} == set()


def test_no_two_methods_add_the_same_name_to_a_choice():
    names = [(type(one), one.name) for one in all_extensions()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("stage", extensions(MeaningsExtension))
def test_meanings_are_of_the_stage_that_they_are_listed_for(stage):
    assert extensions(MeaningsExtension)[stage].load()[stage]


def test_declarations_load_no_library_and_no_part():
    assert loaded_by("import scalemani.config.routes") == ({package_of(method) for method in METHODS}, set())


def test_a_table_of_stages_and_a_method_load_nothing_of_others():
    own, _ = loaded_by("import scalemani.stages.table, scalemani.runs.walk")
    assert own - {f"{package_of(method)}.parameters" for method in METHODS} == set(map(package_of, METHODS))
    own, _ = loaded_by("import scalemani.descents.repulsion as sums; sums.make_repulsion('fgt', 'gaussian', 1e-3)")
    assert {name.split(".")[2] for name in own if ".kernels." in name} == {"fast_gauss"}
    own, _ = loaded_by("import scalemani; scalemani.LandmarkPCA; scalemani.stages.table.STAGES['principal_components']")
    assert {name.split(".")[2] for name in own if name.count(".") > 2 and not name.endswith(".parameters")} == {"pca"}


def test_stages_of_a_descent_load_no_method():
    own, _ = loaded_by(
        "from scalemani.config.routing import route\nfrom scalemani.stages.table import STAGES\n"
        "for stage in route('t-sne', 'refine'): STAGES[stage.name]"
    )
    assert own - {f"{package_of(method)}.parameters" for method in METHODS} == set(map(package_of, METHODS))
