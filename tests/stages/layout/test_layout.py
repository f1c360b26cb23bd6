"""Nonlinear methods as runs: the same bits for any layout and any interruption, and new points among the old."""

import json
import logging

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params import Parameters
from scalemani.descents import problem
from scalemani.descents.descent import State
from scalemani.descents.repulsion import make_repulsion
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.repulsion.pair_sums import ExactSums
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.arrays.embeddings import StoredLayout
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.run_store import RunStore

VALUES = {
    "neighbors": {"n_neighbors": 12},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "layout": {"max_iterations": 60, "exaggerated_iterations": 20},
}


class InterruptedDescent(Exception):
    """Raised in the middle of a descent."""


class InterruptingProgress(Progress):
    """Raises after so many iterations of the layout."""

    def __init__(self, iterations):
        self.left, self.stage = iterations, ""

    def start(self, stage, total, unit="block", done=0):
        self.stage, self.done = stage, done

    def advance(self, done=1):
        if self.stage == "layout" and done:
            self.left -= 1
            if self.left < 0:
                raise InterruptedDescent


def embed(points, folder, method, values=VALUES, block_rows=1024, **resources):
    return run(open_points(points), folder, method, Parameters().with_values(values), Executor(**resources), block_rows)


@pytest.fixture(scope="module")
def reference(roll, tmp_path_factory):
    return embed(roll, tmp_path_factory.mktemp("layouts") / "run", "t-sne")


@pytest.mark.parametrize(("block_rows", "workers"), [(2048, 1), (8192, 2)])
def test_blocks_and_workers_leave_no_trace(roll, reference, tmp_path, block_rows, workers):
    other = embed(roll, tmp_path / "run", "t-sne", block_rows=block_rows, workers=workers)
    np.testing.assert_allclose(other.embedding[...], reference.embedding[...], rtol=0, atol=1e-6)


def interrupted(points, folder, iterations, values=VALUES):
    """Run t-SNE, each iteration of which is saved, until it is interrupted; return the iterations told at its start."""
    resources = {"progress": InterruptingProgress(iterations), "checkpoint_seconds": 0}
    with pytest.raises(InterruptedDescent):
        embed(points, folder, "t-sne", values, **resources)
    return resources["progress"].done


@pytest.mark.parametrize("direction", ["momentum", "spectral+l-bfgs"])
def test_an_interrupted_descent_ends_the_same_to_the_last_bit(roll, tmp_path, direction):
    values = {**VALUES, "layout": {**VALUES["layout"], "direction": direction, "max_iterations": 35}}
    whole = embed(roll, tmp_path / "whole", "t-sne", values)
    assert interrupted(roll, tmp_path / "run", 7, values) == 0
    assert 0 < interrupted(roll, tmp_path / "run", 9, values) <= 8  # progress knows of iterations of an earlier process
    ended = embed(roll, tmp_path / "run", "t-sne", values)
    assert ended.group("layout").content_digest == whole.group("layout").content_digest
    assert ended.certificates["layout"]["iterations"] == whole.certificates["layout"]["iterations"]
    assert not [name for name in ended.group("layout").objects.names() if name.endswith("checkpoint.json")]


def test_a_damaged_checkpoint_is_not_gone_on_from(roll, tmp_path):
    interrupted(roll, tmp_path / "run", 5)
    (table,) = (tmp_path / "run").glob("stages/layout/*/checkpoint.json")  # times of files tell ticks of a clock alone
    path = table.parent / json.loads(table.read_text())["folder"] / "positions/c/0/0"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    ended = embed(roll, tmp_path / "run", "t-sne")
    assert np.isfinite(ended.embedding[...]).all()
    assert ended.certificates["layout"]["iterations"] == 60


@pytest.mark.parametrize("arrays", [{"a": np.zeros(3)}, State(np.zeros((3, 2))).arrays()], ids=["no state", "small"])
def test_a_checkpoint_of_something_else_is_not_gone_on_from(roll, reference, tmp_path, arrays):
    interrupted(roll, tmp_path / "run", 5)
    stopped = RunStore.create(tmp_path / "run")
    (folder,) = (tmp_path / "run" / "stages" / "layout").iterdir()
    Checkpoints(stopped.group("layout", folder.name, 1024)).save(arrays)
    ended = embed(roll, tmp_path / "run", "t-sne")
    np.testing.assert_array_equal(ended.embedding[...], reference.embedding[...])


def test_a_state_survives_its_arrays():
    state = State(
        np.ones((3, 2)), 1, 4, 9, 11, 5, 1.25, 1.5, 0.5, 2.0, 0.7, np.zeros((3, 2)), {"velocity": np.eye(3, 2)}
    )
    again = State.of_arrays(state.arrays())
    for name, values in state.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], values)


