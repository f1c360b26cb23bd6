"""`plan --graph`: the layers of tasks that a run has Dask compute, what waits for what, and what is complete."""

import re
import sys
from collections import Counter

import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import key_split

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.cli import printing
from scalemani.io.sources import open_points
from scalemani.runs.walk import plan_run, planned_graphs, run

SETTINGS = {
    "neighbors": {"method": "partition", "n_neighbors": 10, "recall": 0.9},
    "affinities": {"perplexity": 4},
    "embedding": {"solver": "lll"},
    "landmarks": {"n_landmarks": 40},
    "landmark_embedding": {"n_components": 2},
    "clustering": {"n_clusters": 3},
}


class Submitted(SchedulerPlugin):
    """Of each graph that a scheduler of this process is given for a run: tasks by layer, and edges between layers."""

    def __init__(self, run):
        self.run, self.graphs, self.prefixes = run, [], set()

    def update_graph(self, scheduler, *, tasks, **others):
        keys = [key for key in tasks if isinstance(key, tuple) and key[0].startswith(self.run)]
        layers = Counter(without_suffix(key) for key in keys)
        edges = Counter(
            (without_suffix(before.key), without_suffix(key))
            for key in keys
            for before in scheduler.tasks[key].dependencies
        )
        self.graphs += [(layers, edges)] if layers else []
        self.prefixes |= {key_split(key) for key in keys}


def without_suffix(key):
    return key[0].rpartition("-")[0]


def drawn_graphs(text):
    """Return what `Submitted` notes, as a text for Graphviz has it."""
    graphs = {}
    for graph, layer, count in re.findall(r'"([a-z_]+ \d+) [^"]+" \[label="([^"]+)\\ntasks: (\d+)"\];', text):
        graphs.setdefault(graph, (Counter(), Counter()))[0][layer] = int(count)
    for graph, one, other, count in re.findall(r'"([a-z_]+ \d+) ([^"]+)" -> "\1 ([^"]+)" \[label="(\d+)"\];', text):
        graphs[graph][1][one, other] = int(count)
    return list(graphs.values())


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """Return what a run by landmarks is drawn as before and after it, and what a scheduler was given for it."""
    folder = tmp_path_factory.mktemp("graphs")
    np.save(folder / "points.npy", np.random.default_rng(0).normal(size=(5500, 3)))
    local = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with local as cluster, Client(cluster) as client:
        submitted, executor = Submitted("digits_2024."), Executor(client)
        cluster.scheduler.add_plugin(submitted)
        params, points = Parameters().with_values(SETTINGS), open_points(folder / "points.npy")
        requested = points, folder / "digits-2024", "spectral-clustering", params, executor, 1024
        texts = []
        for _ in range(2):
            plan = plan_run(*requested)
            printing.write_graph(plan, planned_graphs(plan, executor), folder / "graph.dot")
            texts.append((folder / "graph.dot").read_text())
            run(*requested)
    return *texts, submitted


def test_what_is_drawn_is_what_dask_is_given(looked_at):
    text, _, submitted = looked_at
    drawn = drawn_graphs(text)
    assert len(drawn) >= 12
    assert all(graph in submitted.graphs for graph in drawn)
    further = [layers for layers, edges in submitted.graphs if (layers, edges) not in drawn]
    assert all(
        re.fullmatch(r"digits_2024\.neighbors\.round_[1-9]", layer)
        for layers in further
        for layer in layers
        if not layer.endswith(".sum")
    )
    assert sum(sum(edges.values()) for _, edges in drawn) > 100


def test_what_the_driver_decides_between_graphs_is_said(looked_at):
    text = looked_at[0].replace("\\n", " ")
    for said in (
        "recall: below the target another round follows",
        "pieces of all ranges are numbered",
        "eigenproblem of the landmarks",
        "centres move",
    ):
        assert said in text


def test_pages_of_dask_group_tasks_by_run_stage_and_layer(looked_at):
    assert {
        "digits_2024.points",
        "digits_2024.neighbors.recall",
        "digits_2024.neighbors.round_0",
        "digits_2024.affinities",
        "digits_2024.affinities.part",
        "digits_2024.affinities.part.sum",
    } <= looked_at[2].prefixes


def test_a_complete_stage_is_one_node(looked_at):
    text = looked_at[1]
    assert drawn_graphs(text) == []
    assert text.count(printing.COMPLETE) == text.count("subgraph")


def test_pictures_show_the_stages(scalemani, tmp_path):
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(3000, 3)))
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        picture = tmp_path / f"graph.{kind}"
        status, out, _ = scalemani("plan", tmp_path / "points.npy", tmp_path / "run", "--graph", picture)
        assert (status, str(picture) in out) == (0, True)
        assert picture.read_bytes().startswith(start)
    assert {"points", "run.neighbors.round_0", "components"} <= set(
        re.findall(r">([a-z_0-9.]+)</text>", (tmp_path / "graph.svg").read_text())
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
