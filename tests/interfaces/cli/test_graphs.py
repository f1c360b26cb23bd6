"""`plan --graph`: stages and blocks, what each waits for, and which are complete."""

import re
import sys

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.cli import printing
from scalemani.io.sources import open_points
from scalemani.runs.walk import plan_run


def edges(text):
    return set(re.findall(r'"([^"]+)" -> "([^"]+)";', text))


@pytest.mark.parametrize(("n_points", "n_blocks"), [(3000, 3), (30_000, 30)])
def test_blocks_of_small_runs_are_drawn_and_counted_in_others(tmp_path, n_points, n_blocks):
    points = open_points(np.random.default_rng(0).normal(size=(n_points, 3)))
    plan = plan_run(points, tmp_path / "run", "knn-graph", Parameters(), Executor(), 1024)
    printing.write_graph(plan, tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    for planned in plan.stages:
        stage = planned.stage
        blocks = [f"{stage.name} {block}" for block in range(n_blocks)] if stage.by_block and n_blocks == 3 else []
        assert {(block, stage.name) for block in blocks} <= edges(text)
        for name in stage.inputs:
            assert {(name, task) for task in blocks or [stage.name]} <= edges(text)
    assert text.count("30 blocks") == (0 if n_blocks == 3 else sum(one.stage.by_block for one in plan.stages))
    assert printing.COMPLETE not in text


def test_pictures_show_the_stages(scalemani, tmp_path):
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(3000, 3)))
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        picture = tmp_path / f"graph.{kind}"
        status, out, _ = scalemani("plan", tmp_path / "points.npy", tmp_path / "run", "--graph", picture)
        assert (status, str(picture) in out) == (0, True)
        assert picture.read_bytes().startswith(start)
    assert {"points", "neighbors", "components"} <= set(
        re.findall(r">([a-z_]+)</text>", (tmp_path / "graph.svg").read_text())
    )


def test_what_cannot_be_drawn_is_refused_before_any_work(scalemani, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    for name, told in (
        ("graph.svg", "this needs pygraphviz"),
        ("lists.npz", "lists.npz: give neighbour lists, --graph of embed, as --lists"),
    ):
        status, _, errors = scalemani("plan", tmp_path / "no.npy", tmp_path / "run", "--graph", tmp_path / name)
        assert status == 2
        assert told in errors