@pytest.mark.parametrize("method", ["elastic-embedding", "s-sne", "sne", "t-ee", "epanechnikov-ee"])
def test_every_method_runs_from_the_same_affinities(roll, reference, method):
    folder = reference.store.root
    finished = embed(roll, folder, method)
    assert finished.keys["symmetric_affinities"] == reference.keys["symmetric_affinities"]
    embedding, certificates = np.asarray(finished.embedding[...]), finished.certificates["layout"]
    assert embedding.shape == (len(roll), 2)
    assert np.isfinite(embedding).all()
    assert certificates["force_error"] <= 2e-3
    curve = finished.group("layout").read("curve")
    assert curve[-1, 1] < curve[0, 1]


def test_snapshots_are_kept_on_request(roll, reference):
    values = {**VALUES, "layout": {**VALUES["layout"], "snapshots": 25}}
    finished = embed(roll, reference.store.root, "t-sne", values)
    early = finished.group("layout").read("snapshots/000025/embedding")
    assert early.shape == (len(roll), 2)
    np.testing.assert_array_equal(finished.embedding[...], reference.embedding[...])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tolerance": 0.0}, "layout.tolerance"),
        ({"strength": 0.0}, "layout.strength"),
        ({"strength": float("nan")}, "layout.strength"),
        ({"strength": 1e300}, "layout.strength"),
        ({"repulsion": "fgt"}, "sums the kernel gaussian"),
        ({"tolerance": 1e-9, "repulsion": "grid"}, "tolerance"),
        ({"learning_rate": -1.0}, "layout.learning_rate"),
        ({"converged": 1.5}, "layout.converged"),
        ({"max_iterations": -1}, "layout.max_iterations"),
        ({"direction": "newton"}, "layout.direction"),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_written(roll, tmp_path, values, words):
    with pytest.raises(ConfigError, match=words):
        embed(roll, tmp_path / "run", "t-sne", {**VALUES, "layout": values})
    assert not (tmp_path / "run").exists()


def test_more_than_three_dimensions_take_exact_sums_only(roll, tmp_path):
    values = {**VALUES, "landmark_embedding": {"n_components": 4}}
    with pytest.raises(ConfigError, match="use 'exact'"):
        embed(roll, tmp_path / "run", "t-sne", {**values, "layout": {"repulsion": "grid"}})


def test_an_exploding_descent_stops_and_stores_nothing(roll, tmp_path):
    values = {**VALUES, "layout": {"direction": "fixed-point", "learning_rate": 1e12, "max_iterations": 50}}
    with pytest.raises(ArithmeticError, match="lower the learning rate"):
        embed(roll, tmp_path / "run", "elastic-embedding", values)
    assert not open_run(tmp_path / "run").group("layout").complete


@pytest.fixture(scope="module")
def digits():
    """3,000 digits of scikit-learn's, each of 1,500 images once as it is and once with noise."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=images.shape)
    return np.concatenate([images, images + noise]).astype(np.float32), np.concatenate([labels, labels])


@pytest.mark.parametrize("estimator", [row.estimator for row in OBJECTIVES.values()])
def test_new_points_come_to_lie_among_their_like(digits, estimator):
    logging.getLogger("scalemani").setLevel(logging.ERROR)
    points, labels = digits
    known, new = slice(0, None, 2), slice(1, None, 2)
    model = getattr(sm, estimator)(perplexity=15, max_iter=150, random_state=1).fit(points[known])
    placed = model.transform(points[new])
    neighbors = KNeighborsClassifier(5).fit(model.embedding_, labels[known])
    own = neighbors.score(model.embedding_, labels[known])
    assert neighbors.score(placed, labels[new]) > own - 0.08
    assert own > 0.75
    np.testing.assert_array_equal(model.transform(points[known][:50]), model.embedding_[:50])
    by_parts = np.vstack([model.transform(points[new][start : start + 100]) for start in range(0, 300, 100)])
    np.testing.assert_array_equal(by_parts, placed[:300])


def test_transform_before_fit_is_refused(digits):
    with pytest.raises(NotFittedError):
        sm.TSNE().transform(digits[0])


def gradients_of_all_pairs(positions, dof=1):
    """Return the gradient of the sums of Student's kernel at each point, pair by pair in float64."""
    differences = positions[:, np.newaxis] - positions
    squares = (differences**2).sum(axis=2)
    return -2 * np.einsum("nm,nmd->nd", (1 + squares / dof) ** (-dof - 1), differences)


