"""No parameter is ignored: one that is changed changes a key, or is told of and changes none, or is refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from scalemani.errors import ConfigError, DataError
from scalemani.params import Parameters, names_of_parameters, set_value
from scalemani.routes import ROUTES, takes_labels
from scalemani.runs.walk import plan_run
from scalemani.sources import open_points
from scalemani.sources.beside.labelled import LabelledPoints
from scalemani.workers.executor import Executor

TABLE = "SCALEMANI_EFFECTS"  # names a file that the table of effects is written to
WORDS = {
    "landmark_graph.kind": "bhattacharyya", "landmark_graph.covariances": "diagonal",
    "points.metric": "cosine",
    "neighbors.method": "partition", "affinities.kind": "self-tuning", "affinities.solver": "euler",
    "affinities.order": "bounds", "components.disconnected": "error", "landmarks.method": "minmax",
    "landmarks.update": "sine", "landmarks.projection": "orthant",
    "embedding.solver": "lll", "layout.objective": "t-sne", "layout.direction": "l-bfgs", "layout.repulsion": "exact",
    "layout.init": "random",
}  # fmt: skip
# Of parameters that follow others, and of those that half of the default or one more is not allowed for.
NUMBERS = {
    "duplicates.tolerance": 0.0, "neighbors.window": 13, "neighbors.image_rows": 20, "neighbors.image_columns": 15,
    "neighbors.n_neighbors": 20, "neighbors.n_probes": 5, "neighbors.close_share": 0.2, "affinities.perplexity": 9.0,
    "affinities.sigma": 0.7, "affinities.n_neighbors": 20, "symmetric_affinities.target_weight": 0.5,
    "landmarks.n_landmarks": 60, "landmarks.sigma": 0.5,
    "landmarks.neighborhood": 9, "landmarks.eta": 3.0, "landmarks.batch_points": 90, "landmark_weights.n_neighbors": 4,
    "landmark_graph.n_neighbors": 9, "landmark_graph.sigma": 0.7,
    "landmark_weights.regularization": 1e-4, "landmark_embedding.n_components": 3, "embedding.residual": 1e-3,
    "clustering.n_clusters": 4, "layout.strength": 0.5, "layout.learning_rate": 50.0, "layout.momentum": 0.5,
    "layout.exaggerated_momentum": 0.6, "layout.exaggeration": 3.0, "layout.exaggerated_iterations": 7,
    "layout.start_deviation": 0.3, "layout.converged": 1e-5, "layout.window": 4, "layout.pairs": 4,
}  # fmt: skip


def changed_value(name: str) -> object:
    """Return another value of a parameter than its default."""
    default = Parameters().value(name)
    if name in WORDS or name in NUMBERS:
        return WORDS.get(name, NUMBERS.get(name))
    if isinstance(default, bool):
        return not default
    return default + 1 if isinstance(default, int) else 0.5 * default if default < 1 else 1.5 * default


@pytest.fixture(scope="module")
def points():
    return open_points(np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32))


@pytest.fixture(scope="module")
def effect(points, tmp_path_factory):
    """Return what a changed parameter does under a method: "acts", a note, or an error; and the keys that differ."""
    folder, plain = tmp_path_factory.mktemp("runs"), {}

    def planned(method, values):
        given = LabelledPoints(points, np.arange(300) % 5, partial=not takes_labels(method))
        return plan_run(given, folder / "run", method, Parameters().with_values(values), Executor(workers=1))

    def found(method, name):
        if method not in plain:
            plain[method] = {one.stage.name: one.key for one in planned(method, {}).stages}
        values = {}
        value = changed_value(name)
        set_value(values, name, "s-sne" if value == method else value)  # another objective than the method's own
        try:
            plan = planned(method, values)
        except (ConfigError, DataError) as error:
            return f"refused: {error}", set()
        keys = {one.stage.name: one.key for one in plan.stages}
        changed = {stage for stage in {*keys, *plain[method]} if keys.get(stage) != plain[method].get(stage)}
        notes = plan.outline.notes
        return (f"note: {notes[0]}" if notes else "acts"), changed

    return found


# Read when new points are placed, by no stage that the default solver runs.
OF_PLACING = {"landmark_weights.n_neighbors", "landmark_weights.regularization"}


@pytest.mark.parametrize("method", ROUTES)
def test_a_changed_parameter_acts_or_is_told_of_or_refused(method, effect):
    rows = {}
    for name in names_of_parameters():
        rows[name], changed = effect(method, name)
        placing = name in OF_PLACING and method in ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps")
        assert bool(changed) == (rows[name] == "acts" and not placing), (name, rows[name], changed)
    if os.environ.get(TABLE):
        with Path(os.environ[TABLE]).open("a") as file:
            file.writelines(f"| {method} | {name} | {text} |\n" for name, text in rows.items())


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (
            {"exaggeration": 4.0},
            "layout.exaggeration=4.0 has no effect: it takes layout.exaggerated_iterations above 0",
        ),
        ({"exaggeration": 4.0, "exaggerated_iterations": 9, "homotopy": 3}, "it takes layout.homotopy 1, which is 3"),
        ({"objective": "sne"}, "layout.objective=sne has no effect: it takes layout.objective that of the method"),
    ],
)
def test_what_contradicts_itself_is_refused(points, tmp_path, layout, words):
    asked = Parameters().with_values({"layout": layout})
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        plan_run(points, tmp_path / "run", "s-sne", asked, Executor(workers=1))
