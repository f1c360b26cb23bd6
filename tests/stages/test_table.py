"""The table of stages: one module for every stage of a route, found under its own name."""

import inspect

import pytest

from scalemani.routes import ROUTES
from scalemani.stages.table import STAGES


def test_the_table_has_the_stages_of_the_routes_and_no_others():
    assert set(STAGES) == {stage.name for route in ROUTES.values() for stage in route}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_the_module_of_its_name_with_the_three_functions(name):
    code = STAGES[name]
    assert code.__name__ == f"scalemani.stages.{name}"
    for function, parameter in (("memory", "sizes"), ("disk", "sizes"), ("run", "work")):
        assert list(inspect.signature(getattr(code, function)).parameters) == [parameter]
