"""The table of stages: one module for every stage of a route, found under its own name."""

import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

from scalemani.routes import ROUTES
from scalemani.stages import table
from scalemani.stages.table import STAGES, StageCode


def test_the_table_has_the_stages_of_the_routes_and_no_others():
    assert set(STAGES) == {stage.name for route in ROUTES.values() for stage in route}


def test_every_module_beside_the_table_is_a_stage_of_some_route():
    beside = {path.stem for path in Path(table.__file__).parent.iterdir() if not path.name.startswith("__")}
    assert beside - {"table"} == set(STAGES)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("function", ["memory", "disk", "run"])
def test_a_stage_is_the_module_of_its_name_with_the_three_functions_as_they_are_typed(name, function):
    """The type checker does not look through a table that is made by name."""
    code, declared = STAGES[name], getattr(StageCode, function)
    assert code.__name__ == f"scalemani.stages.{name}"
    (parameter,) = set(inspect.signature(declared).parameters) - {"self"}
    assert list(inspect.signature(getattr(code, function)).parameters) == [parameter]
    assert get_type_hints(getattr(code, function)) == get_type_hints(declared)
