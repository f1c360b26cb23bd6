"""The registry of methods: a line each, and nothing of a method is loaded before it is needed."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import scalemani as sm
from scalemani.config.methods import METHODS, beside, declared, listed, load, merged, package_of, part_of, provided
from scalemani.config.routes import PACKAGES, ROUTES

FOLDER = Path(sm.__file__).parent / "methods"
PARTS = {"parameters", "new_points", "interface", "kernels", "rules", "solver", "window", "ensemble"}
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


def test_every_folder_is_listed_and_declares_routes_of_its_own_stages():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(METHODS)
    for method in METHODS:
        routes = getattr(import_module(package_of(method)), "ROUTES", {})
        assert routes.items() <= ROUTES.items()
        assert all(any(stage.package == package_of(method) for stage in route) for route in routes.values())


@pytest.mark.parametrize("method", METHODS)
def test_every_module_of_a_folder_is_a_part_that_others_load_or_a_stage(method):
    stages = {stage for stage, package in PACKAGES.items() if package == package_of(method)}
    modules = {path.stem for path in (FOLDER / method).iterdir() if not path.name.startswith("__")}
    assert modules - PARTS == stages
    assert all(hasattr(sm, name) and name in sm.__all__ for name in METHODS[method])


@pytest.mark.parametrize(
    "table",
    ["LANDMARK_RULES", "REPULSIONS", "SUMS_BY_NUMBER", "SOLVERS", "REDUCTIONS", "AFFINITY_KINDS", "AFFINITY_ORDERS"],
)
def test_what_methods_declare_for_choices_by_name_is_there(table):
    assert all(callable(load(table, name)) for name in declared(table))


@pytest.mark.parametrize("table", ["OFF_DATA", "ONE_BY_ONE", "SAMPLED"])
def test_what_methods_list_of_rules_of_landmarks_are_such_rules(table):
    assert {*listed(table)} <= {*declared("LANDMARK_RULES")}


def test_declarations_load_no_library_and_no_part():
    assert loaded_by("import scalemani.config.routes") == ({package_of(method) for method in METHODS}, set())


def test_a_table_of_stages_and_a_method_load_nothing_of_others():
    own, _ = loaded_by("import scalemani.stages.table, scalemani.runs.walk")
    assert own - {f"{package_of(method)}.parameters" for method in METHODS} == set(map(package_of, METHODS))
    own, _ = loaded_by("import scalemani.descents.repulsion as sums; sums.make_repulsion('fgt', 'gaussian', 1e-3)")
    assert {name.split(".")[2] for name in own if ".kernels." in name} == {"fast_gauss"}
    own, _ = loaded_by("import scalemani; scalemani.LandmarkPCA; scalemani.stages.table.STAGES['principal_components']")
    assert {name.split(".")[2] for name in own if name.count(".") > 2} - {"lle", "kernel_lda"} == {"pca"}


def test_stages_of_a_descent_load_no_method():
    own, _ = loaded_by(
        "from scalemani.config.routing import route\nfrom scalemani.stages.table import STAGES\n"
        "for stage in route('t-sne', 'refine'): STAGES[stage.name]"
    )
    assert own - {f"{package_of(method)}.parameters" for method in METHODS} == set(map(package_of, METHODS))


def test_what_a_method_leaves_out_is_none():
    assert part_of("scalemani.methods.pca", "new_points") is None
    assert part_of("scalemani.stages", "table") is None
    assert provided("scalemani.methods.pca", "principal_components", "nothing") is None
    assert beside("LANDMARK_RULES", "random", "landmarks_memory") is None
    assert listed("NOTHING") == ()
    assert set(merged("parameters", "TABLES")) == {"kernel_discriminants", "local_reconstruction"}
