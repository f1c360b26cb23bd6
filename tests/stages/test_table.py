"""The table of stages: one module for every stage of a route, found under its own name."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from scalemani.config.params import Parameters
from scalemani.config.routes import PACKAGES, ROUTES
from scalemani.engine.memory_model import Disk
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.task import Dimensions
from scalemani.stages import table
from scalemani.stages.table import STAGES, StageCode, arrays_of

SIZES = Sizes(
    Dimensions(n_points=5000, n_features=7, dtype="int16", block_rows=1024),
    Parameters().resolved("laplacian-eigenmaps"),
)


def test_the_table_has_the_stages_of_the_routes_and_no_others():
    assert set(STAGES) == {stage.name for route in ROUTES.values() for stage in route}


def test_a_stage_that_declares_no_array_writes_none():
    assert table.declared("certificates_alone", SIZES) == Disk()


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
        assert STAGES[name].disk(SIZES) == Disk(written(arrays_of(name), SIZES))
        return
    assert getattr(STAGES[name], function) is getattr(module, function)
    ((takes,), gives) = get_args(get_type_hints(StageCode)[function])
    hints = get_type_hints(getattr(module, function))
    assert hints == {"context" if function == "run" else "sizes": takes, "return": gives}


EXERCISE = """
import sys
from importlib import import_module

import numpy as np
from scalemani.config import routes
from scalemani.config.stages import GRAPH, Stage
from scalemani.stages import table
from scalemani.stages.arrays import graph

folder, declaration = sys.argv[1:]
exec(declaration, vars(graph))
table.BY_STAGE["edge_lengths"] = graph.StoredEdgeLengths
sys.path.insert(0, folder)
stage = Stage("edge_lengths", ("neighbors",), package="stages_of_the_page")
*before, last = routes.ROUTES["knn-graph"]
routes.ROUTES["knn-graph"] = (*before, stage, last)
routes.PACKAGES["edge_lengths"] = stage.package

import scalemani as sm

points = np.random.default_rng(0).normal(size=(1500, 3))
found = sm.knn_graph(points, 5, store=folder + "/run")
run = sm.open_run(folder + "/run")
lengths = run.stored(graph.StoredEdgeLengths).lengths.read()
np.testing.assert_allclose(np.sort(lengths), np.sort(found.distances[...].mean(axis=1)), rtol=1e-12)
assert abs(run.certificates["edge_lengths"]["mean_length"] - lengths.mean()) < 1e-12
"""


def test_the_stage_that_is_an_exercise_for_contributors_runs(tmp_path):
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    module, declaration = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "stages_of_the_page").mkdir()
    (tmp_path / "stages_of_the_page" / "edge_lengths.py").write_text(module)
    ended = subprocess.run(
        [sys.executable, "-c", EXERCISE, str(tmp_path), declaration], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
