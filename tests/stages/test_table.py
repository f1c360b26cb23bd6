"""The table of stages: one module for every stage of a route, found under its own name."""

import importlib
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from scalemani.config.params import Parameters
from scalemani.config.routes import PACKAGES, ROUTES
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.task import Dimensions
from scalemani.stages import table
from scalemani.stages.table import STAGES, StageCode, arrays_of

SIZES = Sizes(Dimensions(n_points=5000, n_features=7, dtype="int16", block_rows=1024), Parameters())


def test_the_table_has_the_stages_of_the_routes_and_no_others():
    assert set(STAGES) == {stage.name for route in ROUTES.values() for stage in route}


def test_a_stage_that_declares_no_array_writes_none():
    assert table.declared("certificates_alone", SIZES) == []


def test_every_module_beside_the_table_is_a_stage_of_some_route():
    beside = {path.stem for path in Path(table.__file__).parent.iterdir() if not path.name.startswith("__")}
    shared = {name for name, package in PACKAGES.items() if package == "scalemani.stages"}
    assert beside - {"table", "arrays", "shared"} == shared


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("function", ["memory", "disk", "run"])
def test_a_stage_is_the_module_of_its_name_with_its_functions_as_they_are_typed(name, function):
    """The type checker does not look through a table that is made by name."""
    module = importlib.import_module(f"{PACKAGES[name]}.{name}")
    if function == "disk" and not hasattr(module, function):
        assert STAGES[name].disk(SIZES) == written(arrays_of(name), SIZES)
        return
    assert getattr(STAGES[name], function) is getattr(module, function)
    ((takes,), gives) = get_args(get_type_hints(StageCode)[function])
    hints = get_type_hints(getattr(module, function))
    assert hints == {"work" if function == "run" else "sizes": takes, "return": gives}
