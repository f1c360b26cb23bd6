"""Labels in the graph: W counts less between known classes, whoever asks for it, and is untouched where none does."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.csgraph
from sklearn.datasets import load_digits
from sklearn.metrics import silhouette_score

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.report.page import commands
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels, with_weights
from scalemani.runs.appending import append_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run
from scalemani.stages.arrays.points import StoredClasses, StoredWorkPoints

DIGITS, NAMES = load_digits(return_X_y=True)
CHOSEN = np.flatnonzero(np.isin(NAMES, [3, 5, 8, 9]))[:500]
POINTS, CLASSES = DIGITS[CHOSEN], NAMES[CHOSEN]
PARTLY = np.where(np.random.default_rng(0).random(500) < 0.4, -1, CLASSES)
DIFFERENT = (PARTLY[:, None] != PARTLY) & (PARTLY[:, None] != -1) & (PARTLY != -1)
WEIGHT = 0.75
VALUES = {"affinities": {"perplexity": 10.0}, "embedding": {"solver": "exact"}}
TARGETED = {**VALUES, "symmetric_affinities": {"target_weight": WEIGHT}}


def planned(values=TARGETED, method="laplacian-eigenmaps", labels=PARTLY, points=POINTS):
    source = open_points(points)
    if labels is not None:
        source = with_labels(source, labels, partial=True)
    return plan_run(source, "unused", method, Parameters().with_values(values), Executor(workers=1))


def keys(*given, **named):
    return {stage.stage.name: stage.key for stage in planned(*given, **named).stages}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("targets")


@pytest.fixture(scope="module")
def both(folder):
    """Return runs without and with a target weight, in one store."""
    source = with_labels(open_points(POINTS), PARTLY, partial=True)
    return [
        run(source, folder / "run", "laplacian-eigenmaps", Parameters().with_values(values), Executor(workers=2))
        for values in (VALUES, TARGETED)
    ]


@pytest.fixture(scope="module")
def matrices(both):
    """Return W without and with a target weight."""
    return both[0].affinities.tocsr(), both[1].affinities.tocsr()


def test_w_is_lower_between_known_classes_and_nowhere_else(matrices):
    plain, targeted = (matrix.toarray() for matrix in matrices)
    np.testing.assert_array_equal(targeted[~DIFFERENT], plain[~DIFFERENT])
    np.testing.assert_allclose(targeted[DIFFERENT], plain[DIFFERENT] * (1 - WEIGHT), rtol=1e-7)
    assert (plain[DIFFERENT] > 0).sum() > 100
    assert (targeted == targeted.T).all()
    assert matrices[0].nnz == matrices[1].nnz


def test_degrees_and_eigenvalues_are_those_of_the_lowered_matrix(both, matrices):
    W = matrices[0].toarray().astype(np.float64) * np.where(DIFFERENT, 1 - WEIGHT, 1.0)
    found = both[1].certificates
    assert found["symmetric_affinities"]["least_degree"] == pytest.approx(W.sum(axis=1).min(), rel=1e-6)
    assert found["classes"] == {
        "classes": 4,
        "smallest_class": np.unique(PARTLY, return_counts=True)[1][1:].min(),
        "unlabelled": (PARTLY == -1).sum(),
    }
    expected = scipy.linalg.eigh(np.diag(W.sum(axis=1)) - W, np.diag(W.sum(axis=1)), eigvals_only=True)[1:3]
    np.testing.assert_allclose(both[1].eigenvalues, expected, atol=1e-6)


def test_without_a_target_weight_labels_are_in_no_key():
    without = keys(VALUES, labels=None)
    assert keys(VALUES) == without
    assert keys({**VALUES, "symmetric_affinities": {"target_weight": 0.0}}) == without
    assert "classes" not in without


def test_labels_and_their_weight_are_in_the_keys_of_what_follows_them():
    before = keys()
    graph = {"points", "partition", "work_points", "neighbors", "affinities", "components", "landmarks"}
    other = np.where(np.arange(500) == 7, 9 if PARTLY[7] != 9 else 8, PARTLY)
    changed = keys(labels=other)
    assert {stage for stage in before if before[stage] == changed[stage]} == graph
    weight = {**VALUES, "symmetric_affinities": {"target_weight": 0.5}}
    assert {stage for stage in before if before[stage] == keys(weight)[stage]} == graph | {"classes"}
    unknown = {stage: key for stage, key in keys(VALUES).items() if stage in graph}
    assert {stage: before[stage] for stage in graph} == unknown


def test_a_missing_label_may_be_written_in_several_ways():
    missing = PARTLY == -1
    texts = PARTLY.astype(str)
    ways = [
        np.where(missing, np.nan, PARTLY),
        PARTLY.astype(float),
        texts,
        np.where(missing, "", texts),
        np.array([None if gone else name for gone, name in zip(missing, texts, strict=True)], object),
    ]
    assert all(keys(labels=way) == keys() for way in ways)


def test_classes_are_pulled_apart():
    silhouettes = []
    for weight in (0.0, 0.9):
        model = sm.LaplacianEigenmaps(perplexity=15, settings={"symmetric_affinities.target_weight": weight}, workers=1)
        silhouettes.append(silhouette_score(model.fit_transform(POINTS, CLASSES), CLASSES))
    assert silhouettes[0] < 0.6
    assert silhouettes[1] > 0.8


def test_the_command_line_and_an_estimator_agree(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", POINTS)
    np.save(tmp_path / "labels.npy", PARTLY)
    given = ["embed", tmp_path / "points.npy", tmp_path / "run", "--method", "t-sne", "--set=affinities.perplexity=10"]
    given += [
        "--set=layout.max_iterations=30",
        "--set=layout.converged=0",
        f"--set=symmetric_affinities.target_weight={WEIGHT}",
    ]
    assert scalemani(*given, "--labels", tmp_path / "labels.npy")[0] == 0
    model = sm.TSNE(
        perplexity=10, max_iter=30, settings={"layout.converged": 0, "symmetric_affinities.target_weight": WEIGHT}
    )
    found = open_run(tmp_path / "run")
    np.testing.assert_array_equal(model.fit_transform(POINTS, PARTLY), found.embedding[...])
    assert model.transform(POINTS[:3] + 0.1).shape == (3, 2)
    assert f"--set symmetric_affinities.target_weight={WEIGHT}" in commands(found)[0]
    assert commands(found)[0].endswith("--labels LABELS")
    status, _, errors = scalemani(*given[:2], tmp_path / "other", *given[3:])
    assert status == 2
    assert f"t-sne with symmetric_affinities.target_weight={WEIGHT} learns from labels: give one" in errors
    assert not (tmp_path / "other").exists()


def test_a_stage_of_its_own_is_run_where_it_is_asked_for(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", POINTS)
    status, output, _ = scalemani("stage", "classes", tmp_path / "points.npy", tmp_path / "run", "--method", "t-sne")
    assert (status, output) == (
        0,
        "classes: nothing to do, a run with these parameters does not need it\n",
    )


def test_neighbours_that_are_given_have_the_same_w(matrices):
    graph = sm.knn_graph(POINTS, 30)
    model = sm.LaplacianEigenmaps(
        metric="precomputed", perplexity=10, solver="exact", settings={"symmetric_affinities.target_weight": WEIGHT}
    )
    model.fit(graph, PARTLY)
    expected = scipy.sparse.csgraph.laplacian(matrices[1].astype(np.float64), normed=True).toarray()
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(expected)[1:3], atol=1e-6)


def test_weights_count_copies_of_one_class(folder):
    weights = np.random.default_rng(1).integers(1, 4, 120)
    rows = np.repeat(np.arange(120), weights)
    params = [
        Parameters().with_values({**TARGETED, "neighbors": {"n_neighbors": width}}) for width in (119, len(rows) - 1)
    ]
    weighted = with_labels(with_weights(open_points(POINTS[:120]), weights), PARTLY[:120], partial=True)
    repeated = with_labels(open_points(POINTS[rows]), PARTLY[rows], partial=True)
    found = [
        run(source, folder / name, "laplacian-eigenmaps", asked, Executor(workers=1)).eigenvalues
        for source, name, asked in ((weighted, "weighted", params[0]), (repeated, "repeated", params[1]))
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_equal_rows_have_the_class_on_which_their_labels_agree(folder):
    rows = np.concatenate([np.arange(500), [3, 4, 5]])
    labels = np.concatenate([PARTLY, [-1, 5, 8]])
    labels[[3, 500]], labels[[4, 501]], labels[[5, 502]] = [9, -1], [-1, 5], [3, 8]
    values = {**TARGETED, "duplicates": {"tolerance": 0.0}}
    source = with_labels(open_points(POINTS[rows]), labels, partial=True)
    made = run(source, folder / "merged", "laplacian-eigenmaps", Parameters().with_values(values), Executor())
    agreed = labels[:500].copy()
    agreed[[4, 5]] = 5, -1
    expected = with_labels(open_points(POINTS), agreed, partial=True).side.labels.codes
    order = StoredWorkPoints(made.group("work_points")).input_rows.read()
    np.testing.assert_array_equal(StoredClasses(made.group("classes")).codes.read(), expected[order])


def test_a_grid_may_differ_in_it(tmp_path):
    maps = sm.LaplacianEigenmaps(perplexity=10, solver="exact", store=tmp_path / "run")
    found = sm.tune(maps, {"symmetric_affinities.target_weight": [0.0, 0.9]}, POINTS, CLASSES, scoring="label-accuracy")
    assert found.best_params_ == {"symmetric_affinities.target_weight": 0.9}
    assert found.best_estimator_.certificates_["classes"]["classes"] == 4


@pytest.mark.parametrize(
    ("values", "method", "message"),
    [
        (
            {"neighbors": {"method": "window"}},
            "laplacian-eigenmaps",
            "is for pixels: leave out symmetric_affinities",
        ),
        ({}, "kernel-pca", "affinities are a kernel in kernel-pca"),
        ({}, "kernel-lda", "affinities are a kernel in kernel-lda"),
    ],
)
def test_what_cannot_follow_classes_is_refused(values, method, message):
    with pytest.raises(ConfigError, match=message):
        Parameters().with_values({**TARGETED, **values}).route(method)


def test_a_weight_out_of_range_and_labels_that_say_nothing_are_refused(both):
    for weight in (1.0, -0.1, "much"):
        with pytest.raises(ConfigError, match=r"symmetric_affinities\.target_weight"):
            sm.TSNE(settings={"symmetric_affinities.target_weight": weight}).fit(POINTS, CLASSES)
    with pytest.raises(ConfigError, match="learns from labels: give one a point with --labels FILE, or as y of fit"):
        sm.TSNE(settings={"symmetric_affinities.target_weight": 0.5}).fit(POINTS)
    for labels, words in (
        (np.full(500, -1), "two classes at least, got none"),
        (np.where(CLASSES == 3, 3, -1), "got one class"),
        (CLASSES + 0.5, "labels must be classes"),
        (CLASSES[:9], "has 9 labels for 500 points"),
    ):
        with pytest.raises(DataError, match=words):
            sm.TSNE(settings={"symmetric_affinities.target_weight": 0.5}).fit(POINTS, labels)
    with pytest.raises(ConfigError, match="cannot be appended to a run that learns from labels"):
        append_points(both[1], POINTS[:9], Executor(workers=1))


def test_where_no_stage_reads_it_a_note_says_so():
    plan = planned({**TARGETED, "embedding": {"solver": "nystrom"}, "landmarks": {"n_landmarks": 100}})
    assert any("symmetric_affinities.target_weight=0.75 has no effect" in note for note in plan.outline.notes)