@pytest.mark.parametrize(("repulsion", "tolerance"), [("grid", 1e-1), ("grid", 1e-3), ("barnes-hut", 1e-1)])
def test_the_error_of_the_forces_is_that_at_the_stored_positions(roll, tmp_path, repulsion, tolerance):
    """Of fewer points than are sampled, all are compared: the figure has to be the one that all pairs give."""
    asked = {"repulsion": repulsion, "tolerance": tolerance}
    finished = embed(roll[:900], tmp_path / "run", "t-sne", {**VALUES, "layout": {**VALUES["layout"], **asked}})
    positions = np.asarray(finished.embedding[...])
    exact = gradients_of_all_pairs(positions)
    _, found = make_repulsion(repulsion, "student", tolerance).field(positions)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    shares = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert finished.certificates["layout"]["force_error"] == pytest.approx(error, rel=1e-2)
    worst = finished.certificates["layout"]["worst_decile_force_error"]
    assert worst == pytest.approx(np.quantile(shares, 0.9), rel=1e-2)
    assert error > 1e-6


@pytest.mark.parametrize("dof", [0.5, 2.0])
def test_loose_and_tight_maps_have_their_certificates_and_their_audit(roll, tmp_path, dof):
    """The forces that are stored err by what is certified, and all that the run claims is found again by NumPy."""
    values = {
        "layout": VALUES["layout"] | {"dof": dof, "late_exaggeration": 2.0, "repulsion": "grid", "tolerance": 0.01}
    }
    finished = embed(roll[:900], tmp_path / "run", "t-sne", VALUES | values)
    exact = gradients_of_all_pairs(np.asarray(finished.embedding[...]), dof)
    order = np.asarray(finished.stored(StoredWorkPoints).input_rows.read())
    error = np.linalg.norm(finished.stored(StoredLayout).forces.read() - exact[order]) / np.linalg.norm(exact)
    assert finished.certificates["layout"]["force_error"] == pytest.approx(error, rel=1e-6)
    assert 1e-7 < error < 0.01
    assert not finished.verify(seed=1).failed
    sm.transform(tmp_path / "run", roll[900:930], tmp_path / "placed.npy")
    placed = np.load(tmp_path / "placed.npy")
    nearest = KNeighborsClassifier(1).fit(roll[:900], np.arange(900)).predict(roll[900:930])
    spread = np.asarray(finished.embedding[...]).std()
    assert np.median(np.linalg.norm(placed - np.asarray(finished.embedding[...])[nearest], axis=1)) < 0.1 * spread


def test_an_exaggerated_attraction_is_a_weaker_repulsion(roll, tmp_path):
    """Powers of two change no bit: E = 2 E+ + E- moves points as E+ + E- / 2 does at twice the learning rate."""
    layout = VALUES["layout"] | {"exaggerated_iterations": 0, "converged": 0.0, "doubled_for": 1.0}
    changes = {"late_exaggeration": 2.0, "learning_rate": 100.0}, {"strength": 0.5, "learning_rate": 200.0}
    maps = [embed(roll[:300], tmp_path / str(n), "t-sne", VALUES | {"layout": layout | change}).embedding[...]
            for n, change in enumerate(changes)]  # fmt: skip
    assert np.array_equal(*maps)


def test_forces_that_err_by_more_than_was_asked_for_are_told_of(roll, tmp_path, monkeypatch, listening):
    class Weaker(ExactSums):
        def field(self, sources, targets=None, charges=None):
            sums, gradients = super().field(sources, targets, charges)
            return sums, 0.95 * gradients

    def weaker(method, kernel, tolerance, workspace):
        return Weaker(kernel, workspace.over)

    monkeypatch.setattr(problem, "make_repulsion", weaker)
    finished = embed(roll[:1000], tmp_path / "run", "t-sne", progress=listening)
    assert finished.certificates["layout"]["force_error"] == pytest.approx(0.05, rel=1e-9)
    told = "forces err by 5.0e-02 of all and those of one point in ten by 5.0e-02 or more of its force"
    assert any(f"{told}; requested were 1.0e-03 and 1.0e-02: set" in warned for warned in listening.warned)


@pytest.mark.parametrize(("converged", "is_told"), [(1e-6, True), (0, False)])
def test_a_descent_that_runs_out_of_iterations_is_told_of_where_convergence_was_asked_for(
    roll, tmp_path, listening, converged, is_told
):
    values = {**VALUES, "layout": {"max_iterations": 3, "converged": converged, "direction": "spectral"}}
    finished = embed(roll[:600], tmp_path / "run", "elastic-embedding", values, progress=listening)
    assert finished.certificates["layout"]["stopped"] == "max_iterations"
    assert any("not converged after 3 iterations" in told for told in listening.warned) is is_told
