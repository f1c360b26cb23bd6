"""`plan --explain`: the lists of what a stage holds and writes add up to what the plan shows."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.config.routing import route
from scalemani.engine.memory_model import of_process
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.cli.printing import show_needs
from scalemani.io.sources import open_points
from scalemani.runs.plan import Plan
from scalemani.runs.walk import plan_run, run

VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "partition": {"cell_points": 200, "sample_points": 2000},
    "embedding": {"solver": "lll+refine"},
}
METHODS = ["laplacian-eigenmaps", "spectral-clustering", "diffusion-maps", "pca", "kernel-pca", "t-sne", "knn-graph"]
METHODS += ["locally-linear-embedding", "isomap", "combined-isomap", "kernel-function-pca"]


def planned(points, folder, method, **resources) -> Plan:
    params = Parameters().with_values(VALUES)
    return plan_run(open_points(points), folder, method, params, Executor(**resources), 1024)


def explained(plan, stage, capsys):
    """Return what is printed of memory and of disk: lines with their number of bytes."""
    show_needs(plan, stage)
    parts = capsys.readouterr().out.split("\n\n")
    return [[line for line in part.splitlines() if any(word.isdigit() for word in line.split())] for part in parts]


def bytes_of(line):
    """Return the number that stands before two spaces and the words at the end."""
    return int(line.rpartition("  ")[0].split()[-1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("resources", [{}, {"workers": 3}, {"memory": 1_100_000_000}, {"memory": 10**12}])
def test_the_sums_are_those_of_the_plan(roll, tmp_path, capsys, method, resources):
    plan = planned(roll, tmp_path / "run", method, **resources)
    for stage in plan.stages:
        memory, disk = explained(plan, stage.stage.name, capsys)
        steps = [bytes_of(line) for line in memory if line.startswith("  in sum")]
        assert len(steps) == max(1, len(stage.held.steps))
        assert max(steps) == bytes_of(memory[-1]) == stage.memory
        assert bytes_of(disk[-1]) == stage.disk.total


@pytest.mark.parametrize("method", METHODS)
def test_every_term_has_a_name_and_bytes(roll, tmp_path, capsys, method):
    plan = planned(roll, tmp_path / "run", method)
    assert [stage.stage.name for stage in plan.stages] == [stage.name for stage in route(method, "lll+refine")]
    for stage in plan.stages:
        memory, disk = explained(plan, stage.stage.name, capsys)
        for terms, lines in ((stage.held.listed(), memory[len(of_process()) :]), (stage.written.listed(), disk)):
            for (name, n_bytes, when), line in zip(terms, lines, strict=False):
                assert line.split() == f"{name} {n_bytes:.0f} {when}".split()


def test_what_was_written_is_taken_off(roll, tmp_path, capsys):
    run(open_points(roll), tmp_path / "run", "knn-graph", Parameters().with_values(VALUES), Executor(), 1024)
    plan = planned(roll, tmp_path / "run", "knn-graph")
    assert bytes_of(explained(plan, "graph", capsys)[1][-1]) == 0
    plan.planned("graph").group.forget(["block-000001"])
    half = planned(roll, tmp_path / "run", "knn-graph")
    lines = explained(half, "graph", capsys)[1]
    assert bytes_of(lines[-1]) == half.planned("graph").disk.total > 0


def test_a_stage_that_the_method_has_not_is_refused(roll, tmp_path, scalemani):
    np.save(tmp_path / "roll.npy", roll)
    status, shown, errors = scalemani("plan", tmp_path / "roll.npy", tmp_path / "run", "--explain", "layout")
    assert status != 0
    assert "has no stage 'layout'" in errors
    status, shown, errors = scalemani("plan", tmp_path / "roll.npy", tmp_path / "run", "--explain", "points")
    assert status == 0
    assert "points of a block" in shown
